-- Publishes a message, if anybody has ever subscribed to the topic.
--
-- KEYS[1]  <prefix>holdfast:topic:<topic>, the stream
-- ARGV[1]  the channel that wakes subscribers
-- ARGV[2]  the topic
-- ARGV[3]  id
-- ARGV[4]  body
-- ARGV[5]  attributes, JSON
-- ARGV[6]  ordering key; empty if there is none
--
-- Returns the entry id, or nil when there is nobody to receive it.

local fields = {'id', ARGV[3], 'body', ARGV[4], 'attributes', ARGV[5]}
if ARGV[6] ~= '' then
  fields[7], fields[8] = 'ordering_key', ARGV[6]
end
local entry_id = redis.call('XADD', KEYS[1], 'NOMKSTREAM', '*', unpack(fields))
if entry_id then
  redis.call('PUBLISH', ARGV[1], ARGV[2])
end
return entry_id
