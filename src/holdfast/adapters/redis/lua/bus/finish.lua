-- Ends deliveries that a member holds. What somebody else holds by now is left alone.
--
-- KEYS[1]  <prefix>holdfast:topic:<topic>, the stream
-- ARGV[1]  the group
-- ARGV[2]  the member
-- ARGV[3]  the channel that wakes subscribers
-- ARGV[4]  the topic
-- ARGV[5…] place, what, number; place, what, number; …
--            ack      done, it does not come again
--            nack     it comes again, in so many milliseconds
--            return   it was never looked at: it comes again at once, and this attempt does not count
--            keep     it is still being worked on
--
-- Returns the places that the member no longer holds.

local stream, group, me = KEYS[1], ARGV[1], ARGV[2]
local later = stream .. ':later:' .. group
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local lost, given_back = {}, false

for i = 5, #ARGV, 3 do
  local place, what, number = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local found = redis.call('XPENDING', stream, group, place, place, 1)[1]
  if not found or found[2] ~= me or redis.call('ZSCORE', later, place) then
    lost[#lost + 1] = place
  elseif what == 'ack' then
    redis.call('XACK', stream, group, place)
    redis.call('HDEL', stream .. ':dropped:' .. group, place)
  elseif what == 'keep' then
    redis.call('XCLAIM', stream, group, me, 0, place, 'JUSTID')
  else
    if what == 'return' then
      redis.call('XCLAIM', stream, group, me, 0, place, 'RETRYCOUNT', math.max(0, found[4] - 1), 'JUSTID')
    end
    redis.call('ZADD', later, now + number, place)
    given_back = true
  end
end
if given_back then
  redis.call('PUBLISH', ARGV[3], ARGV[4])
end
return lost
