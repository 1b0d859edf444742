-- Writes or deletes a document, if its version is higher than the stored one.
--
-- KEYS[1]  the document: a plain string that others read with GET
-- ARGV[1]  the key of its version, which outlives the document
-- ARGV[2]  the version: compared byte by byte, all of one length
-- ARGV[3]  'put' or 'delete'
-- ARGV[4]  the body
-- ARGV[5]  milliseconds until the document is gone; 0: never
-- ARGV[6]  milliseconds for which the version of a document that is gone is remembered
--
-- Returns 1 if it was written, 0 if the stored version is as high or higher.

local document, versions, version, what, body = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local ttl, remembered = tonumber(ARGV[5]), tonumber(ARGV[6])
local stored = redis.call('GET', versions)
if stored and stored >= version then
  return 0
end
if what == 'delete' then
  redis.call('DEL', document)
  redis.call('SET', versions, version, 'PX', remembered)
elseif ttl > 0 then
  redis.call('SET', document, body, 'PX', ttl)
  redis.call('SET', versions, version, 'PX', ttl + remembered)
else
  redis.call('SET', document, body)
  redis.call('SET', versions, version)
end
return 1
