-- The state document: pipeline_state:<run>, the JSON that seed 000's tools read. It appears with the first progress of a
-- run or with its end, follows every change of its state, and goes a day after the run has ended: with a time to live, or,
-- if it has succeeded, with all others of its batch. A time to live for each of them would be another command in the log
-- and another look-up whenever any key is looked up, a sixth of the server's time.
--
-- It is always written as a whole. A step that is completed does not write it: the worker's next word on its progress
-- does, half a second later at most, or the end of the attempt.
--
-- ARGV[3]  1 when documents are wanted

local WANTED = ARGV[3] == '1'
local KEPT = '86400'
local to_show = {} -- runs whose document is written after everything else
local succeeded = {} -- keys and documents of runs that succeeded, to be written by one command
local made
local documents = {} -- what the others call; one name, since a function knows 60 of those outside of it

-- What puts a document together. It is made when it is needed: most calls need nothing of it, and would wait for it.
local function writing()
  if made then
    return made
  end
  local STATUS = {'pending', 'running', 'running', 'completed', 'failed', 'failed'}
  local match, floor = string.match, math.floor
  local moments, quoted = {}, {}

  -- The start of an RFC 3339 time, for a second since 1970. Most steps of a batch end in the same few seconds.
  local function moment(second)
    local text = moments[second]
    if not text then
      local rest = second % 86400
      local z = (second - rest) / 86400 + 719468 -- from days to a civil date: years begin in March, eras have 146097 days
      local era = floor(z / 146097)
      local doe = z - era * 146097
      local yoe = floor((doe - floor(doe / 1460) + floor(doe / 36524) - floor(doe / 146096)) / 365)
      local doy = doe - (365 * yoe + floor(yoe / 4) - floor(yoe / 100))
      local mp = floor((5 * doy + 2) / 153)
      local month = mp < 10 and mp + 3 or mp - 9
      text = format('"%04d-%02d-%02dT%02d:%02d:%02d', yoe + era * 400 + (month <= 2 and 1 or 0), month,
        doy - floor((153 * mp + 2) / 5) + 1, rest / 3600, rest % 3600 / 60, rest % 60)
      moments[second] = text
    end
    return text
  end

  local function iso(time)
    local second = floor(time)
    return moment(second) .. string.sub(format('%.6f', time - second), 2) .. 'Z"'
  end

  local NOW = iso(now)

  -- A name as JSON. Most runs of a batch have the same.
  local function quote(name)
    local text = quoted[name]
    if not text then
      text = cjson.encode(name)
      quoted[name] = text
    end
    return text
  end

  -- One step of stepAnalytics, its tokens and its cost. `name` is JSON, `record` a StepRecord.
  local function analytics(name, status, record)
    local text = name .. ':{"stepName":' .. name .. ',"status":"' .. status .. '"'
    local usage, failure, from, to = record.usage or {}, record.error, record.started, record.finished
    local input, output, cost = usage.input_tokens or 0, usage.output_tokens or 0, usage.cost or 0
    if status == 'pending' then
      return text .. '}', input + output, cost
    end
    local duration = record.duration or from and to and to - from
    return text .. (from and ',"startedAt":' .. iso(from) or '') .. (to and ',"completedAt":' .. iso(to) or '')
      .. (duration and ',"durationMs":' .. math.max(1, floor(1000 * duration + 0.5)) or '')
      .. format(',"inputTokens":%d,"outputTokens":%d,"totalTokens":%d,"cost":%.17g', input, output, input + output, cost)
      .. (failure and ',"errorMessage":' .. cjson.encode(failure.message) .. ',"errorName":'
        .. cjson.encode(failure.name) or '') .. '}', input + output, cost
  end

  -- Count a completed step into what is said of all of them. A value that is too large to be here is shown as the name
  -- of where it is.
  local function complete(done, step, value, record, skipped)
    local name = quote(step)
    local text, tokens, cost = analytics(name, skipped and 'skipped' or 'completed', record)
    done.steps[#done.steps + 1], done.tokens, done.cost = text, done.tokens + tokens, done.cost + cost
    done.names[step] = true
    if not skipped then
      done.results[#done.results + 1] = name .. ':' .. (string.sub(value, 1, 1) == '@' and cjson.encode(value) or value)
    end
  end

  -- Count the steps that have begun and not completed, which the progress tells of. Which of them is current.
  local function under_way(run, done)
    local current
    for step, record in pairs(cjson.decode(run.progress).steps or {}) do
      if not done.names[step] then
        local name = quote(step)
        local waits = record.status == 'in_progress' and run.state ~= RUNNING
        local text, tokens, cost = analytics(name, waits and 'pending' or record.status, record)
        done.steps[#done.steps + 1], done.tokens, done.cost = text, done.tokens + tokens, done.cost + cost
        current = current or not waits and name or nil
      end
    end
    return current
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
  local function ending(run, tokens, cost, current)
    local failure = run.failure
    if run.state == CANCELLED then
      failure = cjson.encode({name = 'Cancelled', message = run.reason or 'the run was cancelled'})
    end
    local spent = run.started > 0 and math.max(0, (run.finished > 0 and run.finished or now) - run.started) or 0
    return ',"updatedAt":' .. NOW .. ',"status":"' .. STATUS[run.state] .. '","validationFailures":'
      .. (run.bad == 0 and '{}' or failures(run))
      .. format(',"totalTokens":%d,"totalCost":%.17g,"totalDurationMs":%d', tokens, cost, floor(1000 * spent + 0.5))
      .. (current and ',"currentStep":' .. current or '') .. (failure and ',"error":' .. failure or '') .. '}'
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
    return (x[3].started or 0) < (y[3].started or 0)
  end

  -- The checkpoints of some steps, in the order of their start: name, value, record.
  local function checkpoints_of(id, names, without)
    local fields, found = {}, {}
    for i, name in ipairs(names) do
      fields[i] = 'c' .. name .. '\0'
    end
    for i, checkpoint in ipairs(fields_of(id, fields)) do
      if checkpoint and names[i] ~= without then
        local value, _, _, _, record = decode(checkpoint)
        found[#found + 1] = {names[i], value, cjson.decode(record)}
      end
    end
    table.sort(found, by_start)
    return found
  end

  -- What is said of the steps that a run has completed, in the order of their start. `last`, with its checkpoint, is a step
  -- that is being written.
  local function steps_of(run, count, last, packed, skipped)
    local done = {steps = {}, results = {}, names = {}, tokens = 0, cost = 0}
    local names = run.inherited and inherited_steps(run.id) or count > 2 and completed_steps(run.id, count)
    for _, step in ipairs(names and checkpoints_of(run.id, names, last) or {}) do
      complete(done, step[1], step[2], step[3], step[3].status == 'skipped')
    end
    if last then
      local value, _, _, _, record = decode(packed)
      complete(done, last, value, cjson.decode(record), skipped)
    end
    return done
  end

  -- A document up to its results, tokens, cost, and which step is current.
  local function beginning(run, ...)
    local done = steps_of(run, ...)
    local current = run.progress and run.progress ~= '{}' and under_way(run, done) or nil
    return '{"version":"1.0","reportId":' .. (run.key and cjson.encode(run.key) or '"' .. run.id .. '"')
      .. ',"userId":' .. quote(run.tenant) .. ',"createdAt":' .. iso(run.created) .. ',"stepAnalytics":{'
      .. table.concat(done.steps, ',') .. '},"completedResults":{' .. table.concat(done.results, ',') .. '}',
      done.tokens, done.cost, current
  end

  -- A document. The first `count` events of the run are stored; `last`, with its checkpoint, is a step that is being written.
  made = function(run, count, last, packed, skipped)
    local text, tokens, cost, current = beginning(run, count, last, packed, skipped)
    return text .. ending(run, tokens, cost, current)
  end
  return made
end

-- Write the document of a run that succeeds, as the worker has made it, who has seen all of its steps: looking them up would
-- take a third of the server's time.
function documents.write(id, text)
  if WANTED then
    local count = #succeeded
    succeeded[count + 1], succeeded[count + 2] = PREFIX .. 'pipeline_state:' .. id, text
  end
end

function documents.write_all()
  for from = 1, #succeeded, 2000 do -- a call takes only so many values
    call('MSET', unpack(succeeded, from, math.min(from + 1999, #succeeded)))
  end
  succeeded = {}
end

-- Write the document of a run of which everything is known: see `writing`.
function documents.show_now(run, ...)
  if not WANTED then
    return
  end
  local text = writing()(run, ...)
  if run.state == SUCCEEDED then
    documents.write(run.id, text)
  elseif run.state > SUCCEEDED then
    call('SET', PREFIX .. 'pipeline_state:' .. run.id, text, 'EX', KEPT)
  else
    call('SET', PREFIX .. 'pipeline_state:' .. run.id, text)
  end
end

-- Write it when everything else is written.
function documents.show(run)
  to_show[run.id] = WANTED or nil
end

-- Let the documents go of runs that ended a day ago, with up to `most` batches of them: as many as come, and then some.
function documents.hide(most)
  local hidden
  for _, entry in ipairs(call('XRANGE', H .. 'ended', '(' .. (meta[8] or '0'), '+', 'COUNT', most)) do
    local ids = decode(entry[2][2])
    if ids[1] > now - KEPT then
      break
    end
    local keys = {}
    for i = 2, #ids do
      keys[i - 1] = PREFIX .. 'pipeline_state:' .. ids[i]
    end
    call('UNLINK', unpack(keys))
    hidden = entry[1]
  end
  if hidden then
    meta[8] = hidden
    call('HSET', KEYS[1], 'hidden', hidden)
  end
end

function writes.documents()
  if succeeded[1] then
    documents.hide(2)
  end
  for id in pairs(to_show) do
    local run = stored(id)
    if run then
      local found = call('HMGET', RUN .. id, 'p', 'e')
      run.progress, run.failure = found[1], found[2] or nil
      documents.show_now(run, run.last)
    end
  end
  documents.write_all()
end
