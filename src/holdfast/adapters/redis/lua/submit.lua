-- Accepting runs.

local keys, meta, run = require('keys'), require('meta'), require('run')
local indexes, writes = require('indexes'), require('writes')
local call, pack = redis.call, cmsgpack.pack
local H, known = keys.H, {}

-- Its labels, as text and where they are looked for.
local function labelled(self, labels)
  if not next(labels) then
    return nil
  end
  for name, value in pairs(labels) do
    writes.add(H .. 'label:' .. self.tenant .. '\0' .. name .. '\0' .. value, self.seq, self.id)
  end
  return cjson.encode(labels)
end

-- The fields of model/commands.py. Returns true, or false when the id or the key is taken. That a
-- unique slot is free has to be seen to before.
local function submit(id, tenant, pipeline, lane, input, fingerprint, key, unique, priority, delay,
  limit, parent, checkpoints, labels, attributes)
  if call('EXISTS', keys.RUN .. id) == 1
    or (key and call('HSETNX', H .. 'keys', tenant .. '\0' .. key, id) == 0) then
    return false
  end
  local clock, is_delayed = meta.clock, delay > 0
  local self = {
    id = id, tenant = tenant, pipeline = pipeline, lane = lane, seq = meta.next_seq(),
    priority = priority, unique = unique, state = run.QUEUED, holds = 0, epoch = 0, events = 0,
    attempts = 0, limit = limit, until_ = 0, ttl = 0, delay = delay,
    available = is_delayed and clock.now + delay or 0, due = is_delayed and clock.later + delay or 0,
    started = 0, finished = 0, fields = {'i', input},
  }
  run.put(self, 's', pack(tenant, pipeline, lane, self.seq, priority, unique, key,
    #checkpoints > 0, clock.now, fingerprint, parent, labelled(self, labels),
    next(attributes) and cjson.encode(attributes) or nil))
  for _, c in ipairs(checkpoints) do -- taken over from the run that this one reruns
    run.put(self, 'c' .. c.step .. '\0' .. c.key,
      pack(c.value, c.checksum, c.schema, c.fingerprint, c.record or '{}', 0))
  end
  writes.add(H .. 'runs', self.seq, id)
  writes.add(H .. 'tenant:' .. tenant, self.seq, id)
  if not known[tenant] then
    known[tenant] = call('SADD', H .. 'tenants', tenant)
  end
  indexes.enter(self)
  run.event(self, 'run.queued', '{}')
  run.save(self)
  return true
end

return {Submit = submit}
