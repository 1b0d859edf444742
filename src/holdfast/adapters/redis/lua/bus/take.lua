-- Takes the next messages for a member of a group: those that were given back and whose delay is
-- over, then those that a dead member held, then new ones.
--
-- What is delivered and not ended is pending in the group. What was given back is pending too, and
-- waits in <stream>:later:<group>, a sorted set by the time when it is due.
-- <stream>:dropped:<group>, a hash, counts how many members died while they held a message: a
-- message that kills its consumers must not do so for ever, and becomes an entry of <stream>:dead.
--
-- KEYS[1]  <prefix>holdfast:topic:<topic>, the stream
-- ARGV[1]  the group
-- ARGV[2]  the member
-- ARGV[3]  how many at most
-- ARGV[4]  after how many milliseconds without a sign of life a member counts as dead
-- ARGV[5]  how many members may die with a message
--
-- Returns the messages (entry id, attempt, fields), and in how many milliseconds the next one is
-- due (-1: none waits).

local stream, group, me, limit = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
local later, dropped = stream .. ':later:' .. group, stream .. ':dropped:' .. group
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local taken = {}

local function claim(id)
  redis.call('ZREM', later, id)
  local entry = redis.call('XCLAIM', stream, group, me, 0, id)[1]
  if entry then
    local pending = redis.call('XPENDING', stream, group, id, id, 1)[1]
    taken[#taken + 1] = {entry[1], pending[4], entry[2]}
  else -- it was deleted from the stream
    redis.call('XACK', stream, group, id)
  end
end

local function bury(id, count)
  local entry = redis.call('XRANGE', stream, id, id)[1]
  if entry then
    redis.call('XADD', stream .. ':dead', '*',
      'group', group, 'dropped', count, 'place', id, unpack(entry[2]))
  end
  redis.call('XACK', stream, group, id)
  redis.call('HDEL', dropped, id)
end

for _, id in ipairs(redis.call('ZRANGEBYSCORE', later, '-inf', now, 'LIMIT', 0, limit)) do
  claim(id)
end
if #taken < limit then
  local idle = redis.call('XPENDING', stream, group, 'IDLE', ARGV[4], '-', '+', limit)
  for _, entry in ipairs(idle) do
    local id = entry[1]
    if #taken < limit and entry[2] ~= me and not redis.call('ZSCORE', later, id) then
      local count = redis.call('HINCRBY', dropped, id, 1)
      if count > tonumber(ARGV[5]) then
        bury(id, count)
      else
        claim(id)
      end
    end
  end
end
if #taken < limit then
  local streams = redis.call(
    'XREADGROUP', 'GROUP', group, me, 'COUNT', limit - #taken, 'STREAMS', stream, '>')
  for _, entry in ipairs(streams and streams[1] and streams[1][2] or {}) do
    taken[#taken + 1] = {entry[1], 1, entry[2]}
  end
end
local first = redis.call('ZRANGE', later, 0, 0, 'WITHSCORES')[2]
return {taken, first and math.max(0, first - now) or -1}
