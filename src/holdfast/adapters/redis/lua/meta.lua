-- The numbers of the store, and its time.

local META = require('keys').META

local stored = redis.call(
  'HMGET', META, 'wall', 'mono', 'later', 'seq', 'position', 'floor', 'held')
local clock = require('clock').read(stored[1], stored[2], stored[3])
local numbers = {seq = tonumber(stored[4] or 0), position = tonumber(stored[5] or 0)}
local is_numbered = false
-- Epochs are above all that an earlier life of the server can have given out: see greet.lua.
local floor = tonumber(stored[6] or 0)

-- The number of a new run (seq), or of a new event in the outbox (position).
local function next_number(name)
  numbers[name], is_numbered = numbers[name] + 1, true
  return numbers[name]
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
local function save()
  if clock.is_to_be_kept then
    redis.call('HSET', META, 'wall', clock.now, 'mono', clock.mono, 'later', clock.later)
  end
  if is_numbered then
    redis.call('HSET', META, 'seq', numbers.seq, 'position', numbers.position)
  end
end

return {
  clock = clock, held = stored[7], next_number = next_number, raised = raised, lasts = lasts,
  save = save,
}
