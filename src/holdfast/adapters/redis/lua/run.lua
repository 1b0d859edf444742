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
local QUEUED, RUNNING, PAUSED, SUCCEEDED, FAILED = 1, 2, 3, 4, 5
local NAMES = {'queued', 'running', 'paused', 'succeeded', 'failed', 'cancelled'}

-- A run from its two packed fields. `fields` are those of its hash that are to be written with it.
local function unpacked(id, s, f)
  local tenant, pipeline, lane, seq, priority, unique, key, inherits, _, fingerprint = decode(s)
  local state, holds_lane, epoch, events, attempts, attempt_limit, lease_until, lease_ttl,
    available, due, delay, started, finished = struct.unpack(CHANGES, f)
  return {
    id = id, tenant = tenant, pipeline = pipeline, lane = lane, seq = seq, priority = priority,
    unique = unique, key = key, inherits = inherits, fingerprint = fingerprint, state = state,
    holds_lane = holds_lane, epoch = epoch, events = events, attempts = attempts,
    attempt_limit = attempt_limit, lease_until = lease_until, lease_ttl = lease_ttl,
    available = available, due = due, delay = delay, started = started, finished = finished,
    fields = {},
  }
end

-- Note a field to be written with the run.
local function put(self, field, value)
  local count = #self.fields
  self.fields[count + 1], self.fields[count + 2] = field, value
end

-- A run that is to be written, from what never changes of it.
local function new(id, s)
  local self = unpacked(id, s, string.rep('\0', struct.size(CHANGES)))
  self.state = QUEUED
  put(self, 's', s)
  return self
end

-- A stored run and more fields of its hash, or nil.
local function load(id, ...)
  local values = call('HMGET', keys.RUN .. id, 's', 'f', ...)
  if values[1] then
    return unpacked(id, values[1], values[2]), select(3, unpack(values))
  end
end

local function fenced(epoch, self, ...)
  if self and self.state == RUNNING and self.epoch == epoch and meta.lasts(self.lease_until) then
    return self, ...
  end
end

-- The fence: the same as load, if the holder of this epoch may still write to the run.
local function held(id, epoch, ...)
  return fenced(epoch, load(id, ...))
end

-- An event as it is stored, with its position. `member` names it in the outbox.
local function packed_event(kind, data, member)
  local position = meta.next_number('position')
  writes.add(keys.OUTBOX, position, member)
  return pack(kind, meta.clock.now, data, position)
end

-- Write its next event.
local function event(self, kind, data)
  self.events = self.events + 1
  local number = tostring(self.events)
  put(self, 'e' .. number, packed_event(kind, data, 'r' .. self.id .. '\0' .. number))
end

local function checkpoint_field(step, key)
  return 'c' .. step .. '\0' .. key
end

-- Put a checkpoint, given as the fields of SaveCheckpoint; and the event of a step that this epoch
-- has not saved before. `before` is what is stored in its place.
local function save_checkpoint(self, before, saved)
  local _, epoch, step, key, value, checksum, schema, fingerprint, record, skipped = unpack(saved)
  put(self, checkpoint_field(step, key), pack(value, checksum, schema, fingerprint, record, epoch))
  if key == '' and not (before and select(6, decode(before)) == epoch) then
    event(self, skipped and 'step.skipped' or 'step.completed', record)
  end
end

local function save(self)
  put(self, 'f', struct.pack(CHANGES, self.state, self.holds_lane, self.epoch, self.events,
    self.attempts, self.attempt_limit, self.lease_until, self.lease_ttl, self.available, self.due,
    self.delay, self.started, self.finished))
  writes.call_with('HSET', keys.RUN .. self.id, self.fields)
end

return {
  QUEUED = QUEUED, RUNNING = RUNNING, PAUSED = PAUSED, SUCCEEDED = SUCCEEDED, FAILED = FAILED,
  NAMES = NAMES, new = new, load = load, held = held, put = put, packed_event = packed_event,
  event = event, checkpoint_field = checkpoint_field, save_checkpoint = save_checkpoint,
  save = save,
}
