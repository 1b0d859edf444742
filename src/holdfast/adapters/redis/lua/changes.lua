-- The few acts that every command on runs is made of. Nothing else writes runs, events or counts.
--
-- What the commands of a batch have in common is written once, by `finish`. So are runs that are accepted, which are
-- often claimed in the same batch, and items, of which many belong to one run: who looks at a run calls `flush` before.

local accepted, outbox, ended = {}, {}, {now}
local heads, steps, rest, tallied = {}, {}, {}, {}
local pending, items, queues, fresh, tenants, tallies, freed, unlocked = {}, {}, {}, {}, {}, {}, {}, {}

local writes = {} -- writes what was collected: in the end, or before somebody looks at all of it

local function within(all, name)
  local found = all[name]
  if not found then
    found = {}
    all[name] = found
  end
  return found
end

-- Count a run that has come from one state to another; nil for a run that is new, or gone. Most runs that are counted one
-- after another belong together.
local function tally_of(tenant, pipeline, lane, from, to)
  if tallied.tenant ~= tenant or tallied.pipeline ~= pipeline or tallied.lane ~= lane then
    local counts = within(within(within(tallies, tenant), pipeline), lane)
    tallied = {tenant = tenant, pipeline = pipeline, lane = lane, counts = counts}
  end
  local counts = tallied.counts
  if from then
    counts[from] = (counts[from] or 0) - 1
  end
  if to then
    counts[to] = (counts[to] or 0) + 1
  end
end

local function tally(run, from, to)
  tally_of(run.tenant, run.pipeline, run.lane, from, to)
end

-- --- a run's hash ---

-- Note a field to be written with the run.
local function put(run, field, value)
  local written = run.written
  if not written then
    written = {}
    run.written = written
  end
  local count = #written
  written[count + 1], written[count + 2] = field, value
end

-- Numbers are slow to be turned into text, and most runs have few events.
local EVENT_FIELDS = {'e1', 'e2', 'e3', 'e4', 'e5', 'e6', 'e7', 'e8', 'e9', 'e10', 'e11', 'e12', 'e13', 'e14'}

-- What an event begins with, packed: its kind, the time and its data, `nil` for none. Most events of a batch have the same.
local function head_of_event(kind, data)
  if heads.at ~= now then
    heads = {at = now}
  end
  local found = within(heads, kind)
  local head = found[data]
  if not head then
    head = pack(kind, now, data ~= 'nil' and data or nil)
    found[data] = head
  end
  return head
end

-- A run has another event, by their numbers: it is to be sent, and has the next position.
local function announce(seq, number)
  position = position + 1
  local count = #outbox
  outbox[count + 1], outbox[count + 2] = seq, number
end

-- The present position, packed. `pack` makes a buffer for every call, which takes three times as long.
local function packed_position()
  return position < 4294967296 and pack_fence('>BI4', 0xce, position) or pack(position)
end

-- The name of a step, packed. Most events of a batch are of the same few.
local function packed_step(step)
  local packed = steps[step]
  if not packed then
    packed = pack(step)
    steps[step] = packed
  end
  return packed
end

-- The same, and its field in the run's hash, and what to write there. `step` instead of data: they are what is recorded in
-- the checkpoint of the step.
local function event_of_run(seq, number, kind, data, step)
  announce(seq, number)
  return EVENT_FIELDS[number] or 'e' .. number,
    step and head_of_event(kind, 'nil') .. packed_position() .. packed_step(step)
      or head_of_event(kind, data or '{}') .. packed_position()
end

local function event(run, kind, data, step)
  run.last = run.last + 1
  put(run, event_of_run(run.seq, run.last, kind, data, step))
end

local function put_fence(run)
  put(run, 'f', pack_fence(FENCE, run.seq, run.state, run.epoch, run.lasts, run.last, run.started, run.finished,
    run.bad))
end

-- A call takes only so many values: a run that takes over many results is written in pieces.
local function write(run)
  local written = run.written
  for from = 1, #written, 2000 do
    call('HSET', RUN .. run.id, unpack(written, from, math.min(from + 1999, #written)))
  end
  run.written = nil
end

-- The rest of a run, packed: most runs that are saved one after another have the same.
local function rest_of(attempts, limit, available, due, worker, reason, holds)
  if rest.attempts ~= attempts or rest.limit ~= limit or rest.available ~= available or rest.due ~= due
    or rest.worker ~= worker or rest.reason ~= reason or rest.holds ~= holds then
    rest = {
      attempts = attempts, limit = limit, available = available, due = due, worker = worker, reason = reason,
      holds = holds, packed = pack(attempts, limit, available, due, worker, reason, holds),
    }
  end
  return rest.packed
end

local function save(run)
  pending[run.id] = nil
  put_fence(run)
  put(run, 'r', rest_of(run.attempts, run.limit, run.available, run.due, run.worker, run.reason, run.holds))
  write(run)
end

-- Write what is collected of a run.
local function flush(id)
  if pending[id] then
    save(pending[id])
  elseif items[id] then
    write(items[id])
    items[id] = nil
  end
end

local function find(id)
  flush(id)
  return stored(id)
end

-- --- queues and leases ---

-- The ready queue of a run: its key, and the runs of this batch that are not in it yet.
local function queue_of(run)
  local found = within(within(queues, run.lane), run.priority)
  local queue = found[run.pipeline]
  if not queue then
    local name = run.priority .. '\0' .. run.pipeline
    queue = {key = H .. 'ready:' .. run.lane .. '\0' .. name}
    found[run.pipeline], fresh[queue.key] = queue, queue
    call('SADD', H .. 'queues:' .. run.lane, name)
    call('SADD', H .. 'lanes:busy', run.lane)
  end
  return queue
end

-- Put a queued run into line.
local function line_up(run)
  local queue = queue_of(run)
  if run.available then
    call('ZADD', H .. 'delayed:' .. run.lane, run.due, run.id)
    call('ZADD', H .. 'waiting:' .. run.lane, run.seq, run.id)
  else
    call('ZADD', queue.key, run.seq, run.id)
  end
end

-- A run's lease has ended. Most runs are over before anybody was shown who has them.
local function set_free(id, lane, shown)
  local ids = within(freed, lane)
  ids[#ids + 1] = id
  if shown then
    unlocked[#unlocked + 1] = PREFIX .. 'pipeline_lock:' .. id
  end
end

function writes.freed()
  if next(freed) then
    for lane, ids in pairs(freed) do
      call('SREM', H .. 'leases:' .. lane, unpack(ids))
    end
    freed = {}
  end
  if unlocked[1] then
    call('DEL', unpack(unlocked))
    unlocked = {}
  end
end

function writes.queues()
  for key, queue in pairs(fresh) do
    if #queue > 0 then
      local entries = {}
      for i = #queue, 1, -1 do
        entries[2 * i - 1], entries[2 * i] = queue[i].seq, queue[i].id
        queue[i] = nil
      end
      call('ZADD', key, unpack(entries))
    end
  end
end

-- --- at the end, or before somebody looks at all of it ---

function writes.runs()
  writes.freed()
  writes.queues()
  for _, run in pairs(pending) do
    save(run)
  end
  for id in pairs(items) do
    flush(id)
  end
end

function writes.outbox()
  if #outbox > 0 then
    call('XADD', H .. 'outbox', format('%d-0', position), 'm', pack(outbox))
    outbox = {}
  end
end

function writes.accepted()
  if #accepted > 0 then
    call('XADD', H .. 'runs', format('%d-0', seq), 'm', pack(accepted))
    for tenant, runs in pairs(tenants) do
      call('XADD', H .. 'tenant:' .. tenant, format('%d-0', runs[#runs - 1]), 'm', pack(runs))
      call('SADD', H .. 'tenants', tenant)
    end
    accepted, tenants = {}, {}
  end
end

function writes.ended()
  if #ended > 1 then
    call('XADD', H .. 'ended', format('%d-0', position), 'm', pack(ended))
    ended = {now}
  end
end

function writes.tallies()
  for tenant, pipelines in pairs(tallies) do
    for pipeline, lanes in pairs(pipelines) do
      for lane, counts in pairs(lanes) do
        for state, by in pairs(counts) do
          local field = pipeline .. '\0' .. lane .. '\0' .. NAMES[state]
          if by ~= 0 and call('HINCRBY', H .. 'counts:' .. tenant, field, by) == 0 then
            call('HDEL', H .. 'counts:' .. tenant, field)
          end
        end
      end
    end
  end
  tallies, tallied = {}, {}
end

local conclude = finish

function finish()
  writes.runs()
  writes.outbox()
  writes.accepted()
  writes.ended()
  writes.tallies()
  writes.documents()
  conclude()
end
