-- Publishes a message, if anybody has ever subscribed to the topic.
--
-- KEYS[1]  <prefix>holdfast:topic:<topic>, the stream
-- ARGV[1]  the channel that wakes subscribers
-- ARGV[2]  the topic
-- ARGV[3]  id
-- ARGV[4]  body
-- ARGV[5]  attributes, JSON
--
-- Returns the place in the stream, or nil when there is nobody to receive it.

local place = redis.call('XADD', KEYS[1], 'NOMKSTREAM', '*', 'id', ARGV[3], 'body', ARGV[4], 'attributes', ARGV[5])
if place then
  redis.call('PUBLISH', ARGV[1], ARGV[2])
end
return place
