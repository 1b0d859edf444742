-- The state document: pipeline_state:<run>, the JSON that seed 000's tools read. It appears with the first progress or
-- result of a run, is brought up to date by every change of the run, and goes a day after the run has ended.
--
-- It is laid out so that completing a step rewrites only its end, however large the results before it are:
--
--   {"version":…,"completedResults":{…|},"stepAnalytics":{…},"updatedAt":…,"status":…,…}
--                                    a                                                 size
--
-- A new result goes in at a, and everything behind it is written anew; what a shorter end leaves over is blanks. While
-- the run is not over, its field d holds a, size, number of results, tokens, checkpoints in quarantine, cost, started;
-- and then the analytics of the completed steps, as text.
--
-- ARGV[4]  1 when documents are wanted

local WANTED = ARGV[4] == '1'
local KEPT = 86400
local LAYOUT = '>I8I8I4I8I4dd'
local STATUS = {'pending', 'running', 'running', 'completed', 'failed', 'failed'}
local NOTHING_USED = ',"inputTokens":0,"outputTokens":0,"totalTokens":0,"cost":0}'
local find_text, match = string.find, string.match
local moments = {}
local to_rebuild = {} -- runs whose document is made anew when everything else is written

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

-- When a step began and ended, and how long it took, as far as its record (JSON of StepRecord) tells; and up to where
-- that was read. Plain searches and a match that begins at its place: anything else reads the text many times over.
local function times(record)
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
  end
  return (from and ',"startedAt":' .. moment(from) .. from_fraction .. 'Z"' or '')
    .. (to and ',"completedAt":' .. moment(to) .. to_fraction .. 'Z"' or '')
    .. (spent and ',"durationMs":' .. (spent + 0 < 0.0015 and '1' or math.floor(1000 * spent + 0.5)) or ''), rest or 1
end

-- One step of stepAnalytics, its tokens and its cost. `name` is JSON.
local function analytics(name, status, record)
  local text = name .. ':{"stepName":' .. name .. ',"status":"' .. status .. '"'
  if status == 'pending' then
    return text .. '}'
  end
  local used, tokens, cost = NOTHING_USED, 0, 0
  local when, rest = times(record)
  if find_text(record, '"usage":{"', rest, true) or find_text(record, '"error"', rest, true) then
    used, tokens, cost = consumption(cjson.decode(record))
  end
  return text .. when .. used, tokens, cost
end

-- Steps that have begun and not completed, which the progress tells of: behind those that have.
local function under_way(run, completed)
  local text, current, tokens, cost = '', nil, 0, 0
  for step, record in pairs(cjson.decode(run.progress).steps or {}) do
    local name = cjson.encode(step)
    if not find_text(completed, name .. ':{"stepName"', 1, true) then
      local waits = record.status == 'in_progress' and run.state ~= RUNNING
      local _, more, price = consumption(record)
      text = text .. (completed .. text == '' and '' or ',')
        .. analytics(name, waits and 'pending' or record.status, cjson.encode(record))
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

-- Everything behind the analytics of completed steps.
local function ending(run, layout)
  local begun, current, tokens, cost = '', nil, layout.tokens, layout.cost
  if run.progress and run.progress ~= '{}' then
    local more, price
    begun, current, more, price = under_way(run, layout.completed)
    tokens, cost = tokens + more, cost + price
  end
  local failure = run.failure
  if run.state == CANCELLED then
    failure = cjson.encode({name = 'Cancelled', message = run.reason or 'the run was cancelled'})
  end
  return begun .. '},"updatedAt":' .. NOW .. ',"status":"' .. STATUS[run.state] .. '","validationFailures":'
    .. (layout.bad == 0 and '{}' or failures(run)) .. ',"totalTokens":' .. (tokens == 0 and '0' or tokens)
    .. ',"totalCost":' .. (cost == 0 and '0' or format('%.17g', cost)) .. ',"totalDurationMs":'
    .. math.floor(1000 * math.max(0, (run.finished or now) - layout.started) + 0.5)
    .. (current and ',"currentStep":' .. current or '') .. (failure and ',"error":' .. failure or '') .. '}'
end

-- Write a document from a on: these results, and what comes behind them.
local function write_from(run, layout, results)
  local key = PREFIX .. 'pipeline_state:' .. run.id
  local text = results .. '},"stepAnalytics":{' .. layout.completed .. ending(run, layout)
  local size, over = layout.a + #text, run.state >= SUCCEEDED
  if layout.a == 0 and over then
    call('SET', key, text, 'EX', KEPT)
  elseif layout.a == 0 then
    call('SET', key, text)
  else
    call('SETRANGE', key, layout.a, size < layout.size and text .. string.rep(' ', layout.size - size) or text)
    if over then
      call('EXPIRE', key, KEPT)
    end
  end
  if not over then
    put(run, 'd', struct.pack(LAYOUT, layout.a + #results, math.max(size, layout.size), layout.results, layout.tokens,
      layout.bad, layout.cost, layout.started) .. layout.completed)
  end
end

-- Add a completed step. What it adds to the results: JSON already, or where it is when it is too large to be here.
local function add(layout, name, skipped, record, value)
  local text, tokens, cost = analytics(name, skipped and 'skipped' or 'completed', record)
  layout.tokens, layout.cost = layout.tokens + tokens, layout.cost + cost
  layout.completed = layout.completed == '' and text or layout.completed .. ',' .. text
  if skipped then
    return ''
  end
  layout.results = layout.results + 1
  return (layout.results > 1 and ',' or '') .. name .. ':'
    .. (string.sub(value, 1, 1) == '@' and cjson.encode(value) or value)
end

-- A document from its beginning: of a run and its completed steps (name, skipped, record, value).
local function compose(run, steps)
  local layout = {
    a = 0, size = 0, results = 0, tokens = 0, bad = run.bad or 0, cost = 0, started = run.started or now, completed = '',
  }
  local results = {'{"version":"1.0","reportId":' .. cjson.encode(run.id) .. ',"userId":' .. cjson.encode(run.tenant)
    .. ',"createdAt":' .. (run.created == now and NOW or iso(run.created)) .. ',"completedResults":{'}
  for _, step in ipairs(steps) do
    results[#results + 1] = add(layout, cjson.encode(step[1]), step[2], step[3], step[4])
  end
  write_from(run, layout, table.concat(results))
end

-- Make a document anew from all that is stored.
local function rebuild(id)
  local run, steps = stored(id), {}
  local all = call('HGETALL', RUN .. id)
  for i = 1, #all, 2 do
    local name = match(all[i], '^c(.+)%z$')
    if name then
      local value, _, _, _, record = decode(all[i + 1])
      steps[#steps + 1] = {name, find_text(record, '"status":"skipped"', 1, true), record, value,
        tonumber(match(record, '"started":([%d.]+)') or 0)}
    elseif all[i] == 'p' then
      run.progress = all[i + 1]
    elseif all[i] == 'e' then
      run.failure = all[i + 1]
    end
  end
  table.sort(steps, function(x, y) return x[5] < y[5] end)
  compose(run, steps)
  if #run.written > 0 then
    call('HSET', RUN .. id, unpack(run.written))
  end
end

function write_documents()
  for id in pairs(to_rebuild) do
    if call('EXISTS', RUN .. id) == 1 then
      rebuild(id)
    end
  end
end

-- Bring the document up to date with a run that has changed, or of which `c` (a SaveCheckpoint) has completed a step.
-- `d` is the run's field; `is_first` says that there was nothing to show before. The run is written by whoever calls.
local function show(run, d, c, is_first)
  if not WANTED or to_rebuild[run.id] then
    return
  end
  if d then
    local layout, rest = {}, nil
    layout.a, layout.size, layout.results, layout.tokens, layout.bad, layout.cost, layout.started, rest =
      struct.unpack(LAYOUT, d)
    layout.completed, layout.bad = string.sub(d, rest), run.bad or layout.bad
    if call('STRLEN', PREFIX .. 'pipeline_state:' .. run.id) ~= layout.size then
      to_rebuild[run.id] = true -- somebody has changed or deleted it
    else
      write_from(run, layout, c and add(layout, cjson.encode(c[3]), c[10], c[9], c[5]) or '')
    end
  elseif is_first then
    if not run.tenant then
      read_spec(run, call('HGET', RUN .. run.id, 's'))
    end
    if run.inherited then
      to_rebuild[run.id] = true
    else
      compose(run, c and {{c[3], c[10], c[9], c[5]}} or {})
    end
  else
    to_rebuild[run.id] = true
  end
end
