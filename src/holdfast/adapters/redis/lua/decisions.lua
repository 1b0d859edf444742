-- Writing what the client has decided: for all commands that have no function of their own here.
-- And taking in what a mover brings.

local keys, meta, run = require('keys'), require('meta'), require('run')
local indexes, writes = require('indexes'), require('writes')
local call, pack, decode = redis.call, cmsgpack.pack, cmsgpack.unpack
local H, clock = keys.H, meta.clock

-- Whether a fact is as it was. Behind its kind comes what was seen; false for what was not there.
local is_so = {
  run = function(id, state, epoch)
    local self = run.load(id)
    return state == (self and self.state or false) and epoch == (self and self.epoch or false)
  end,
  lease = function(id, until_)
    return run.load(id).until_ == until_
  end,
  field = function(key, field, value)
    return call('HGET', H .. key, field) == value
  end,
  length = function(key, length)
    return call('LLEN', H .. key) == length
  end,
}

local function list_letter(kind, id, tenant, created)
  call('ZADD', H .. 'letters:' .. kind, created, id)
  call('ZADD', H .. 'letters:' .. kind .. ':' .. tenant, created, id)
end

local function unlist_letter(kind, id, tenant)
  call('ZREM', H .. 'letters:' .. kind, id)
  call('ZREM', H .. 'letters:' .. kind .. ':' .. tenant, id)
end

-- Writes, by their kind. What there is not comes as false. Moments come as what they are, but for
-- `due_in` and `left`: seconds from now.
local write = {}

-- A Submit as batch.lua takes it.
function write.submit(packed)
  require('submit').Submit(select(2, decode(packed)))
end

-- `fields` are those of run.lua that change; `text` those of the hash, false for one that goes. An
-- epoch that is given is raised.
function write.run(id, fields, text)
  local self = run.load(id)
  indexes.leave(self)
  writes.flush()
  for name, value in pairs(fields) do
    self[name] = value
  end
  if fields.epoch then
    self.epoch = meta.raised(self.epoch - 1)
  end
  if fields.due_in then
    self.due = clock.later + fields.due_in
  end
  for name, value in pairs(text) do
    if value then
      run.put(self, name, value)
    else
      call('HDEL', keys.RUN .. id, name)
    end
  end
  indexes.enter(self)
  run.save(self)
end

function write.event(id, kind, data)
  local self = run.load(id)
  run.event(self, kind, data)
  run.save(self)
end

function write.letter_event(id, kind, data)
  local position = meta.next_position()
  call('HSET', keys.LETTER .. id, 'e', pack(kind, clock.now, data, position))
  writes.add(H .. 'outbox', position, 'l' .. id)
end

function write.checkpoint(id, step, key, packed)
  call('HSET', keys.RUN .. id, run.checkpoint_field(step, key), packed)
end

function write.quarantine(id, step, key, reason)
  local field = run.checkpoint_field(step, key)
  local value = decode(call('HGET', keys.RUN .. id, field))
  call('HDEL', keys.RUN .. id, field)
  call('RPUSH', H .. 'quarantine:' .. id, pack(step, key, reason, value, clock.now))
end

-- A letter that is opened again keeps the time of its creation.
function write.letter(id, source, reason, attributes, tenant, of_run, body)
  local before = call('HGET', keys.LETTER .. id, 'm')
  local created = before and select(5, decode(before)) or clock.now
  call('HSET', keys.LETTER .. id, 'm',
    pack(source, reason, attributes, tenant, created, of_run or nil, nil, nil))
  if body then
    call('HSET', keys.LETTER .. id, 'b', body)
  end
  list_letter('all', id, tenant, created)
  list_letter('open', id, tenant, created)
end

function write.close(id, resolution)
  local source, reason, attributes, tenant, created, of_run = decode(
    call('HGET', keys.LETTER .. id, 'm'))
  call('HSET', keys.LETTER .. id, 'm',
    pack(source, reason, attributes, tenant, created, of_run, clock.now, resolution))
  unlist_letter('open', id, tenant)
end

function write.audit(actor, action, target, reason)
  call('LPUSH', H .. 'audit', pack(clock.now, actor, action, target, reason))
end

function write.lock(name, epoch)
  require('locks').free(name, meta.raised(epoch - 1))
end

-- A lane that becomes fifo takes over what was queued in it.
function write.lane(name, order, head, is_new)
  call('HSET', H .. 'lanes', name, pack(order, head))
  if is_new and order == 'fifo' then
    local fifo = H .. 'fifo:' .. name
    for _, queue in ipairs(call('ZRANGE', H .. 'queues:' .. name, 0, -1)) do
      call('ZUNIONSTORE', fifo, 2, fifo, H .. 'ready:' .. name .. '\0' .. queue)
      call('DEL', H .. 'ready:' .. name .. '\0' .. queue)
    end
    for _, id in ipairs(call('ZRANGE', H .. 'delayed:' .. name, 0, -1)) do
      call('ZADD', fifo, run.load(id).seq, id)
    end
    call('DEL', H .. 'queues:' .. name, H .. 'delayed:' .. name)
  end
end

function write.tenant(tenant, running)
  if running then
    call('HSET', H .. 'limits', tenant, running)
  else
    call('HDEL', H .. 'limits', tenant)
  end
end

function write.record(key, value, version, updated, left)
  local until_ = left and clock.later + left or nil
  call('HSET', H .. 'records', key, pack(value, version, updated, until_, left or 0))
  call('ZADD', H .. 'records:keys', 0, key)
end

function write.remove_record(key)
  call('HDEL', H .. 'records', key)
  call('ZREM', H .. 'records:keys', key)
end

function write.remove(id, labels)
  local self = run.load(id)
  indexes.remove(self, labels)
  unlist_letter('open', 'run:' .. id, self.tenant)
  unlist_letter('all', 'run:' .. id, self.tenant)
  call('UNLINK', keys.RUN .. id, H .. 'log:' .. id, H .. 'quarantine:' .. id,
    keys.LETTER .. 'run:' .. id)
end

local function is_valid(unit)
  for _, expectation in ipairs(unit.expects) do
    if not is_so[expectation[1]](unpack(expectation, 2)) then
      return false
    end
  end
  return not unit.before or clock.mono < unit.before
end

-- {expects, before, changes}: the changes are made if everything that is expected is so, and if it
-- is before that moment. Returns whether they were.
local function decide(unit)
  writes.flush()
  if not is_valid(unit) then
    return false
  end
  for _, change in ipairs(unit.changes) do
    write[change[1]](unpack(change, 2))
  end
  return true
end

-- A run as a mover brings it: its packed static part, its changing fields, all other fields of its
-- hash, its labels and the positions of its events.
local function adopt(id, s, fields, others, labels, positions)
  if call('EXISTS', keys.RUN .. id) == 1 then
    return false
  end
  local self = run.new(id, s)
  for name, value in pairs(fields) do
    self[name] = value
  end
  self.due = fields.due_in and clock.later + fields.due_in or 0
  for i = 1, #others, 2 do
    run.put(self, others[i], others[i + 1])
  end
  for number, position in ipairs(positions) do
    writes.add(H .. 'outbox', position, 'r' .. id .. '\0' .. number)
  end
  if self.key then
    call('HSET', H .. 'keys', self.tenant .. '\0' .. self.key, id)
  end
  indexes.add(self, labels)
  run.save(self)
  return true
end

return {Decide = decide, Adopt = adopt}
