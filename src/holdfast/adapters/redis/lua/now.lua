-- The store's time. Nothing is written.
--
-- KEYS[1]  <prefix>holdfast:meta
-- ARGV[1]  the prefix
--
-- Returns MessagePack: wall time, the time of leases, the time of delays.

local clock = require('meta').clock
return cmsgpack.pack({clock.now, clock.mono, clock.later})
