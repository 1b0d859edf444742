-- Where a run is to be found, by its state. Whatever changes a state calls `leave` before and
-- `enter` after.

local keys, run, writes = require('keys'), require('run'), require('writes')
local call, decode = redis.call, cmsgpack.unpack
local H = keys.H
local lanes = {}

local indexes = {}

-- Whether a lane is fifo; and its head policy.
function indexes.lane(name)
  if lanes[name] == nil then
    local packed = call('HGET', H .. 'lanes', name)
    lanes[name] = packed and {decode(packed)} or {'parallel', 'dead-letter'}
  end
  return lanes[name][1] == 'fifo', lanes[name][2]
end

local function count(self, by)
  local field = self.pipeline .. '\0' .. self.lane .. '\0' .. run.NAMES[self.state]
  writes.sum(H .. 'counts:' .. self.tenant, field, by)
  if self.state == run.RUNNING then
    writes.sum(H .. 'running', self.tenant, by)
    writes.sum(H .. 'running:' .. self.lane, self.tenant, by)
  end
end

-- The queues that a queued run may be in, by name.
local function queue_of(self)
  local name = self.tenant .. '\0' .. self.pipeline .. '\0' .. self.priority
  return H .. 'ready:' .. self.lane .. '\0' .. name, name
end

local function line_up(self)
  local is_fifo = indexes.lane(self.lane)
  if is_fifo then
    writes.add(H .. 'fifo:' .. self.lane, self.seq, self.id)
  end
  if self.due > 0 then
    writes.add(H .. 'delayed:' .. self.lane, self.due, self.id)
  elseif not is_fifo then
    local queue, name = queue_of(self)
    writes.add(queue, self.seq, self.id)
    writes.add(H .. 'queues:' .. self.lane, 0, name)
  end
end

local function leave_line(self)
  local is_fifo = indexes.lane(self.lane)
  if is_fifo then
    writes.remove(H .. 'fifo:' .. self.lane, self.id)
  end
  if self.due > 0 then
    writes.remove(H .. 'delayed:' .. self.lane, self.id)
  elseif not is_fifo then
    writes.remove((queue_of(self)), self.id)
  end
end

local function hold_slot(self)
  local slot = self.tenant .. '\0' .. self.pipeline
  if self.state <= run.PAUSED then
    call('HSET', H .. 'slots', slot, self.id)
  elseif call('HGET', H .. 'slots', slot) == self.id then
    call('HDEL', H .. 'slots', slot)
  end
end

local function ended_in(self)
  return H .. (self.state == run.FAILED and 'failed' or 'finished')
end

function indexes.enter(self)
  local state = self.state
  count(self, 1)
  if self.unique then
    hold_slot(self)
  end
  if state == run.QUEUED then
    line_up(self)
  elseif state == run.RUNNING then
    writes.add(H .. 'leases', self.until_, self.id)
  elseif state ~= run.SUCCEEDED then
    writes.add(H .. 'state:' .. run.NAMES[state], self.seq, self.id)
  end
  if self.finished > 0 then
    writes.add(ended_in(self), self.finished, self.id)
  end
  if self.holds > 0 then
    writes.add(H .. 'blocked:' .. self.lane, self.seq, self.id)
  end
end

function indexes.leave(self)
  local state = self.state
  count(self, -1)
  if state == run.QUEUED then
    leave_line(self)
  elseif state == run.RUNNING then
    writes.remove(H .. 'leases', self.id)
  elseif state ~= run.SUCCEEDED then
    writes.remove(H .. 'state:' .. run.NAMES[state], self.id)
  end
  if self.finished > 0 then
    writes.remove(ended_in(self), self.id)
  end
  if self.holds > 0 then
    writes.remove(H .. 'blocked:' .. self.lane, self.id)
  end
end

local tenants = {}

local function each_label(self, labels, change)
  for name, value in pairs(labels) do
    change(H .. 'label:' .. self.tenant .. '\0' .. name .. '\0' .. value)
  end
end

-- A new run: where it is found whatever its state, and where its state belongs.
function indexes.add(self, labels)
  each_label(self, labels, function(key) writes.add(key, self.seq, self.id) end)
  writes.add(H .. 'runs', self.seq, self.id)
  writes.add(H .. 'tenant:' .. self.tenant, self.seq, self.id)
  if not tenants[self.tenant] then
    tenants[self.tenant] = call('SADD', H .. 'tenants', self.tenant)
  end
  indexes.enter(self)
end

-- A run that is deleted.
function indexes.remove(self, labels)
  local slot = self.tenant .. '\0' .. self.pipeline
  indexes.leave(self)
  each_label(self, labels, function(key) writes.remove(key, self.id) end)
  writes.remove(H .. 'runs', self.id)
  writes.remove(H .. 'tenant:' .. self.tenant, self.id)
  for number = 1, self.events do
    writes.remove(H .. 'outbox', 'r' .. self.id .. '\0' .. number)
  end
  if self.key then
    call('HDEL', H .. 'keys', self.tenant .. '\0' .. self.key)
  end
  if self.unique and call('HGET', H .. 'slots', slot) == self.id then
    call('HDEL', H .. 'slots', slot)
  end
end

-- Runs whose delay is over, so many at a time: from now on they can be claimed.
function indexes.end_delays(lane, now)
  local delayed, is_fifo = H .. 'delayed:' .. lane, indexes.lane(lane)
  local due = call('ZRANGEBYSCORE', delayed, '-inf', now, 'LIMIT', 0, 1000)
  for _, id in ipairs(due) do
    local self = run.load(id)
    writes.remove(delayed, id)
    self.available, self.due = 0, 0
    if not is_fifo then -- there it stands in line already
      line_up(self)
    end
    run.save(self)
  end
  if due[1] then
    writes.flush()
  end
end

return indexes
