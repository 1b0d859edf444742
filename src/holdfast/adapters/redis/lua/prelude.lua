-- What all scripts share: names of keys, how a run is packed, and reading it.
--
-- A script is one text, put together at import time from the files of this folder; it never changes at run time and
-- user data comes in ARGV only. All keys of a store share one prefix and are computed from it, so that a prefix with
-- a hash tag, {like}this, puts all of them into one slot of a cluster.
--
-- KEYS[1]  <prefix>holdfast:meta, which tells a cluster the slot
-- ARGV[1]  the prefix
--
-- For people, <prefix> and then
--   pipeline_state:<run>                        string: the state document, JSON
--   pipeline_lock:<run>                         string with a time to live: who has the run now, from its first progress on
--   pipeline_validation_failure:<run>:<step>    integer: checkpoints taken out of use
--
-- For us, <prefix>holdfast: and then
--   meta                hash: schema, oldest_usable_schema, replid, floor, seq, position, confirmed, clock, hidden;
--                       while the store takes part in a move also mark and held: see holding.lua. `hidden` is the last
--                       entry of `ended` whose documents are gone
--   run:<run>           hash: all of a run but its log; see below
--   log:<run>           list: its log
--   quarantine:<run>    list: checkpoints taken out of use
--   inbox               stream: submits that have come and are yet to be taken in: see inbox.lua
--   runs                stream: ids of the runs that one batch accepted; its id is the last one's number of acceptance
--   tenant:<tenant>     stream: number, id, number, id, … of a tenant; likewise
--   tenants             set: tenants that had runs
--   keys                hash: tenant, key -> run
--   slots               hash: tenant, pipeline -> live run of a unique pipeline
--   counts:<tenant>     hash: pipeline, lane, state -> number of runs
--   lanes               hash: lane -> order, head policy
--   lanes:busy          set: lanes that had runs
--   queues:<lane>       set: priority, pipeline of each ready queue of a lane
--   ready:<lane>,<priority>,<pipeline>   sorted set: runs to be claimed, by acceptance
--   delayed:<lane>      sorted set: queued runs that wait, by the end of their delay
--   waiting:<lane>      sorted set: the same, by acceptance
--   leases:<lane>       set: running runs
--   leases              hash: lane -> before this time no lease of it ends
--   blocked:<lane>      sorted set: failed heads that a fifo lane waits for, by acceptance
--   state:<state>       sorted set: paused, failed or cancelled runs, by acceptance
--   ended               stream: time, ids of the runs that succeeded or were cancelled in one batch
--   failed              sorted set: failed runs, by the time of the end
--   outbox              stream: number of run and event, number of run and event, … of one batch; its id is the
--                       position of the last
--   letter:<id>         hash: a dead letter
--   letters:all, letters:open, and both with :<tenant>   sorted sets: dead letters, by creation
--   locks               hash: lock -> epoch, token, owner, acquired, lasts
--   locks:held          set: locks that are held, and some that were until lately
--   audit               list: interventions, newest first
--   moving:outbox, moving:ended   sorted sets: what a store that is being filled has yet to put into the streams
--   bell                channel: rung by whoever did something that others may wait for
--
-- Several values in one string are packed one after another (MessagePack), names are joined with a zero byte.
-- Numbers given to redis.call keep all their digits; `..` would round them to 14.

local call, pack, decode, format = redis.call, cmsgpack.pack, cmsgpack.unpack, string.format
local PREFIX = ARGV[1]
local H = PREFIX .. 'holdfast:'
local RUN = H .. 'run:'

local QUEUED, RUNNING, PAUSED, SUCCEEDED, FAILED, CANCELLED = 1, 2, 3, 4, 5, 6
local NAMES = {'queued', 'running', 'paused', 'succeeded', 'failed', 'cancelled'}

-- A run. In its hash:
--   s  what never changes   tenant, pipeline, lane, fingerprint, key, unique, priority, parent, created, inherited
--   f  the fence            seq (number of acceptance), state, epoch, lasts (end of the lease), last (newest event),
--                           started and finished (0: not yet), bad (checkpoints in quarantine): laid out as FENCE says
--   r  the rest             attempts, limit, available, due, worker, reason, holds (its lane)
--   i  input    p  progress    e  error    o  result, or = and the step whose value it is
--   e<number>       an event: type, at, data, position, and perhaps the step that it tells of; without data, its data
--                   are the record of that step's checkpoint. Most runs that succeeded have none for their last event,
--                   `run.completed`: their fence tells when, and its position follows that of the one before
--   c<step>\0<key>  a checkpoint: value, checksum, schema, fingerprint, record, epoch
local FENCE = '>I8BI8dI4ddI2'
local pack_fence, unpack_fence = struct.pack, struct.unpack

-- All of a run. In `written` the fields that are to be written and their values are collected: it begins with space for
-- four of them, which most commands need.
local function as_run(id, s, f, r)
  local tenant, pipeline, lane, fingerprint, key, unique, priority, parent, created, inherited = decode(s)
  local seq, state, epoch, lasts, last, started, finished, bad = unpack_fence(FENCE, f)
  local attempts, limit, available, due, worker, reason, holds = decode(r)
  return {
    id = id, seq = seq, state = state, epoch = epoch, lasts = lasts, last = last, started = started,
    finished = finished, bad = bad,
    written = {nil, nil, nil, nil, nil, nil, nil, nil},
    tenant = tenant, pipeline = pipeline, lane = lane, fingerprint = fingerprint, key = key, unique = unique,
    priority = priority, parent = parent, created = created, inherited = inherited, attempts = attempts, limit = limit,
    available = available, due = due, worker = worker, reason = reason, holds = holds,
  }
end

local function stored(id)
  local found = call('HMGET', RUN .. id, 's', 'f', 'r')
  return found[1] and as_run(id, found[1], found[2], found[3]) or nil
end

-- An event of a run, complete. One that is not stored is told by the fence, and its place is known.
local function event_of(id, packed, fence, known)
  if not packed then
    return 'run.completed', select(7, unpack_fence(FENCE, fence)), '{}', known
  end
  local kind, at, data, place, step = decode(packed)
  return kind, at, data or select(5, decode(call('HGET', RUN .. id, 'c' .. step .. '\0'))), place
end

local function order_of(lane)
  local found = call('HGET', H .. 'lanes', lane)
  if found then
    return decode(found)
  end
  return 'parallel', 'dead-letter'
end
