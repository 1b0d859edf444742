-- The state document: pipeline_state:<run>, the JSON that seed 000's tools read. It appears with the first progress of a
-- run or with its end, follows every change of its state, and goes a day after the run has ended.
--
-- It is always written as a whole. A step that is completed does not write it: the worker's next word on its progress
-- does, half a second later at most, or the end of the attempt.
--
-- ARGV[3]  1 when documents are wanted

local WANTED = ARGV[3] == '1'
local KEPT = '86400'
local STATUS = {'pending', 'running', 'running', 'completed', 'failed', 'failed'}
local NOTHING_USED = ',"inputTokens":0,"outputTokens":0,"totalTokens":0,"cost":0}'
local find_text, match, floor = string.find, string.match, math.floor
local moments, quoted = {}, {}
local to_show = {} -- runs whose document is written after everything else

-- A second since 1970 as the start of an RFC 3339 time. Most steps of a batch end in the same few seconds.
local function moment(second)
  local text = moments[second]
  if not text then
    local number = tonumber(second)
    local rest = number % 86400
    local z = (number - rest) / 86400 + 719468 -- from days to a civil date: years begin in March, eras have 146097 days
    local era = math.floor(z / 146097)
    local doe = z - era * 146097
    local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524) - math.floor(doe / 146096)) / 365)
    local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
    local mp = math.floor((5 * doy + 2) / 153)
    local month = mp < 10 and mp + 3 or mp - 9
    text = format('"%04d-%02d-%02dT%02d:%02d:%02d', yoe + era * 400 + (month <= 2 and 1 or 0), month,
      doy - math.floor((153 * mp + 2) / 5) + 1, rest / 3600, rest % 3600 / 60, rest % 60)
    moments[second] = text
  end
  return text
end

local function iso(time)
  local second = math.floor(time)
  return moment(second) .. string.sub(format('%.6f', time - second), 2) .. 'Z"'
end

local NOW = WANTED and iso(now)

-- A name as JSON. Most runs of a batch have the same.
local function quote(name)
  local text = quoted[name]
  if not text then
    text = cjson.encode(name)
    quoted[name] = text
  end
  return text
end

-- What a step consumed, and why it failed: the end of its analytics, its tokens and its cost.
local function consumption(record)
  local usage = record.usage or {}
  local input, output = usage.input_tokens or 0, usage.output_tokens or 0
  local failure = record.error
  return format(',"inputTokens":%d,"outputTokens":%d,"totalTokens":%d,"cost":%.17g', input, output, input + output,
    usage.cost or 0)
    .. (failure and ',"errorMessage":' .. cjson.encode(failure.message) .. ',"errorName":'
      .. cjson.encode(failure.name) or '') .. '}', input + output, usage.cost or 0
end

-- One step of stepAnalytics, its tokens and its cost. `name` and `record` (of StepRecord) are JSON. Plain searches and
-- a match that begins at its place: anything else reads the text many times over.
local function analytics(comma, name, status, record)
  if status == 'pending' then
    return comma .. name .. ':{"stepName":' .. name .. ',"status":"pending"}', 0, 0
  end
  local used, tokens, cost = NOTHING_USED, 0, 0
  local _, at = find_text(record, '"started":', 1, true)
  local from, from_fraction, to, to_fraction, spent, rest
  if at then
    from, from_fraction, to, to_fraction, spent, rest =
      match(record, '^(%d+)(%.?%d*),"finished":(%d+)(%.?%d*),"duration":([%d.e-]+)()', at + 1)
  end
  if not rest then
    from, from_fraction = match(record, '"started":(%d+)(%.?%d*)')
    to, to_fraction = match(record, '"finished":(%d+)(%.?%d*)')
    spent = from and to and math.max(0, (to .. to_fraction) - (from .. from_fraction))
    rest = 1
  end
  if find_text(record, '"usage":{"', rest, true) or find_text(record, '"error"', rest, true) then
    used, tokens, cost = consumption(cjson.decode(record))
  end
  return comma .. name .. ':{"stepName":' .. name .. ',"status":"' .. status
    .. (from and '","startedAt":' .. moment(from) .. from_fraction .. 'Z"' or '"')
    .. (to and ',"completedAt":' .. moment(to) .. to_fraction .. 'Z"' or '')
    .. (spent and ',"durationMs":' .. (spent + 0 < 0.0015 and '1' or floor(1000 * spent + 0.5)) or '')
    .. used, tokens, cost
end

-- Count a completed step into what is said of all of them. A value that is too large to be here is shown as the name
-- of where it is.
local function complete(done, step, value, record, skipped)
  local name, status = quote(step), skipped and 'skipped' or 'completed'
  local text, tokens, cost = analytics(done.steps[1] and ',' or '', name, status, record)
  done.steps[#done.steps + 1], done.tokens, done.cost = text, done.tokens + tokens, done.cost + cost
  done.names[step] = true
  if not skipped then
    done.results[#done.results + 1] = (done.results[1] and ',' or '') .. name .. ':'
      .. (string.sub(value, 1, 1) == '@' and cjson.encode(value) or value)
  end
end

-- Steps that have begun and not completed, which the progress tells of: as JSON that follows the completed ones, which
-- one is current, and the tokens and the cost of all.
local function under_way(run, done)
  local text, current, tokens, cost = '', nil, done.tokens, done.cost
  for step, record in pairs(cjson.decode(run.progress).steps or {}) do
    if not done.names[step] then
      local name = quote(step)
      local waits = record.status == 'in_progress' and run.state ~= RUNNING
      local _, more, price = consumption(record)
      local comma = (done.steps[1] or text ~= '') and ',' or ''
      text = text .. analytics(comma, name, waits and 'pending' or record.status, cjson.encode(record))
      current = current or not waits and name or nil
      tokens, cost = tokens + more, cost + price
    end
  end
  return text, current, tokens, cost
end

local function failures(run)
  local counts = {}
  for _, entry in ipairs(call('LRANGE', H .. 'quarantine:' .. run.id, 0, -1)) do
    local step = decode(entry)
    counts[step] = (counts[step] or 0) + 1
  end
  return cjson.encode(counts)
end

-- Everything behind the results.
local function ending(run, current, tokens, cost)
  local failure = run.failure
  if run.state == CANCELLED then
    failure = cjson.encode({name = 'Cancelled', message = run.reason or 'the run was cancelled'})
  end
  local spent = run.started > 0 and math.max(0, (run.finished > 0 and run.finished or now) - run.started) or 0
  return '},"updatedAt":' .. NOW .. ',"status":"' .. STATUS[run.state] .. '","validationFailures":'
    .. (run.bad == 0 and '{}' or failures(run)) .. ',"totalTokens":' .. (tokens == 0 and '0' or format('%d', tokens))
    .. ',"totalCost":' .. (cost == 0 and '0' or format('%.17g', cost)) .. ',"totalDurationMs":'
    .. floor(1000 * spent + 0.5) .. (current and ',"currentStep":' .. current or '')
    .. (failure and ',"error":' .. failure or '') .. '}'
end

-- Fields of a run, however many.
local function fields_of(id, names)
  local found = {}
  for from = 1, #names, 1000 do
    local values = call('HMGET', RUN .. id, unpack(names, from, math.min(from + 999, #names)))
    for i = 1, #values do
      found[from + i - 1] = values[i]
    end
  end
  return found
end

-- Steps that were taken over from another run, which no event tells of.
local function inherited_steps(id)
  local names = {}
  for _, field in ipairs(call('HKEYS', RUN .. id)) do
    names[#names + 1] = match(field, '^c(.+)%z$')
  end
  return names
end

-- Steps that the first `count` events of a run tell of. The two before them are of its beginning.
local function completed_steps(id, count)
  local numbers, names, named = {}, {}, {}
  for number = 3, count do
    numbers[number - 2] = EVENT_FIELDS[number] or 'e' .. number
  end
  for _, event in ipairs(fields_of(id, numbers)) do
    local kind, _, data, _, step = decode(event)
    step = step or match(kind, '^step%.') and cjson.decode(data).name
    if step and not named[step] then
      named[step], names[#names + 1] = true, step
    end
  end
  return names
end

local function by_start(x, y)
  return x[4] < y[4]
end

-- The checkpoints of some steps, in the order of their start: name, value, record, start.
local function checkpoints_of(id, names, without)
  local fields, found, in_order = {}, {}, true
  for i, name in ipairs(names) do
    fields[i] = 'c' .. name .. '\0'
  end
  for i, checkpoint in ipairs(fields_of(id, fields)) do
    if checkpoint and names[i] ~= without then
      local value, _, _, _, record = decode(checkpoint)
      local _, at = find_text(record, '"started":', 1, true)
      local count, started = #found, tonumber(at and match(record, '^[%d.]+', at + 1) or 0)
      in_order = in_order and (count == 0 or found[count][4] <= started)
      found[count + 1] = {names[i], value, record, started}
    end
  end
  if not in_order then
    table.sort(found, by_start)
  end
  return found
end

-- What is said of the steps that a run has completed, in the order of their start. `last`, with its checkpoint, is a step
-- that is being written.
local function steps_of(run, count, last, packed, skipped)
  local done = {steps = {}, results = {}, names = {}, tokens = 0, cost = 0}
  local names = run.inherited and inherited_steps(run.id) or count > 2 and completed_steps(run.id, count)
  for _, step in ipairs(names and checkpoints_of(run.id, names, last) or {}) do
    complete(done, step[1], step[2], step[3], find_text(step[3], '"status":"skipped"', 1, true))
  end
  if last then
    local value, _, _, _, record = decode(packed)
    complete(done, last, value, record, skipped)
  end
  return done
end

-- Write the document of a run of which everything is known. Its first `count` events are stored; `last` as above.
local function show_now(run, count, ...)
  if not WANTED then
    return
  end
  local done = steps_of(run, count, ...)
  local begun, current, tokens, cost = '', nil, done.tokens, done.cost
  if run.progress and run.progress ~= '{}' then
    begun, current, tokens, cost = under_way(run, done)
  end
  local text = '{"version":"1.0","reportId":' .. cjson.encode(run.key or run.id) .. ',"userId":'
    .. quote(run.tenant) .. ',"createdAt":' .. iso(run.created) .. ',"stepAnalytics":{'
    .. table.concat(done.steps) .. begun .. '},"completedResults":{' .. table.concat(done.results)
    .. ending(run, current, tokens, cost)
  if run.state >= SUCCEEDED then
    call('SET', PREFIX .. 'pipeline_state:' .. run.id, text, 'EX', KEPT)
  else
    call('SET', PREFIX .. 'pipeline_state:' .. run.id, text)
  end
end

-- Write it when everything else is written.
local function show(run)
  to_show[run.id] = WANTED or nil
end

function write_documents()
  for id in pairs(to_show) do
    local run = stored(id)
    if run then
      local found = call('HMGET', RUN .. id, 'p', 'e')
      run.progress, run.failure = found[1], found[2] or nil
      show_now(run, run.last)
    end
  end
end
