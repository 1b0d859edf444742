-- An attempt at a run: claimed under a lease, written under its fence, settled once.
-- Commands with a fence answer true, or false when it refused them; then nothing was written.

local LOG_LIMIT = 10000
local PROMOTED = 1000 -- runs whose delay has ended that one claim moves on
local end_attempt -- how an attempt ends that did not succeed: failing.lua

-- --- claiming ---

local function end_delays(lane)
  local due = call('ZRANGEBYSCORE', H .. 'delayed:' .. lane, '-inf', later, 'LIMIT', 0, PROMOTED)
  for _, id in ipairs(due) do
    local run = load(id)
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

-- The first runs of several queues of one priority, in the order of acceptance: id, key of the queue.
local function first_of(queues, from, to, limit)
  local found = {}
  for i = from, to do
    local entries = call('ZRANGE', queues[i][3], 0, limit - 1, 'WITHSCORES')
    for j = 1, #entries, 2 do
      found[#found + 1] = {entries[j], queues[i][3], tonumber(entries[j + 1])}
    end
  end
  if to > from then
    table.sort(found, function(a, b) return a[3] < b[3] end)
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
  if c.limit < 1 or not leads(c) or call('EXISTS', H .. 'leases:' .. c.lane, H .. 'blocked:' .. c.lane) > 0 then
    return {}
  end
  local head = call('ZRANGE', H .. 'waiting:' .. c.lane, 0, 0, 'WITHSCORES')
  local first, pipeline, number = nil, nil, tonumber(head[2] or math.huge)
  for _, queue in ipairs(queues_of(c.lane)) do
    head = call('ZRANGE', queue[3], 0, 0, 'WITHSCORES')
    if head[1] and tonumber(head[2]) < number then
      first, pipeline, number = {head[1], queue[3]}, queue[2], tonumber(head[2])
    end
  end
  return first and contains(c.pipelines, pipeline) and {first} or {}
end

-- Lease a run. What the worker is told.
local function start(id, found, c, worker)
  local run = as_run(id, found[1], found[2], found[3])
  local resumed = run.epoch > 0 or run.inherited or false
  run.epoch, run.attempts, run.state = raised(run.epoch), run.attempts + 1, RUNNING
  run.worker, run.started, run.lasts, run.reason = c.worker, run.started or now, mono + c.ttl, nil
  tally(run, QUEUED, -1)
  tally(run, RUNNING, 1)
  event(run, 'run.started',
    '{"attempt":' .. run.attempts .. ',"worker":' .. worker .. ',"epoch":' .. run.epoch .. '}')
  save(run)
  call('SET', PREFIX .. 'pipeline_lock:' .. id, c.worker .. '#' .. run.epoch,
    'PX', math.max(1, math.floor(c.ttl * 1000)))
  return {id, run.tenant, run.pipeline, run.lane, run.epoch, run.attempts, run.limit, found[4], found[5] or '{}',
    resumed}
end

on.Claim = function(c)
  write_freed()
  end_delays(c.lane)
  local next = order_of(c.lane) == 'fifo' and head_of(c) or next_of(c)
  local claimed, taken, leases, size = {}, {}, {}, 0
  local worker = next[1] and cjson.encode(c.worker)
  for i, each in ipairs(next) do
    local id, queue = each[1], each[2]
    local found = call('HMGET', RUN .. id, 's', 'f', 'r', 'i', 'p')
    size = size + #found[4]
    if i > 1 and size > c.max_bytes then
      break
    end
    claimed[i] = start(id, found, c, worker)
    taken[queue] = (taken[queue] or 0) + 1
    leases[#leases + 1] = mono + c.ttl
    leases[#leases + 1] = id
  end
  for queue, number in pairs(taken) do
    call('ZREMRANGEBYRANK', queue, 0, number - 1)
  end
  if #leases > 0 then
    call('ZADD', H .. 'leases:' .. c.lane, unpack(leases))
  end
  return claimed
end

-- --- writing under the fence ---

local function holds(epoch, f)
  if not f then
    return false
  end
  local _, state, current, lasts = decode(f)
  return state == RUNNING and current == epoch and lasts > mono
end

-- Put a checkpoint, and the event of a step that this epoch has not saved before. Whether there was one.
local function checkpoint(run, c, found)
  put(run, 'c' .. c[3] .. '\0' .. c[4], pack(c[5], c[6], c[7], c[8], c[9], c[2]))
  if c[4] ~= '' or (found and select(6, decode(found)) == c[2]) then
    return false
  end
  event(run, c[10] and 'step.skipped' or 'step.completed', c[9])
  return true
end

-- run, epoch, step, key, value, checksum, schema, fingerprint, record, skipped
on.SaveCheckpoint = function(c)
  local key = RUN .. c[1]
  local found = call('HMGET', key, 'f', c[4] == '' and 'c' .. c[3] .. '\0' or '-')
  if not holds(c[2], found[1]) then
    return false
  end
  local run = {written = {}}
  run.seq, run.state, run.epoch, run.lasts, run.last = decode(found[1])
  if checkpoint(run, c, found[2]) then
    put(run, 'f', fence(run))
  end
  call('HSET', key, unpack(run.written))
  return true
end

-- run, epoch, progress
on.SaveProgress = function(c)
  if not holds(c[2], call('HGET', RUN .. c[1], 'f')) then
    return false
  end
  call('HSET', RUN .. c[1], 'p', c[3])
  return true
end

-- run, epoch, level, step, message, fields
on.LogLine = function(c)
  if not holds(c[2], call('HGET', RUN .. c[1], 'f')) then
    return false
  end
  local log = H .. 'log:' .. c[1]
  if call('LLEN', log) < LOG_LIMIT then
    call('RPUSH', log, pack(now, c[3], c[4], c[5], c[6]))
  end
  return true
end

-- A result that is the value of the last checkpoint is not stored twice.
local function succeed(run, result, last)
  if last and last[4] == '' and last[5] == result then
    run.result_of = last[3]
  elseif result then
    put(run, 'o', result)
  end
  run.state, run.finished, run.reason = SUCCEEDED, now, nil
  ended[#ended + 1] = run.id
  event(run, 'run.completed')
end

-- run, epoch, outcome, result, error, reason, delay, progress, last, deferred
on.Settle = function(c)
  local key, last = RUN .. c[1], c[9]
  local found = call('HMGET', key, 's', 'f', 'r', last and 'c' .. last[3] .. '\0' .. last[4] or '-', 'p', 'e')
  if not holds(c[2], found[2]) then
    return false
  end
  local run = as_run(c[1], found[1], found[2], found[3])
  if found[5] or found[6] then
    call('HDEL', key, 'p', 'e')
  end
  if c[8] ~= '{}' then
    put(run, 'p', c[8])
  end
  if last then
    checkpoint(run, last, found[4])
  end
  set_free(run)
  run.lasts = 0
  tally(run, RUNNING, -1)
  if c[3] == 'succeeded' then
    succeed(run, c[4], last)
  else
    end_attempt(run, c)
  end
  tally(run, run.state, 1)
  save(run)
  loud = true
  return true
end
