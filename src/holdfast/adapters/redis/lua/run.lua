-- A run: how it is packed, read and written. Its hash has
--   s  what never changes   tenant, pipeline, lane, seq (number of acceptance), priority, unique,
--                           key, inherits, created, fingerprint, parent, labels,
--                           attributes (both JSON)
--   f  what changes         laid out as CHANGES says, in the order of the fields below
--   w  worker   r  reason   i  input   p  progress   e  error   o  result   h  what it hashes to
--   e<number>        an event: type, at, data, position
--   c<step>\0<key>   a checkpoint: value, checksum, schema, fingerprint, record, epoch

local keys, meta, writes = require('keys'), require('meta'), require('writes')
local call, pack, decode = redis.call, cmsgpack.pack, cmsgpack.unpack
local CHANGES = '>BBI8I4I4I4ddddddd'
local OUTBOX = keys.H .. 'outbox'

local run = {
  QUEUED = 1, RUNNING = 2, PAUSED = 3, SUCCEEDED = 4, FAILED = 5, CANCELLED = 6,
  NAMES = {'queued', 'running', 'paused', 'succeeded', 'failed', 'cancelled'},
}

-- A run from its two packed fields. `fields` are those of its hash that are to be written with it.
function run.unpacked(id, s, f)
  local tenant, pipeline, lane, seq, priority, unique, key, inherits = decode(s)
  local state, holds, epoch, events, attempts, limit, until_, ttl, available, due, delay, started,
    finished = struct.unpack(CHANGES, f)
  return {
    id = id, s = s, tenant = tenant, pipeline = pipeline, lane = lane, seq = seq,
    priority = priority, unique = unique, key = key, inherits = inherits, state = state,
    holds = holds, epoch = epoch, events = events, attempts = attempts, limit = limit,
    until_ = until_, ttl = ttl, available = available, due = due, delay = delay,
    started = started, finished = finished, fields = {},
  }
end

local NEW = struct.pack(CHANGES, run.QUEUED, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)

-- A run that is to be written, from what never changes of it.
function run.new(id, s)
  local self = run.unpacked(id, s, NEW)
  run.put(self, 's', s)
  return self
end

-- A stored run and more fields of its hash, or nil.
function run.load(id, ...)
  local values = call('HMGET', keys.RUN .. id, 's', 'f', ...)
  if not values[1] then
    return nil
  end
  return run.unpacked(id, values[1], values[2]), select(3, unpack(values))
end

-- The fence: the same, if the holder of this epoch may still write to the run.
function run.held(id, epoch, ...)
  local values = call('HMGET', keys.RUN .. id, 's', 'f', ...)
  if not values[1] then
    return nil
  end
  local state, _, current, _, _, _, until_ = struct.unpack(CHANGES, values[2])
  if state ~= run.RUNNING or current ~= epoch or not meta.lasts(until_) then
    return nil
  end
  return run.unpacked(id, values[1], values[2]), select(3, unpack(values))
end

-- The arguments of a command by their names.
function run.named(names, ...)
  local values, named = {...}, {}
  for i, name in ipairs(names) do
    named[name] = values[i]
  end
  return named
end

-- Note a field to be written with the run.
function run.put(self, field, value)
  local count = #self.fields
  self.fields[count + 1], self.fields[count + 2] = field, value
end

function run.checkpoint_field(step, key)
  return 'c' .. step .. '\0' .. key
end

function run.put_checkpoint(self, c)
  run.put(self, run.checkpoint_field(c.step, c.key),
    pack(c.value, c.checksum, c.schema, c.fingerprint, c.record, c.epoch))
end

-- Write its next event.
function run.event(self, kind, data)
  local position = meta.next_position()
  self.events = self.events + 1
  run.put(self, 'e' .. self.events, pack(kind, meta.clock.now, data, position))
  writes.add(OUTBOX, position, 'r' .. self.id .. '\0' .. self.events)
end

-- A call takes only so many values: a run that takes over many results is written in pieces.
function run.save(self)
  local fields = self.fields
  run.put(self, 'f', struct.pack(CHANGES, self.state, self.holds, self.epoch, self.events,
    self.attempts, self.limit, self.until_, self.ttl, self.available, self.due, self.delay,
    self.started, self.finished))
  for from = 1, #fields, 2000 do
    call('HSET', keys.RUN .. self.id, unpack(fields, from, math.min(from + 1999, #fields)))
  end
end

return run
