-- An attempt at a run: claimed under a lease, written under its fence, settled once.
-- Commands with a fence answer true, or false when it refused them; then nothing was written.

local LOG_LIMIT = 10000
local PROMOTED = 1000 -- runs whose delay has ended that one claim moves on

-- --- claiming ---

local function end_delays(lane)
  local due = call('ZRANGEBYSCORE', DELAYED .. lane, '-inf', later, 'LIMIT', 0, PROMOTED)
  for _, id in ipairs(due) do
    local run = load(id)
    call('ZREM', DELAYED .. lane, id)
    run.available = nil
    call('ZADD', ready_key(run), -run.priority, ready_member(run))
    save(run)
  end
end

local function before(a, b)
  if a[1] ~= b[1] then
    return a[1] < b[1]
  end
  return a[2] < b[2]
end

-- The first members of several sorted sets, merged.
local function merged(lane, pipelines, limit)
  local all = {}
  for _, pipeline in ipairs(pipelines) do
    local found = call('ZRANGE', READY .. lane .. '\0' .. pipeline, 0, limit - 1, 'WITHSCORES')
    for i = 1, #found, 2 do
      all[#all + 1] = {tonumber(found[i + 1]), found[i]}
    end
  end
  table.sort(all, before)
  return all
end

local function next_ready(c)
  local ids = {}
  if c.limit < 1 then
    return ids
  end
  if #c.pipelines == 1 then
    for i, member in ipairs(call('ZRANGE', READY .. c.lane .. '\0' .. c.pipelines[1], 0, c.limit - 1)) do
      ids[i] = string.sub(member, 17)
    end
    return ids
  end
  for i, found in ipairs(merged(c.lane, c.pipelines, c.limit)) do
    if i > c.limit then
      break
    end
    ids[i] = string.sub(found[2], 17)
  end
  return ids
end

local function leads(c)
  local found = call('HGET', LOCKS, 'lane:' .. c.lane)
  if not found then
    return false
  end
  local epoch, token, _, _, lasts = decode(found)
  return token and token == c.token and epoch == c.term and lasts > mono
end

local function contains(list, wanted)
  for _, value in ipairs(list) do
    if value == wanted then
      return true
    end
  end
  return false
end

-- From a fifo lane: its first queued run, for its leader, when nothing is under way or in the way.
local function head_of(c)
  if c.limit < 1 or not leads(c) or call('EXISTS', LEASES .. c.lane, BLOCKED .. c.lane) > 0 then
    return {}
  end
  local id = call('ZRANGE', QUEUE .. c.lane, 0, 0)[1]
  local run = id and load(id)
  if run and not run.available and contains(c.pipelines, run.pipeline) then
    return {id}
  end
  return {}
end

local function start(run, c, worker)
  run.epoch = raised(run.epoch)
  run.attempts = run.attempts + 1
  change(run, RUNNING, 'run.started',
    format('{"attempt":%d,"worker":%s,"epoch":%d}', run.attempts, worker, run.epoch), nil, c.ttl)
  run.worker, run.started = c.worker, run.started or now
  call('SET', PREFIX .. 'pipeline_lock:' .. run.id, c.worker .. '#' .. format('%d', run.epoch),
    'PX', max(1, floor_of(c.ttl * 1000)))
  save(run)
end

on.Claim = function(c)
  end_delays(c.lane)
  local ids = lane_of(c.lane) == 'fifo' and head_of(c) or next_ready(c)
  local claimed, size, worker = {}, 0, cjson.encode(c.worker)
  for i, id in ipairs(ids) do
    local run = load(id)
    local text = call('HMGET', RUN .. id, 'i', 'p')
    size = size + #text[1]
    if i > 1 and size > c.max_bytes then
      break
    end
    local resumed = run.epoch > 0 or run.inherited or false
    start(run, c, worker)
    claimed[i] = {id, run.tenant, run.pipeline, run.lane, run.epoch, run.attempts, run.limit, text[1],
      text[2] or '{}', resumed}
  end
  return claimed
end

on.Renew = function(c)
  local lost, lasts = {}, mono + c.ttl
  for _, pair in ipairs(c.held) do
    local run = held(pair[1], pair[2])
    if not run then
      lost[#lost + 1] = pair
    elseif lasts > run.lasts then
      run.lasts = lasts
      save(run)
      call('ZADD', LEASES .. run.lane, lasts, run.id)
      call('PEXPIRE', PREFIX .. 'pipeline_lock:' .. run.id, max(1, floor_of(c.ttl * 1000)))
    end
  end
  return lost
end

-- --- writing under the fence ---

-- Store a checkpoint of a run that is held. A step that this epoch saved before completes only once.
local function keep(run, c)
  local step, key, epoch = c[3], c[4], c[2]
  local field = checkpoint_field(step, key)
  if key == '' then
    local found = call('HGET', RUN .. run.id, field)
    local saved_by = found and select(6, decode(found))
    if saved_by ~= epoch then
      record(run, c[10] and 'step.skipped' or 'step.completed', c[9])
    end
  end
  call('HSET', RUN .. run.id, field, pack(c[5], c[6], c[7], c[8], c[9], epoch))
end

on.SaveCheckpoint = function(c)
  local run = held(c[1], c[2])
  if not run then
    return false
  end
  keep(run, c)
  if c[4] == '' then
    save(run)
  end
  return true
end

local function failures_of(run, step)
  local count = 0
  for _, entry in ipairs(call('LRANGE', BAD .. run.id, 0, -1)) do
    if decode(entry) == step then
      count = count + 1
    end
  end
  return count
end

-- Answers how many checkpoints of the step are in quarantine, or false. A repeated command finds nothing left to take
-- out and only learns the number again.
on.Quarantine = function(c)
  local run = held(c.run, c.epoch)
  if not run then
    return false
  end
  local field = checkpoint_field(c.step, c.key)
  local found = call('HGET', RUN .. run.id, field)
  if found then
    call('HDEL', RUN .. run.id, field)
    call('RPUSH', BAD .. run.id, pack(c.step, c.key, c.reason, (decode(found)), now))
    call('INCR', PREFIX .. 'pipeline_validation_failure:' .. run.id .. ':' .. c.step)
    run.bad = run.bad + 1
    record(run, 'checkpoint.quarantined', cjson.encode({step = c.step, key = c.key, reason = c.reason}))
    save(run)
  end
  return failures_of(run, c.step)
end

on.SaveProgress = function(c)
  local run = held(c[1], c[2])
  if not run then
    return false
  end
  call('HSET', RUN .. run.id, 'p', c[3])
  return true
end

on.LogLine = function(c)
  local run = held(c[1], c[2])
  if not run then
    return false
  end
  if call('LLEN', LOG .. run.id) < LOG_LIMIT then
    call('RPUSH', LOG .. run.id, pack(now, c[3], c[4], c[5], c[6]))
  end
  return true
end

-- --- settling ---

local function set_error(run, failure)
  if failure then
    call('HSET', RUN .. run.id, 'e', failure)
  else
    call('HDEL', RUN .. run.id, 'e')
  end
end

-- The run ends as failed: one terminal event, and one dead letter unless its lane just goes on.
local function fail(run, failure)
  set_error(run, failure)
  local order, head = lane_of(run.lane)
  change(run, FAILED, 'run.failed', '{"error":' .. (failure or 'null') .. '}')
  if order == 'fifo' and head == 'block' then
    run.holds = true
    call('ZADD', BLOCKED .. run.lane, run.seq, run.id)
  end
  if not (order == 'fifo' and head == 'skip') then
    bury_run(run, failure)
  end
end

-- A result that is the value of the last checkpoint is not stored twice.
local function succeed(run, result, last)
  set_error(run, nil)
  if last and last[4] == '' and last[5] == result then
    run.result_of = last[3]
  elseif result then
    call('HSET', RUN .. run.id, 'o', result)
  end
  change(run, SUCCEEDED, 'run.completed')
end

local function retry(run, failure, delay, deferred)
  if deferred then
    run.attempts = run.attempts - 1
  elseif run.attempts >= run.limit then
    return fail(run, failure)
  end
  change(run, QUEUED, 'run.retrying', format('{"delay":%.17g,"error":%s}', delay, failure or 'null'), nil, delay)
end

-- run, epoch, outcome, result, error, reason, delay, progress, last, deferred
on.Settle = function(c)
  local run = held(c[1], c[2])
  if not run then
    return false
  end
  local outcome, failure, last = c[3], c[5], c[9]
  if last then
    keep(run, last)
  end
  if c[8] ~= '{}' then
    call('HSET', RUN .. run.id, 'p', c[8])
  else
    call('HDEL', RUN .. run.id, 'p')
  end
  if outcome == 'succeeded' then
    succeed(run, c[4], last)
  elseif outcome == 'failed' then
    fail(run, failure)
  else
    set_error(run, failure)
    if outcome == 'retry' then
      retry(run, failure, c[7], c[10])
    else
      run.attempts = run.attempts - 1
      if outcome == 'paused' then
        change(run, PAUSED, 'run.paused', '{"reason":' .. cjson.encode(c[6] or cjson.null) .. '}', c[6])
      else
        change(run, QUEUED, 'run.handed_over')
      end
    end
  end
  save(run)
  return true
end
