-- Writing what the client has decided: for all commands that have no function of their own here,
-- and for runs that a mover brings.

local keys, meta, run = require('keys'), require('meta'), require('run')
local indexes, writes = require('indexes'), require('writes')
local call, H = redis.call, keys.H

-- Whether a fact is as it was. Behind its kind comes what was seen; false for what was not there.
local matches = {
  run = function(id, state, epoch)
    local self = run.load(id)
    return state == (self and self.state or false) and epoch == (self and self.epoch or false)
  end,
  lease = function(id, lease_until)
    return run.load(id).lease_until == lease_until
  end,
  field = function(key, field, value)
    return call('HGET', H .. key, field) == value
  end,
  length = function(key, length)
    return call('LLEN', H .. key) == length
  end,
}

-- Writes, by their kind.
local write = {}

-- Any command whose second word is a key of ours.
function write.call(command, key, ...)
  call(command, H .. key, ...)
end

-- The 15 fields of Submit, of which some may not be there.
function write.submit(fields)
  require('submit').submit(unpack(fields, 1, 15))
end

-- `fields` are those of run.lua that change; `text` those of the hash, false for one that goes. An
-- epoch that is given is raised.
function write.run(id, fields, text)
  local self = run.load(id)
  if fields.epoch then
    fields.epoch = meta.raised(fields.epoch - 1)
  end
  for name, value in pairs(text) do
    if value then
      run.put(self, name, value)
    else
      call('HDEL', keys.RUN .. id, name)
    end
  end
  indexes.update(self, fields)
end

function write.event(id, kind, data)
  local self = run.load(id)
  run.event(self, kind, data)
  run.save(self)
end

function write.letter_event(id, kind, data)
  call('HSET', H .. 'letter:' .. id, 'e', run.packed_event(kind, data, 'l' .. id))
end

function write.lock(name, epoch)
  require('locks').free(name, meta.raised(epoch - 1))
end

-- A lane becomes fifo: it takes over what was queued in it.
function write.fifo(lane)
  writes.flush()
  local fifo, queues = H .. 'fifo:' .. lane, H .. 'queues:' .. lane
  local delayed = H .. 'delayed:' .. lane
  for _, queue in ipairs(call('ZRANGE', queues, 0, -1)) do
    local ready = H .. 'ready:' .. lane .. '\0' .. queue
    call('ZUNIONSTORE', fifo, 2, fifo, ready)
    call('DEL', ready)
  end
  for _, id in ipairs(call('ZRANGE', delayed, 0, -1)) do
    call('ZADD', fifo, run.load(id).seq, id)
  end
  call('DEL', queues, delayed)
end

-- The keys of the run itself go by `call`, behind this.
function write.remove(id, labels)
  indexes.remove(run.load(id), labels)
end

-- A run that a mover brings, from what never changes of it and fields of run.lua.
function write.adopt(id, s, fields, labels)
  local self = run.new(id, s)
  for name, value in pairs(fields) do
    self[name] = value
  end
  indexes.add(self, labels)
end

local function is_valid(unit)
  for _, expectation in ipairs(unit.expects) do
    if not matches[expectation[1]](unpack(expectation, 2)) then
      return false
    end
  end
  return not unit.before or meta.clock.mono < unit.before
end

-- {expects, before, changes}: the changes are made if everything that is expected is so, and if it
-- is before that moment. Returns whether they were.
local function decide(unit)
  if not is_valid(unit) then
    return false
  end
  for _, change in ipairs(unit.changes) do
    write[change[1]](unpack(change, 2))
  end
  return true
end

return {decide = decide}
