-- An attempt at a run: claimed under a lease, written under its fence, settled once.
-- Commands with a fence answer true, or false when it refused them; then nothing was written.

local LOG_LIMIT = 10000
local AT_ONCE = 1000 -- runs that one command claims, or whose delay it ends
local end_attempt -- how an attempt ends that did not succeed: failing.lua

-- --- claiming ---

local function end_delays(lane)
  local due = call('ZRANGEBYSCORE', H .. 'delayed:' .. lane, '-inf', later, 'LIMIT', 0, AT_ONCE)
  for _, id in ipairs(due) do
    local run = find(id)
    call('ZREM', H .. 'delayed:' .. lane, id)
    call('ZREM', H .. 'waiting:' .. lane, id)
    run.available = nil
    line_up(run)
    save(run)
  end
end

local function contains(list, wanted)
  for _, value in ipairs(list) do
    if value == wanted then
      return true
    end
  end
  return false
end

-- The ready queues of a lane: priority, pipeline, key of each, the highest priority first.
local function queues_of(lane, pipelines)
  local found = {}
  for _, name in ipairs(call('SMEMBERS', H .. 'queues:' .. lane)) do
    local priority, pipeline = string.match(name, '^(%Z*)%z(.*)$')
    if not pipelines or contains(pipelines, pipeline) then
      found[#found + 1] = {tonumber(priority), pipeline, H .. 'ready:' .. lane .. '\0' .. name}
    end
  end
  table.sort(found, function(a, b) return a[1] > b[1] end)
  return found
end

-- The first runs of several queues of one priority, in the order of acceptance. Runs of this batch are the last of
-- their queues and come as they are; of the others this gives id and number.
local function first_of(queues, from, to, limit)
  local found = {}
  for i = from, to do
    local key = queues[i][3]
    local entries = call('ZRANGE', key, 0, limit - 1, 'WITHSCORES')
    for j = 1, #entries, 2 do
      found[#found + 1] = {id = entries[j], seq = tonumber(entries[j + 1]), queue = key}
    end
    for j = 1, math.min(#(fresh[key] or {}), limit - #entries / 2) do
      local run = fresh[key][j]
      run.queue = key
      found[#found + 1] = run
    end
  end
  if to > from then
    table.sort(found, function(a, b) return a.seq < b.seq end)
  end
  return found
end

-- The next runs of a parallel lane: by priority, then in the order of acceptance.
local function next_of(c)
  local queues, found, from = queues_of(c.lane, c.pipelines), {}, 1
  while from <= #queues and #found < c.limit do
    local to = from
    while queues[to + 1] and queues[to + 1][1] == queues[from][1] do
      to = to + 1
    end
    for _, each in ipairs(first_of(queues, from, to, c.limit - #found)) do
      if #found < c.limit then
        found[#found + 1] = each
      end
    end
    from = to + 1
  end
  return found
end

local function leads(c)
  local found = call('HGET', H .. 'locks', 'lane:' .. c.lane)
  if not found then
    return false
  end
  local epoch, token, _, _, lasts = decode(found)
  return token and token == c.token and epoch == c.term and lasts > mono
end

-- The head of a fifo lane, for its leader, when nothing is under way or in the way. Delayed runs keep their place.
local function head_of(c)
  write_queues()
  if c.limit < 1 or not leads(c) or call('EXISTS', H .. 'leases:' .. c.lane, H .. 'blocked:' .. c.lane) > 0 then
    return {}
  end
  local found = call('ZRANGE', H .. 'waiting:' .. c.lane, 0, 0, 'WITHSCORES')
  local head, pipeline, number = nil, nil, tonumber(found[2] or math.huge)
  for _, queue in ipairs(queues_of(c.lane)) do
    found = call('ZRANGE', queue[3], 0, 0, 'WITHSCORES')
    if found[1] and tonumber(found[2]) < number then
      head, pipeline, number = {id = found[1], queue = queue[3]}, queue[2], tonumber(found[2])
    end
  end
  return head and contains(c.pipelines, pipeline) and {head} or {}
end

-- Take as many runs from the start of each queue.
local function take(taken)
  for key, numbers in pairs(taken) do
    if numbers.old > 0 then
      call('ZREMRANGEBYRANK', key, 0, numbers.old - 1)
    end
    if numbers.new > 0 then
      local queue = fresh[key]
      for i = 1, #queue do
        queue[i] = queue[i + numbers.new]
      end
    end
  end
end

-- A run with its input: one of this batch, or a stored one.
local function to_be_started(each)
  if each.written then
    return each
  end
  if pending[each.id] then
    save(pending[each.id])
  end
  local found = call('HMGET', RUN .. each.id, 's', 'f', 'r', 'i')
  local run = as_run(each.id, found[1], found[2], found[3])
  run.input = found[4]
  return run
end

-- Lease a run. What the worker is told.
local function start(run, c, worker)
  local again = run.epoch > 0
  run.epoch, run.attempts, run.state = raised(run.epoch), run.attempts + 1, RUNNING
  run.worker, run.started, run.lasts, run.reason = c.worker, run.started or now, mono + c.ttl, nil
  tally(run, QUEUED, -1)
  tally(run, RUNNING, 1)
  local epoch = format('%d', run.epoch)
  local attempt = run.attempts == run.epoch and epoch or format('%d', run.attempts)
  event(run, 'run.started', '{"attempt":' .. attempt .. ',"worker":' .. worker.json .. ',"epoch":' .. epoch .. '}')
  if again then
    local found = call('HMGET', RUN .. run.id, 'p', 'd')
    run.progress = found[1] or nil
    if found[2] then
      show(run, found[2])
    end
  end
  save(run)
  call('SET', PREFIX .. 'pipeline_lock:' .. run.id, c.worker .. '#' .. epoch, 'PX', worker.ttl)
  return {run.id, run.tenant, run.pipeline, run.lane, run.epoch, run.attempts, run.limit, run.input,
    run.progress or '{}', again or run.inherited or false}
end

-- Note which runs are running, and from when on it is worth while to look for leases that have ended.
local function note_leases(c, ids)
  local first = call('HGET', H .. 'leases', c.lane)
  call('SADD', H .. 'leases:' .. c.lane, unpack(ids))
  if not first or mono + c.ttl < tonumber(first) then
    call('HSET', H .. 'leases', c.lane, mono + c.ttl)
  end
end

on.Claim = function(c)
  c.limit = math.min(c.limit, AT_ONCE)
  write_freed()
  end_delays(c.lane)
  local next = order_of(c.lane) == 'fifo' and head_of(c) or next_of(c)
  local claimed, taken, started, size = {}, {}, {}, 0
  local worker = next[1] and {json = cjson.encode(c.worker), ttl = format('%d', math.max(1, c.ttl * 1000))}
  for i, each in ipairs(next) do
    local run = to_be_started(each)
    size = size + #run.input
    if i > 1 and size > c.max_bytes then
      break
    end
    claimed[i] = start(run, c, worker)
    local numbers = within(taken, each.queue)
    numbers.old = (numbers.old or 0) + (each == run and 0 or 1)
    numbers.new = (numbers.new or 0) + (each == run and 1 or 0)
    started[i] = run.id
  end
  take(taken)
  if started[1] then
    note_leases(c, started)
  end
  return claimed
end

-- --- writing under the fence ---

-- Fields of a run, its fence first, if the holder of this epoch may still write to it.
local function held(id, epoch, ...)
  if pending[id] then
    save(pending[id])
  end
  local found = call('HMGET', RUN .. id, 'f', ...)
  if not found[1] then
    return nil
  end
  local _, state, current, lasts = decode(found[1])
  return state == RUNNING and current == epoch and lasts > mono and found or nil
end

-- As much of a run as its fence tells: only for one that is running.
local function fenced_run(id, f)
  local number, state, epoch, lasts, last, started = decode(f)
  return {
    id = id, seq = number, state = state, epoch = epoch, lasts = lasts, last = last, started = started, written = {},
  }
end

-- A step's checkpoint is about to go or to be replaced: let the event that refers to its record keep it.
local function keep_record(run, step, before)
  local record = select(5, decode(before))
  for number = run.last, 1, -1 do
    local kind, at, data, place, of = decode(call('HGET', RUN .. run.id, 'e' .. number))
    if of == step and not data then
      call('HSET', RUN .. run.id, 'e' .. number, pack(kind, at, record, place))
      return
    end
  end
end

-- Put a checkpoint, and the event of a step that this epoch has not saved before. Whether there was one.
local function checkpoint(run, c, before)
  local is_step = c[4] == ''
  if is_step and before then
    keep_record(run, c[3], before)
  end
  put(run, 'c' .. c[3] .. '\0' .. c[4], pack(c[5], c[6], c[7], c[8], c[9], c[2]))
  if not is_step or (before and select(6, decode(before)) == c[2]) then
    return false
  end
  event(run, c[10] and 'step.skipped' or 'step.completed', nil, c[3])
  return true
end

-- run, epoch, step, key, value, checksum, schema, fingerprint, record, skipped
on.SaveCheckpoint = function(c)
  local is_step = c[4] == ''
  local found
  if is_step then
    found = held(c[1], c[2], 'c' .. c[3] .. '\0', 'd')
  else
    found = held(c[1], c[2])
  end
  if not found then
    return false
  end
  local run = fenced_run(c[1], found[1])
  local is_first = run.last == 2 and not found[2] -- queued and started are all that it did so far
  if checkpoint(run, c, found[2]) then
    put_fence(run)
  end
  if is_step then
    show(run, not found[2] and found[3], c, is_first)
  end
  write(run)
  return true
end

-- run, epoch, progress
on.SaveProgress = function(c)
  local found = held(c[1], c[2], 'd')
  if not found then
    return false
  end
  local run = fenced_run(c[1], found[1])
  run.progress = c[3]
  put(run, 'p', c[3])
  show(run, found[2], nil, run.last == 2)
  write(run)
  return true
end

-- run, epoch, level, step, message, fields
on.LogLine = function(c)
  if not held(c[1], c[2]) then
    return false
  end
  local log = H .. 'log:' .. c[1]
  if call('LLEN', log) < LOG_LIMIT then
    call('RPUSH', log, pack(now, c[3], c[4], c[5], c[6]))
  end
  return true
end

-- The commonest ending touches no more of a run than its fence. A result that is the value of the last checkpoint is
-- not stored twice.
local function succeed(run, result, last)
  if last and last[4] == '' and last[5] == result then
    run.result_of = last[3]
  elseif result then
    put(run, 'o', result)
  end
  run.state, run.finished = SUCCEEDED, now
  ended[#ended + 1] = run.id
  event(run, 'run.completed')
  put_fence(run)
end

-- run, epoch, outcome, result, error, reason, delay, progress, last, deferred
on.Settle = function(c)
  local last, success = c[9], c[3] == 'succeeded'
  local found = held(c[1], c[2], 's', 'd', 'p', 'e', last and 'c' .. last[3] .. '\0' .. last[4] or '-',
    success and '-' or 'r')
  if not found then
    return false
  end
  local run = success and fenced_run(c[1], found[1]) or as_run(c[1], found[2], found[1], found[7])
  local is_first = run.last == 2 and not found[6]
  if success then
    read_spec(run, found[2])
  end
  run.progress, run.lasts = c[8], 0
  if found[3] or found[4] or found[5] then
    call('HDEL', RUN .. run.id, 'd', 'p', 'e')
  end
  if c[8] ~= '{}' then
    put(run, 'p', c[8])
  end
  if last then
    checkpoint(run, last, found[6])
  end
  set_free(run)
  tally(run, RUNNING, -1)
  if success then
    succeed(run, c[4], last)
  else
    end_attempt(run, c)
  end
  tally(run, run.state, 1)
  show(run, not found[6] and found[3], last and last[4] == '' and last or nil, is_first)
  if success then
    write(run)
  else
    save(run)
  end
  loud = true
  return true
end
