-- Writing under the fence of an attempt, up to its success. All but Renew return true, or false
-- when the fence refuses the command; then nothing was written.

local keys, meta, run = require('keys'), require('meta'), require('run')
local indexes, writes = require('indexes'), require('writes')
local call, pack, decode = redis.call, cmsgpack.pack, cmsgpack.unpack
local H, clock = keys.H, meta.clock

-- Returns the pairs of run and epoch that are lost.
local function renew(held, ttl)
  local lost, until_ = {}, clock.mono + ttl
  for _, pair in ipairs(held) do
    local self = run.held(pair[1], pair[2])
    if not self then
      lost[#lost + 1] = pair
    elseif until_ > self.until_ then
      self.until_, self.ttl = until_, math.max(self.ttl, ttl)
      writes.add(H .. 'leases', until_, self.id)
      run.save(self)
    end
  end
  return lost
end

local CHECKPOINT = {
  'run', 'epoch', 'step', 'key', 'value', 'checksum', 'schema', 'fingerprint', 'record', 'skipped',
}

-- Put a checkpoint; and the event of a step that this epoch has not saved before.
local function put_checkpoint(self, before, c)
  run.put_checkpoint(self, c)
  if c.key == '' and not (before and select(6, decode(before)) == self.epoch) then
    run.event(self, c.skipped and 'step.skipped' or 'step.completed', c.record)
  end
end

local function save_checkpoint(...)
  local c = run.named(CHECKPOINT, ...)
  local self, before = run.held(c.run, c.epoch, run.checkpoint_field(c.step, c.key))
  if not self then
    return false
  end
  put_checkpoint(self, before, c)
  run.save(self)
  return true
end

local function save_progress(id, epoch, progress)
  if not run.held(id, epoch) then
    return false
  end
  call('HSET', keys.RUN .. id, 'p', progress)
  return true
end

local function log_line(id, epoch, level, step, message, fields, most)
  if not run.held(id, epoch) then
    return false
  end
  local log = H .. 'log:' .. id
  if call('LLEN', log) < most then
    call('RPUSH', log, pack(clock.now, level, step, message, fields))
  end
  return true
end

-- A Settle of an attempt that succeeded; `last` is the fields of the last SaveCheckpoint, if any.
local function succeed(id, epoch, result, progress, execution_ms, checksum, last)
  local c = last and run.named(CHECKPOINT, unpack(last, 1, #CHECKPOINT))
  local field = c and run.checkpoint_field(c.step, c.key) or '-'
  local self, before, old_progress, failure = run.held(id, epoch, field, 'p', 'e')
  if not self then
    return false
  end
  if c then
    put_checkpoint(self, before, c)
  end
  if old_progress or failure then
    call('HDEL', keys.RUN .. id, 'p', 'e')
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
  indexes.leave(self)
  self.state, self.until_, self.finished = run.SUCCEEDED, 0, clock.now
  indexes.enter(self)
  run.save(self)
  return true
end

return {
  Renew = renew, SaveCheckpoint = save_checkpoint, SaveProgress = save_progress,
  LogLine = log_line, Settle = succeed,
}
