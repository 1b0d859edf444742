-- The numbers of the store, and its time.

local META = require('keys').META

local stored = redis.call(
  'HMGET', META, 'wall', 'mono', 'later', 'seq', 'position', 'floor', 'held')
local clock = require('clock').read(stored[1], stored[2], stored[3])
local seq, position = tonumber(stored[4] or 0), tonumber(stored[5] or 0)
local last_seq, last_position = seq, position
-- Epochs are above all that an earlier life of the server can have given out: see greet.lua.
local floor = tonumber(stored[6] or 0)

-- The number of a new run.
local function next_seq()
  seq = seq + 1
  return seq
end

-- The position of a new event.
local function next_position()
  position = position + 1
  return position
end

-- The epoch that follows one.
local function raised(epoch)
  return math.max(epoch, floor) + 1
end

-- Whether a lease has not ended.
local function lasts(lease_until)
  return lease_until > clock.mono
end

-- Called at the end, also when a command failed: numbers that were given out stay given out.
local function keep()
  if clock.is_to_be_kept then
    redis.call('HSET', META, 'wall', clock.now, 'mono', clock.mono, 'later', clock.later)
  end
  if seq ~= last_seq or position ~= last_position then
    redis.call('HSET', META, 'seq', seq, 'position', position)
  end
end

return {
  clock = clock, held = stored[7], next_seq = next_seq, next_position = next_position,
  raised = raised, lasts = lasts, keep = keep,
}
