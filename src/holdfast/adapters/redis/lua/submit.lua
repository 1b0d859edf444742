-- Accepting runs.

local keys, meta, run = require('keys'), require('meta'), require('run')
local indexes = require('indexes')
local call, pack, clock = redis.call, cmsgpack.pack, meta.clock

local FIELDS = {
  'id', 'tenant', 'pipeline', 'lane', 'input', 'fingerprint', 'key', 'unique', 'priority', 'delay',
  'max_attempts', 'parent', 'checkpoints', 'labels', 'attributes',
}

local function encoded(strings)
  return next(strings) and cjson.encode(strings) or nil
end

-- Take the key. Whether the id and the key are free.
local function is_new(c)
  return call('EXISTS', keys.RUN .. c.id) == 0
    and (not c.key or call('HSETNX', keys.H .. 'keys', c.tenant .. '\0' .. c.key, c.id) == 1)
end

-- The fields of model/commands.py. Returns true, or false when the id or the key is taken. That a
-- unique slot is free has to be seen to before.
local function submit(...)
  local c = run.named(FIELDS, ...)
  if not is_new(c) then
    return false
  end
  local self = run.new(c.id, pack(c.tenant, c.pipeline, c.lane, meta.next_seq(), c.priority,
    c.unique, c.key, #c.checkpoints > 0, clock.now, c.fingerprint, c.parent, encoded(c.labels),
    encoded(c.attributes)))
  self.limit, self.delay = c.max_attempts, c.delay
  if c.delay > 0 then
    self.available, self.due = clock.now + c.delay, clock.later + c.delay
  end
  run.put(self, 'i', c.input)
  for _, saved in ipairs(c.checkpoints) do -- taken over from the run that this one reruns
    saved.record, saved.epoch = saved.record or '{}', 0
    run.put_checkpoint(self, saved)
  end
  indexes.add(self, c.labels)
  run.event(self, 'run.queued', '{}')
  run.save(self)
  return true
end

return {Submit = submit}
