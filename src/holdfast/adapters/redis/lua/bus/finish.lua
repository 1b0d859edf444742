-- Ends deliveries that a member holds. What somebody else holds by now is left alone.
--
-- KEYS[1]  <prefix>holdfast:topic:<topic>, the stream
-- ARGV[1]  the group
-- ARGV[2]  the member
-- ARGV[3]  the channel that wakes subscribers
-- ARGV[4]  the topic
-- ARGV[5…] entry id, ending, number; entry id, ending, number; …
--            ack      done, it does not come again
--            nack     it comes again, in so many milliseconds
--            return   it was never looked at: it comes again at once, and this attempt does not
--                     count
--            keep     it is still being worked on
--
-- Returns the entry ids that the member no longer holds.

local stream, group, me = KEYS[1], ARGV[1], ARGV[2]
local later = stream .. ':later:' .. group
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local lost, given_back = {}, false

for i = 5, #ARGV, 3 do
  local id, ending, number = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local pending = redis.call('XPENDING', stream, group, id, id, 1)[1]
  if not pending or pending[2] ~= me or redis.call('ZSCORE', later, id) then
    lost[#lost + 1] = id
  elseif ending == 'ack' then
    redis.call('XACK', stream, group, id)
    redis.call('HDEL', stream .. ':dropped:' .. group, id)
  elseif ending == 'keep' then
    redis.call('XCLAIM', stream, group, me, 0, id, 'JUSTID')
  else
    if ending == 'return' then
      local attempts = math.max(0, pending[4] - 1)
      redis.call('XCLAIM', stream, group, me, 0, id, 'RETRYCOUNT', attempts, 'JUSTID')
    end
    redis.call('ZADD', later, now + number, id)
    given_back = true
  end
end
if given_back then
  redis.call('PUBLISH', ARGV[3], ARGV[4])
end
return lost
