-- The successful end of an attempt.

local keys, meta, run = require('keys'), require('meta'), require('run')
local indexes = require('indexes')

-- `last` is the fields of the last SaveCheckpoint, if any. Returns true, or false when the fence
-- refuses it; then nothing was written.
local function succeed(id, epoch, result, progress, execution_ms, checksum, last)
  local field = last and run.checkpoint_field(last[3], last[4]) or '-'
  local self, before, old_progress, failure = run.held(id, epoch, field, 'p', 'e')
  if not self then
    return false
  end
  if last then
    run.save_checkpoint(self, before, last)
  end
  if old_progress or failure then
    redis.call('HDEL', keys.RUN .. id, 'p', 'e')
  end
  if progress ~= '{}' then
    run.put(self, 'p', progress)
  end
  if result then
    run.put(self, 'o', result)
  end
  if checksum then
    run.put(self, 'h', checksum)
  end
  run.event(self, 'run.completed', string.format('{"attempt":%d,"execution_time_ms":%d}',
    self.attempts, execution_ms))
  indexes.update(self, {state = run.SUCCEEDED, lease_until = 0, finished = meta.clock.now})
  return true
end

return {succeed = succeed}
