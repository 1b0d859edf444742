-- Writing under the fence of an attempt. All but renew return true, or false when the fence refuses
-- the command; then nothing was written.

local keys, meta, run = require('keys'), require('meta'), require('run')
local writes = require('writes')
local call, clock = redis.call, meta.clock

-- Returns the pairs of run and epoch that are lost.
local function renew(held, ttl)
  local lost, lease_until = {}, clock.mono + ttl
  for _, pair in ipairs(held) do
    local self = run.held(pair[1], pair[2])
    if not self then
      lost[#lost + 1] = pair
    elseif lease_until > self.lease_until then
      self.lease_until, self.lease_ttl = lease_until, math.max(self.lease_ttl, ttl)
      writes.add(keys.H .. 'leases', writes.moment(lease_until), self.id)
      run.save(self)
    end
  end
  return lost
end

-- The fields of model/commands.py.
local function save_checkpoint(...)
  local id, epoch, step, key = ...
  local self, before = run.held(id, epoch, run.checkpoint_field(step, key))
  if not self then
    return false
  end
  run.save_checkpoint(self, before, {...})
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

-- `line` is level, step, message and fields.
local function log_line(id, epoch, line, most)
  if not run.held(id, epoch) then
    return false
  end
  local log = keys.H .. 'log:' .. id
  if call('LLEN', log) < most then
    call('RPUSH', log, cmsgpack.pack(clock.now, unpack(line)))
  end
  return true
end

return {
  renew = renew, save_checkpoint = save_checkpoint, save_progress = save_progress,
  log_line = log_line,
}
