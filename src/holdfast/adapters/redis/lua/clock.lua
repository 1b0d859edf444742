-- Time by the server's clock, in seconds. No jump of that clock moves a lease by more than LEAP.
--
--   now    wall time: what people see
--   mono   what leases and locks are measured with: it never goes back, and silence or a jump ahead
--          counts as LEAP seconds at most. While anybody works, commands come every few seconds.
--   later  what delays and records are measured with: it never goes back, but silence counts in
--          full
--
-- The last reading is kept with the data (meta: wall, mono, later) and written at most once a
-- second, so all of this goes on after a restart or on another server.

local LEAP = 8

local function read(wall, mono, later)
  local time = redis.call('TIME')
  local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
  local passed = math.max(0, now - tonumber(wall or now))
  return {
    now = now,
    mono = tonumber(mono or 0) + math.min(passed, LEAP),
    later = tonumber(later or 0) + passed,
    is_to_be_kept = not wall or passed >= 1 or now < tonumber(wall),
  }
end

return {read = read, arguments = 0}
