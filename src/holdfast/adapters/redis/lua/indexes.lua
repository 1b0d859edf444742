-- The indexes of runs. Whatever changes a run so that its indexes change does it by `update`.

local keys, run, writes = require('keys'), require('run'), require('writes')
local call, decode = redis.call, cmsgpack.unpack
local H = keys.H
local lanes, tenants = {}, {}

-- Whether a lane is fifo.
local function is_fifo(lane)
  if lanes[lane] == nil then
    local packed = call('HGET', H .. 'lanes', lane)
    lanes[lane] = packed and decode(packed) == 'fifo' or false
  end
  return lanes[lane]
end

-- Add to the numbers of runs by what they are.
local function count(self, by)
  local field = self.pipeline .. '\0' .. self.lane .. '\0' .. run.NAMES[self.state]
  writes.sum(H .. 'counts:' .. self.tenant, field, by)
  if self.state == run.RUNNING then
    writes.sum(H .. 'running', self.tenant, by)
    writes.sum(H .. 'running:' .. self.lane, self.tenant, by)
  end
end

-- Change (writes.add or writes.remove) the indexes of a queued run.
local function change_indexes_of_lane(self, change)
  local fifo = is_fifo(self.lane)
  if fifo then
    change(H .. 'fifo:' .. self.lane, self.seq, self.id)
  end
  if self.due > 0 then
    change(H .. 'delayed:' .. self.lane, writes.moment(self.due), self.id)
  elseif not fifo then
    local queue = self.tenant .. '\0' .. self.pipeline .. '\0' .. self.priority
    change(H .. 'ready:' .. self.lane .. '\0' .. queue, self.seq, self.id)
    if change == writes.add then -- until a claim finds the queue empty
      writes.add(H .. 'queues:' .. self.lane, 0, queue)
    end
  end
end

-- The same for all indexes of its state.
local function change_indexes(self, change)
  local state = self.state
  if state == run.QUEUED then
    change_indexes_of_lane(self, change)
  elseif state == run.RUNNING then
    change(H .. 'leases', writes.moment(self.lease_until), self.id)
  elseif state ~= run.SUCCEEDED then
    change(H .. 'state:' .. run.NAMES[state], self.seq, self.id)
  end
  if self.finished > 0 then
    local ended = H .. (state == run.FAILED and 'failed' or 'finished')
    change(ended, writes.moment(self.finished), self.id)
  end
  if self.holds_lane > 0 then
    change(H .. 'blocked:' .. self.lane, self.seq, self.id)
  end
end

-- The same for those that it is in whatever its state.
local function change_fixed_indexes(self, labels, change)
  change(H .. 'runs', self.seq, self.id)
  change(H .. 'tenant:' .. self.tenant, self.seq, self.id)
  for name, value in pairs(labels) do
    change(H .. 'label:' .. self.tenant .. '\0' .. name .. '\0' .. value, self.seq, self.id)
  end
end

-- The slot of a unique pipeline is held while the run is live.
local function hold_slot(self)
  local slot = self.tenant .. '\0' .. self.pipeline
  if self.state <= run.PAUSED then
    call('HSET', H .. 'slots', slot, self.id)
  elseif call('HGET', H .. 'slots', slot) == self.id then
    call('HDEL', H .. 'slots', slot)
  end
end

local function insert(self)
  count(self, 1)
  change_indexes(self, writes.add)
  if self.unique then
    hold_slot(self)
  end
end

local function delete(self)
  count(self, -1)
  change_indexes(self, writes.remove)
end

-- Change fields of a stored run, and write it.
local function update(self, fields)
  delete(self)
  for name, value in pairs(fields) do
    self[name] = value
  end
  insert(self)
  run.save(self)
end

-- Write a new run.
local function add(self, labels)
  change_fixed_indexes(self, labels, writes.add)
  if not tenants[self.tenant] then
    tenants[self.tenant] = call('SADD', H .. 'tenants', self.tenant)
  end
  insert(self)
  run.save(self)
end

-- Take a run that has ended out of all indexes. Its own keys stay.
local function remove(self, labels)
  delete(self)
  change_fixed_indexes(self, labels, writes.remove)
  for number = 1, self.events do
    writes.remove(keys.OUTBOX, nil, 'r' .. self.id .. '\0' .. number)
  end
  if self.key then
    call('HDEL', H .. 'keys', self.tenant .. '\0' .. self.key)
  end
end

return {is_fifo = is_fifo, update = update, add = add, remove = remove}
