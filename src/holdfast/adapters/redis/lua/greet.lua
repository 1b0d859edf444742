-- Greets a server: called once on every new connection, before anything else is sent on it.
--
-- A server that was restarted or promoted may have lost the last commands, claims among them, or
-- all of them. An epoch given out by such a lost claim must never be given out again, so whatever
-- comes after it begins above a floor: the microseconds since 2026. No lock is acquired and no run
-- is claimed as often as that, and what a later life of the server gives out is above what an
-- earlier one did, even if that one's floor is lost, too. The replication id tells servers and
-- lives of a server apart. A store that is new to everybody has no floor: its epochs begin with 1.
--
-- KEYS[1]  <prefix>holdfast:meta
-- ARGV[1]  the prefix
-- ARGV[2]  the server's replication id
-- ARGV[3]  the one that the caller met before, or nothing
-- ARGV[4]  the schema of this program
-- ARGV[5]  the oldest schema whose programs can use what this one writes
-- ARGV[6]  the format that this program uses: see adapters/compatibility.py
--
-- Returns schema, oldest schema that can use it, format: as stored now. A store of another format
-- is left as it is.

local call, META = redis.call, KEYS[1]
local here, met = ARGV[2], ARGV[3]
local stored = call('HMGET', META, 'replid', 'schema', 'floor', 'format')
local SINCE = 1767225600

if stored[2] and stored[4] ~= ARGV[6] then
  return call('HMGET', META, 'schema', 'oldest_usable_schema', 'format')
end
if not stored[2] or tonumber(stored[2]) < tonumber(ARGV[4]) then
  call('HSET', META, 'schema', ARGV[4], 'oldest_usable_schema', ARGV[5], 'format', ARGV[6])
end
if stored[1] ~= here then
  call('HSET', META, 'replid', here)
end
if (stored[1] or here) ~= here or (met ~= '' and met ~= here) then
  local time = call('TIME')
  local floor = (tonumber(time[1]) - SINCE) * 1000000 + tonumber(time[2])
  local last = tonumber(stored[3] or 0)
  call('HSET', META, 'floor', floor > last and floor or last + 1000000) -- a clock that was put back
end
return call('HMGET', META, 'schema', 'oldest_usable_schema', 'format')
