-- Greets a server: called once on every new connection, before anything else is sent on it.
--
-- A server that was restarted or promoted may have lost the last commands, claims among them. An epoch given out by
-- such a lost claim must never be given out again, so everything after it belongs to a new generation, whose epochs
-- begin above all earlier ones. The replication id tells servers and lives of a server apart.
--
-- KEYS[1]  <prefix>holdfast:meta
-- ARGV[1]  the prefix
-- ARGV[2]  the server's replication id
-- ARGV[3]  the schema of this program
-- ARGV[4]  the oldest schema whose programs can use what this one writes
--
-- Returns schema, oldest schema that can use it, generation: as stored now.

local call, META = redis.call, KEYS[1]
local known = call('HMGET', META, 'replid', 'schema')
if not known[2] then
  call('HSET', META, 'schema', ARGV[3], 'oldest_usable_schema', ARGV[4])
end
if known[1] ~= ARGV[2] then
  call('HSET', META, 'replid', ARGV[2])
  if known[1] then
    call('HINCRBY', META, 'generation', 1)
  end
end
return call('HMGET', META, 'schema', 'oldest_usable_schema', 'generation')
