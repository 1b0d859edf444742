-- Accepting runs.

local keys, meta, run = require('keys'), require('meta'), require('run')
local indexes = require('indexes')
local call, pack, clock = redis.call, cmsgpack.pack, meta.clock

local function encoded(strings)
  return next(strings) and cjson.encode(strings) or nil
end

-- The fields of model/commands.py. Returns true, or false when the id or the key is taken. That a
-- unique slot is free has to be seen to before.
local function submit(...)
  local id, tenant, pipeline, lane, input, fingerprint, key, unique, priority, delay, max_attempts,
    parent, checkpoints, labels, attributes = ...
  if call('EXISTS', keys.RUN .. id) == 1
    or (key and call('HSETNX', keys.H .. 'keys', tenant .. '\0' .. key, id) == 0) then
    return false
  end
  local self = run.new(id, pack(tenant, pipeline, lane, meta.next_number('seq'), priority, unique,
    key, #checkpoints > 0, clock.now, fingerprint, parent, encoded(labels), encoded(attributes)))
  self.attempt_limit, self.delay = max_attempts, delay
  if delay > 0 then
    self.available, self.due = clock.now + delay, clock.later + delay
  end
  run.put(self, 'i', input)
  for _, c in ipairs(checkpoints) do -- taken over from the run that this one reruns
    run.put(self, run.checkpoint_field(c.step, c.key),
      pack(c.value, c.checksum, c.schema, c.fingerprint, c.record or '{}', 0))
  end
  run.event(self, 'run.queued', '{}')
  indexes.add(self, labels)
  return true
end

return {submit = submit}
