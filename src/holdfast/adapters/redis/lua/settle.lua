-- The successful end of an attempt.

local keys, meta, run = require('keys'), require('meta'), require('run')
local indexes = require('indexes')

-- `texts` are fields of the run's hash, `last` is the fields of the last SaveCheckpoint, if any.
-- Returns true, or false when the fence refuses it; then nothing was written.
local function succeed(id, epoch, texts, execution_ms, last)
  local _, _, step, key = unpack(last or {})
  local field = last and run.checkpoint_field(step, key) or '-'
  local self, before, progress, failure = run.held(id, epoch, field, 'p', 'e')
  if not self then
    return false
  end
  if last then
    run.save_checkpoint(self, before, last)
  end
  if progress or failure then
    redis.call('HDEL', keys.RUN .. id, 'p', 'e')
  end
  for name, text in pairs(texts) do
    run.put(self, name, text)
  end
  run.event(self, 'run.completed', string.format('{"attempt":%d,"execution_time_ms":%d}',
    self.attempts, execution_ms))
  indexes.update(self, {state = run.SUCCEEDED, lease_until = 0, finished = meta.clock.now})
  return true
end

return {succeed = succeed}
