-- Writes that the commands of a batch have in common: collected, and made in few calls. Of several
-- to one member the last one counts.

local call = redis.call
local scores, sums = {}, {} -- by key, and then by member or field
local PIECE = 2000 -- values that one call takes

-- Put a member into a sorted set. Scores are whole numbers: Redis takes several times as long to
-- read and write fractions.
local function add(key, score, member)
  scores[key] = scores[key] or {}
  scores[key][member] = score
end

-- Take a member out of a sorted set, whatever its score.
local function remove(key, _, member)
  add(key, false, member)
end

-- The score of a moment: microseconds.
local function moment(seconds)
  return math.floor(seconds * 1000000)
end

-- Add to a number in a hash. A field that comes to nothing goes.
local function sum(key, field, by)
  sums[key] = sums[key] or {}
  sums[key][field] = (sums[key][field] or 0) + by
end

-- A command with any number of values.
local function call_with(command, key, values)
  for from = 1, #values, PIECE do
    call(command, key, unpack(values, from, math.min(from + PIECE - 1, #values)))
  end
end

-- Make all writes: at the end, or before somebody looks.
local function flush()
  for key, members in pairs(scores) do
    local added, removed = {}, {}
    for member, score in pairs(members) do
      if score then
        local count = #added
        added[count + 1], added[count + 2] = string.format('%d', score), member
      else
        removed[#removed + 1] = member
      end
    end
    call_with('ZADD', key, added)
    call_with('ZREM', key, removed)
  end
  for key, fields in pairs(sums) do
    for field, by in pairs(fields) do
      if by ~= 0 and call('HINCRBY', key, field, by) == 0 then
        call('HDEL', key, field)
      end
    end
  end
  scores, sums = {}, {}
end

return {
  add = add, remove = remove, moment = moment, sum = sum, call_with = call_with, flush = flush,
}
