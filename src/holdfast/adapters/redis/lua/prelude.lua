-- What all scripts share: names of keys, how a run is packed, and reading it.
--
-- A script is one text, put together at import time from the files of this folder; it never changes at run time and
-- user data comes in ARGV only. All keys of a store share one prefix and are computed from it, so that a prefix with
-- a hash tag, {like}this, puts all of them into one slot of a cluster.
--
-- KEYS[1]  <prefix>holdfast:meta, which tells a cluster the slot
-- ARGV[1]  the prefix
--
-- Numbers given to redis.call keep all their digits; `..` would round them to 14.

local call = redis.call
local pack, decode = cmsgpack.pack, cmsgpack.unpack
local format, floor_of, min, max = string.format, math.floor, math.min, math.max

local PREFIX = ARGV[1]
local H = PREFIX .. 'holdfast:'
local META = H .. 'meta'              -- hash: schema, seq, position, confirmed, generation, replid, clock
local EVENTS = H .. 'events'          -- stream: all events; ids are positions
local RUNS = H .. 'runs'              -- stream: run ids; ids are numbers of acceptance
local TENANTS = H .. 'tenants'        -- set: tenants that have runs
local LANES = H .. 'lanes'            -- hash: lane -> order and head policy
local BUSY = H .. 'lanes:busy'        -- set: lanes that had runs
local KEYS_TAKEN = H .. 'keys'        -- hash: tenant, key -> run
local SLOTS = H .. 'slots'            -- hash: tenant, pipeline -> live run of a unique pipeline
local COUNTS = H .. 'counts:'         -- hash per tenant: pipeline, lane, state -> number of runs
local LOCKS = H .. 'locks'            -- hash: lock -> epoch, token, owner, acquired, lasts
local HELD = H .. 'locks:held'        -- sorted set: locks by the end of their lease
local AUDIT = H .. 'audit'            -- list: newest first
local LETTERS = H .. 'letters:'       -- sorted sets: dead letters by creation; `all` and `open`, and per tenant

-- per run
local RUN = H .. 'run:'               -- hash: all of a run but its events and logs; see `load`
local LOG = H .. 'log:'               -- list: its log
local BAD = H .. 'quarantine:'        -- list: checkpoints taken out of use
-- per lane
local READY = H .. 'ready:'           -- sorted set per pipeline: by priority, then acceptance
local QUEUE = H .. 'queue:'           -- sorted set: all queued runs by acceptance
local DELAYED = H .. 'delayed:'       -- sorted set: queued runs that wait, by the end of their delay
local LEASES = H .. 'leases:'         -- sorted set: running runs by the end of their lease
local BLOCKED = H .. 'blocked:'       -- sorted set: failed heads that the lane waits for, by acceptance
-- per state, for lists and retention
local STATE = H .. 'state:'           -- sorted set of paused, failed or cancelled runs by acceptance
local FINISHED = H .. 'finished:'     -- sorted set by the time of the end: `failed`, or `over` for the others
local TENANT = H .. 'tenant:'         -- stream: run ids of a tenant; ids are numbers of acceptance
local LETTER = H .. 'letter:'         -- hash: one dead letter

local QUEUED, RUNNING, PAUSED, SUCCEEDED, FAILED, CANCELLED = 1, 2, 3, 4, 5, 6
local NAMES = {'queued', 'running', 'paused', 'succeeded', 'failed', 'cancelled'}

local function joined(...)
  return table.concat({...}, '\0')
end

-- A run's hash. Packed fields hold their values one after another:
--   s  what never changes    tenant, pipeline, lane, fingerprint, key, unique, priority, parent
--   f  what the fence asks   state, epoch, lasts (end of the lease), last (number of its newest event)
--   r  the rest              seq, attempts, limit, created, started, available, due, finished, worker, reason, holds,
--                            inherited, bad (checkpoints in quarantine), result_of (step whose value is the result)
--   h  positions of its events        i  input       p  progress    o  result    e  error
--   d  layout of its state document   c<step>\0<key>  value, checksum, schema, fingerprint, record, epoch
local function read_spec(run, s)
  run.tenant, run.pipeline, run.lane, run.fingerprint, run.key, run.unique, run.priority, run.parent = decode(s)
end

local function read_fence(run, f)
  run.state, run.epoch, run.lasts, run.last = decode(f)
end

local function read_rest(run, r)
  run.seq, run.attempts, run.limit, run.created, run.started, run.available, run.due, run.finished, run.worker,
    run.reason, run.holds, run.inherited, run.bad, run.result_of = decode(r)
end

local function load(id)
  local found = call('HMGET', RUN .. id, 's', 'f', 'r', 'h')
  if not found[2] then
    return nil
  end
  local run = {id = id, positions = found[4] or ''}
  read_spec(run, found[1])
  read_fence(run, found[2])
  read_rest(run, found[3])
  return run
end

local function positions_of(packed)
  local found, offset = {}, 0
  while offset >= 0 and offset < #packed do
    local values = {cmsgpack.unpack_limit(packed, 1000, offset)}
    offset = values[1]
    for i = 2, #values do
      found[#found + 1] = values[i]
    end
  end
  return found
end

local function checkpoint_field(step, key)
  return 'c' .. step .. '\0' .. key
end

local function lane_of(name)
  local found = call('HGET', LANES, name)
  if found then
    local order, head = decode(found)
    return order, head
  end
  return 'parallel', 'dead-letter'
end

-- Lists longer than what one call of Lua may be given.
local function in_pieces(command, key, values)
  for start = 1, #values, 1000 do
    call(command, key, unpack(values, start, min(start + 999, #values)))
  end
end
