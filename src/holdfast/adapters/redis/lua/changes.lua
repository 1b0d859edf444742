-- The few acts that every command is made of. Nothing else writes runs, events or counts.
--
-- Counters that every command would touch are kept in local variables and written once, by `finish`.

local meta = call('HMGET', META, 'wall', 'mono', 'later', 'seq', 'position', 'confirmed', 'generation')
read_clock(meta)
local seq, position = tonumber(meta[4] or 0), tonumber(meta[5] or 0)
local confirmed = tonumber(meta[6] or 0)
local first_seq, first_position, first_confirmed = seq, position, confirmed

-- Epochs of a later generation are above all that an earlier one can have given out: see adopt.lua.
local FLOOR = tonumber(meta[7] or 0) * 1048576
local loud = false
local tallies, busy, here = {}, {}, {}
local on = {} -- what to do for each command, by its name

local function raised(epoch)
  return max(epoch, FLOOR) + 1
end

-- --- counting ---

local function tally(run, state, by)
  local fields = tallies[run.tenant]
  if not fields then
    fields = {}
    tallies[run.tenant] = fields
  end
  local field = run.pipeline .. '\0' .. run.lane .. '\0' .. NAMES[state]
  fields[field] = (fields[field] or 0) + by
end

local function write_tallies()
  for tenant, fields in pairs(tallies) do
    for field, by in pairs(fields) do
      if by ~= 0 and call('HINCRBY', COUNTS .. tenant, field, by) == 0 then
        call('HDEL', COUNTS .. tenant, field)
      end
    end
  end
end

-- What is left to write when all commands are applied, or one of them failed: numbers given out stay given out.
local function finish()
  local values = {}
  local function set(name, value)
    values[#values + 1], values[#values + 2] = name, value
  end
  if seq ~= first_seq then set('seq', seq) end
  if position ~= first_position then set('position', position) end
  if confirmed ~= first_confirmed then set('confirmed', confirmed) end
  if moved then set('wall', now) set('mono', mono) set('later', later) end
  if #values > 0 then
    call('HSET', META, unpack(values))
  end
  write_tallies()
end

-- --- events ---

local function record(run, kind, data)
  call('XADD', EVENTS, format('%d-0', position + 1), 'm', pack(run.id, run.last + 1, kind, now, data or '{}'))
  position = position + 1
  run.last = run.last + 1
  run.positions = run.positions .. pack(position)
end

local function note(actor, action, target, reason)
  call('LPUSH', AUDIT, pack(now, actor, action, target, reason))
end

-- --- where a run is to be found, by its state ---

local function ready_key(run)
  return READY .. run.lane .. '\0' .. run.pipeline
end

-- Equal priorities are ordered by their members: in the order of acceptance.
local function ready_member(run)
  return format('%016d', run.seq) .. run.id
end

local function line_up(run)
  call('ZADD', QUEUE .. run.lane, run.seq, run.id)
  if run.available then
    call('ZADD', DELAYED .. run.lane, run.due, run.id)
  else
    call('ZADD', ready_key(run), -run.priority, ready_member(run))
  end
  if not busy[run.lane] then
    busy[run.lane] = true
    call('SADD', BUSY, run.lane)
  end
end

local function leave(run)
  local state = run.state
  if state == QUEUED then
    call('ZREM', QUEUE .. run.lane, run.id)
    call('ZREM', ready_key(run), ready_member(run))
    call('ZREM', DELAYED .. run.lane, run.id)
  elseif state == RUNNING then
    call('ZREM', LEASES .. run.lane, run.id)
    call('DEL', PREFIX .. 'pipeline_lock:' .. run.id)
  elseif state ~= SUCCEEDED then
    call('ZREM', STATE .. NAMES[state], run.id)
    if state == FAILED then
      call('ZREM', FINISHED .. 'failed', run.id)
    end
  end
end

local function arrive(run)
  local state = run.state
  if state == QUEUED then
    line_up(run)
  elseif state == RUNNING then
    call('ZADD', LEASES .. run.lane, run.lasts, run.id)
  elseif state ~= SUCCEEDED then
    call('ZADD', STATE .. NAMES[state], run.seq, run.id)
  end
  if state >= SUCCEEDED then
    call('ZADD', FINISHED .. (state == FAILED and 'failed' or 'over'), run.finished, run.id)
  end
end

-- Give a run the state that an event leads to. Ends its lease and any delay; `worker` and `error` stay.
-- `seconds` is how long the lease of a run lasts that is running now, or how long one waits that is queued.
local function change(run, state, kind, data, reason, seconds)
  leave(run)
  tally(run, run.state, -1)
  run.state, run.reason, run.available = state, reason, nil
  run.finished = state >= SUCCEEDED and now or nil
  run.lasts = state == RUNNING and mono + seconds or 0
  if state == QUEUED and seconds and seconds > 0 then
    run.available, run.due = now + seconds, later + seconds
  end
  arrive(run)
  tally(run, state, 1)
  record(run, kind, data)
  loud = true
end

-- Write a run's row, and whatever else of it: field, value, …
local function save(run, ...)
  call('HSET', RUN .. run.id,
    'f', pack(run.state, run.epoch, run.lasts, run.last),
    'r', pack(run.seq, run.attempts, run.limit, run.created, run.started, run.available, run.due, run.finished,
      run.worker, run.reason, run.holds, run.inherited, run.bad, run.result_of),
    'h', run.positions, ...)
end

-- The run, if the holder of this epoch may still write to it.
local function held(id, epoch)
  local run = load(id)
  if run and run.state == RUNNING and run.epoch == epoch and run.lasts > mono then
    return run
  end
  return nil
end

local function slot_holder(run)
  local id = call('HGET', SLOTS, run.tenant .. '\0' .. run.pipeline)
  if not id or id == run.id then
    return nil
  end
  local other = load(id)
  return other and other.state <= PAUSED and other or nil
end
