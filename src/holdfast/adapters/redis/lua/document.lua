-- The state document: pipeline_state:<run>, the JSON that seed 000's tools read. It appears with the first progress or
-- result of a run, is brought up to date by every change of the run, and goes a day after the run has ended.
--
-- It is laid out so that completing a step writes little, however much there is before it:
--
--   {"version":…,"stepAnalytics":{…|…      },"completedResults":{…|},"updatedAt":…,"status":…,…}
--                                  a begun                        b                              size
--                                  <- room ->
--
-- The analytics of a completed step go in at a, where blanks are kept for them; steps that have begun come behind it
-- and are written anew with every change. A result goes in at b, and everything behind it is written anew; what a
-- shorter end leaves over is blanks. When the run is over, the whole is written without them. The layout, which is
-- behind the fence of its run, is
--   steps, results   how many are completed, and how many of these have a result
--   a, room          where the next analytics go, and the bytes up to the brace behind them
--   begun            how many of these bytes steps under way take
--   b, size          where the next result goes, and the size of the whole
--   tokens, cost     of the completed steps
--
-- ARGV[3]  1 when documents are wanted

local WANTED = ARGV[3] == '1'
local KEPT = '86400'
local ROOM = 1000 -- for four steps, more or less; as much is added when it is used up
local LAYOUT = '>I2I2I4I4I4I4I4I8d'
local BETWEEN = '},"completedResults":{'
local STATUS = {'pending', 'running', 'running', 'completed', 'failed', 'failed'}
local NOTHING_USED = ',"inputTokens":0,"outputTokens":0,"totalTokens":0,"cost":0}'
local find_text, match, floor = string.find, string.match, math.floor
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

local function new_layout()
  return {steps = 0, results = 0, a = 0, room = 0, begun = 0, b = 0, size = 0, tokens = 0, cost = 0}
end

local function layout_of(run)
  local steps, results, a, room, begun, b, size, tokens, cost = struct.unpack(LAYOUT, run.layout)
  return {
    steps = steps, results = results, a = a, room = room, begun = begun, b = b, size = size, tokens = tokens,
    cost = cost,
  }
end

local function keep_layout(run, layout)
  run.layout = struct.pack(LAYOUT, layout.steps, layout.results, layout.a, layout.room, layout.begun, layout.b,
    layout.size, layout.tokens, layout.cost)
end

-- Count a completed step. Its analytics and its result, as JSON that follows what is there; a value that is too large
-- to be here is shown as the name of where it is.
local function complete(layout, step, value, record, skipped)
  local name, status = cjson.encode(step), skipped and 'skipped' or 'completed'
  local text, tokens, cost = analytics(layout.steps > 0 and ',' or '', name, status, record)
  layout.steps, layout.tokens, layout.cost = layout.steps + 1, layout.tokens + tokens, layout.cost + cost
  if skipped then
    return text, ''
  end
  layout.results = layout.results + 1
  return text, (layout.results > 1 and ',' or '') .. name .. ':'
    .. (string.sub(value, 1, 1) == '@' and cjson.encode(value) or value)
end

-- Steps that have begun and not completed, which the progress tells of: as JSON that follows the completed ones, which
-- one is current, and the tokens and the cost of all.
local function under_way(run, layout, completed)
  local text, current, tokens, cost = '', nil, layout.tokens, layout.cost
  for step, record in pairs(cjson.decode(run.progress).steps or {}) do
    local name = cjson.encode(step)
    if not find_text(completed, name .. ':{"stepName"', 1, true) then
      local waits = record.status == 'in_progress' and run.state ~= RUNNING
      local _, more, price = consumption(record)
      local comma = (layout.steps > 0 or text ~= '') and ',' or ''
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

-- A document from its beginning: of a run, and the analytics and results of its completed steps. That of a run that is
-- over is not written to again, but made anew if the run is resumed: it needs no layout.
local function compose(run, layout, completed, results)
  local key, over = PREFIX .. 'pipeline_state:' .. run.id, run.state >= SUCCEEDED
  local start = '{"version":"1.0","reportId":' .. cjson.encode(run.key or run.id) .. ',"userId":'
    .. cjson.encode(run.tenant) .. ',"createdAt":' .. iso(run.created) .. ',"stepAnalytics":{' .. completed
  local begun, current, tokens, cost = '', nil, layout.tokens, layout.cost
  if run.progress and run.progress ~= '{}' then
    begun, current, tokens, cost = under_way(run, layout, start)
  end
  local rest = BETWEEN .. results .. ending(run, current, tokens, cost)
  if over then
    run.layout = ''
    call('SET', key, start .. begun .. rest, 'EX', KEPT)
    return
  end
  layout.a, layout.begun, layout.room = #start, #begun, #begun + ROOM
  layout.b = layout.a + layout.room + #BETWEEN + #results
  layout.size = layout.a + layout.room + #rest
  keep_layout(run, layout)
  call('SET', key, start .. begun .. string.rep(' ', ROOM) .. rest)
end

-- The steps that a run has completed: name, value, record, skipped, in the order of their start.
local function steps_of(id)
  local steps = {}
  for _, field in ipairs(call('HKEYS', RUN .. id)) do
    local name = match(field, '^c(.+)%z$')
    if name then
      local value, _, _, _, record = decode(call('HGET', RUN .. id, field))
      steps[#steps + 1] = {name, value, record, find_text(record, '"status":"skipped"', 1, true),
        tonumber(match(record, '"started":([%d.]+)') or 0)}
    end
  end
  table.sort(steps, function(x, y) return x[5] < y[5] end)
  return steps
end

-- Make a document anew from all that is stored.
local function rebuild(id)
  local run, layout, completed, results = stored(id), new_layout(), {}, {}
  local found = call('HMGET', RUN .. id, 'p', 'e')
  run.progress, run.failure = found[1], found[2] or nil
  for i, step in ipairs(steps_of(id)) do
    completed[i], results[i] = complete(layout, step[1], step[2], step[3], step[4])
  end
  compose(run, layout, table.concat(completed), table.concat(results))
  put_fence(run)
  write(run)
end

function write_documents()
  for id in pairs(to_rebuild) do
    if call('EXISTS', RUN .. id) == 1 then
      rebuild(id)
    end
  end
end

-- Make room for so many bytes of analytics. False when somebody has changed or deleted the document.
local function widen(layout, key, needed)
  local text = call('GET', key)
  if not text or #text ~= layout.size then
    return false
  end
  local there, more = layout.a + layout.room, needed + ROOM
  call('SET', key, string.sub(text, 1, there) .. string.rep(' ', more) .. string.sub(text, there + 1))
  layout.room, layout.b, layout.size = layout.room + more, layout.b + more, layout.size + more
  return true
end

-- Write the analytics of a step that was completed and of those under way. False as above.
local function update_steps(layout, key, completed, begun)
  local text = completed .. begun
  if text == '' and layout.begun == 0 then
    return call('STRLEN', key) == layout.size
  end
  if #text > layout.room and not widen(layout, key, #text) then
    return false
  end
  if #text < layout.begun then
    text = text .. string.rep(' ', layout.begun - #text)
  end
  if call('SETRANGE', key, layout.a, text) ~= layout.size then
    return false
  end
  layout.a, layout.room, layout.begun = layout.a + #completed, layout.room - #completed, #begun
  return true
end

-- Write the results behind b, and the end.
local function update_results(layout, key, result, rest)
  local text = result .. rest
  local size = layout.b + #text
  if size < layout.size then
    text, size = text .. string.rep(' ', layout.size - size), layout.size
  end
  call('SETRANGE', key, layout.b, text)
  layout.b, layout.size = layout.b + #result, size
end

-- Write the document of a run that is over as a whole: without blanks, and without a layout. False as above.
local function close(run, layout, key, steps, rest)
  local text = call('GET', key)
  if not text or #text ~= layout.size then
    return false
  end
  local start, results = string.sub(text, 1, layout.a), string.sub(text, layout.a + layout.room + 1, layout.b)
  call('SET', key, start .. steps .. results .. rest, 'EX', KEPT)
  run.layout = ''
  return true
end

-- Write what has changed. False as above.
local function update(run, step, value, record, skipped)
  local key, layout, completed, result = PREFIX .. 'pipeline_state:' .. run.id, layout_of(run), '', ''
  if step then
    completed, result = complete(layout, step, value, record, skipped)
  end
  local begun, current, tokens, cost = '', nil, layout.tokens, layout.cost
  if run.progress and run.progress ~= '{}' then
    begun, current, tokens, cost = under_way(run, layout, call('GETRANGE', key, 0, layout.a - 1) .. completed)
  end
  local rest = ending(run, current, tokens, cost)
  if run.state >= SUCCEEDED then
    return close(run, layout, key, completed .. begun, result .. rest)
  end
  if not update_steps(layout, key, completed, begun) then
    return false
  end
  update_results(layout, key, result, rest)
  keep_layout(run, layout)
  return true
end

-- Tenant and key of a run, when it was created, and whether it takes over results.
local function origin_of(id)
  local tenant, _, _, _, key, _, _, _, created, inherited = decode(call('HGET', RUN .. id, 's'))
  return tenant, key, created, inherited
end

-- Bring the document up to date with a run that has changed, or of which a step has completed: `again` if it had
-- completed before. Who calls writes the run afterwards.
local function show(run, again, step, value, record, skipped)
  if not WANTED or to_rebuild[run.id] then
    return
  end
  if run.layout ~= '' then
    to_rebuild[run.id] = again or not update(run, step, value, record, skipped) or nil
    return
  end
  if not run.tenant then
    run.tenant, run.key, run.created, run.inherited = origin_of(run.id)
  end
  if run.is_new and not run.inherited then
    local layout, completed, result = new_layout(), '', ''
    if step then
      completed, result = complete(layout, step, value, record, skipped)
    end
    compose(run, layout, completed, result)
  else
    to_rebuild[run.id] = true
  end
end
