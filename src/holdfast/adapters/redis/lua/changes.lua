-- The few acts that every command is made of. Nothing else writes runs, events or counts.
--
-- What every command of a batch would write for itself is collected here and written once, by `finish`.

local meta = call('HMGET', KEYS[1], 'wall', 'mono', 'later', 'seq', 'position', 'generation')
read_clock(meta[1], meta[2], meta[3])
local seq, position = tonumber(meta[4] or 0), tonumber(meta[5] or 0)

-- Epochs of a later generation are above all that an earlier one can have given out: see adopt.lua.
local FLOOR = tonumber(meta[6] or 0) * 1048576

local on = {} -- what to do for each command, by its name
local loud = false -- whether there is something that others may wait for
local accepted, outbox, ended = {}, {}, {now}
local tenants, tallies, known, freed, unlocked = {}, {}, {}, {}, {}

local function raised(epoch)
  return math.max(epoch, FLOOR) + 1
end

-- Count a run of this pipeline, lane and state: by 1 or -1.
local function tally(run, state, by)
  local fields = tallies[run.tenant]
  if not fields then
    fields = {}
    tallies[run.tenant] = fields
  end
  local field = run.pipeline .. '\0' .. run.lane .. '\0' .. NAMES[state]
  fields[field] = (fields[field] or 0) + by
end

-- Note a field to be written by `save`.
local function put(run, field, value)
  local written = run.written
  written[#written + 1] = field
  written[#written + 1] = value
end

local function event(run, kind, data)
  run.last = run.last + 1
  position = position + 1
  outbox[#outbox + 1] = run.seq
  outbox[#outbox + 1] = run.last
  put(run, 'e' .. run.last, pack(kind, now, data or '{}', position))
end

local function fence(run)
  return pack(run.seq, run.state, run.epoch, run.lasts, run.last)
end

local function save(run)
  call('HSET', RUN .. run.id, 'f', fence(run),
    'r', pack(run.attempts, run.limit, run.started, run.available, run.due, run.finished, run.worker, run.reason,
      run.holds, run.bad, run.result_of),
    unpack(run.written))
end

-- Put a queued run into line.
local function line_up(run)
  local lane = run.lane
  local queue = run.priority .. '\0' .. run.pipeline
  local key = H .. 'ready:' .. lane .. '\0' .. queue
  if not known[key] then
    known[key] = true
    call('SADD', H .. 'queues:' .. lane, queue)
    call('SADD', H .. 'lanes:busy', lane)
  end
  if run.available then
    call('ZADD', H .. 'delayed:' .. lane, run.due, run.id)
    call('ZADD', H .. 'waiting:' .. lane, run.seq, run.id)
  else
    call('ZADD', key, run.seq, run.id)
  end
end

-- A run's lease has ended: written before somebody looks at leases.
local function set_free(run)
  local ids = freed[run.lane]
  if not ids then
    ids = {}
    freed[run.lane] = ids
  end
  ids[#ids + 1] = run.id
  unlocked[#unlocked + 1] = PREFIX .. 'pipeline_lock:' .. run.id
end

local function write_freed()
  for lane, ids in pairs(freed) do
    call('ZREM', H .. 'leases:' .. lane, unpack(ids))
  end
  if #unlocked > 0 then
    call('DEL', unpack(unlocked))
    freed, unlocked = {}, {}
  end
end

local function write_outbox()
  if #outbox > 0 then
    call('XADD', H .. 'outbox', format('%d-0', position), 'm', pack(outbox))
    call('HSET', KEYS[1], 'position', position)
    outbox = {}
  end
end

local function write_accepted()
  if #accepted > 0 then
    call('XADD', H .. 'runs', format('%d-0', seq), 'm', pack(accepted))
    call('HSET', KEYS[1], 'seq', seq)
    for tenant, runs in pairs(tenants) do
      call('XADD', H .. 'tenant:' .. tenant, format('%d-0', runs[#runs - 1]), 'm', pack(runs))
      call('SADD', H .. 'tenants', tenant)
    end
    accepted, tenants = {}, {}
  end
end

local function write_ended()
  if #ended > 1 then
    call('XADD', H .. 'ended', format('%d-0', position), 'm', pack(ended))
    ended = {now}
  end
end

-- Write what is left when all commands are applied, or one of them failed: numbers given out stay given out.
local function finish()
  write_freed()
  write_outbox()
  write_accepted()
  write_ended()
  for tenant, fields in pairs(tallies) do
    for field, by in pairs(fields) do
      if by ~= 0 and call('HINCRBY', H .. 'counts:' .. tenant, field, by) == 0 then
        call('HDEL', H .. 'counts:' .. tenant, field)
      end
    end
  end
  if moved then
    call('HSET', KEYS[1], 'wall', now, 'mono', mono, 'later', later)
  end
  if loud then
    call('PUBLISH', H .. 'bell', ARGV[3])
  end
end
