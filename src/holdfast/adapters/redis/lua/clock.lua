-- Time by the server's clock, in seconds. No jump of that clock moves a lease by more than LEAP seconds.
--
--   now    wall time: what people see
--   mono   what leases and locks are measured with: it never goes back, and silence or a jump ahead counts as LEAP
--          seconds at most. While anybody works, commands come every few seconds.
--   later  what delays are measured with: it never goes back either, but silence counts in full
--
-- The last reading is kept with the data (meta: wall, mono, later) and written at most once a second, so all of this
-- goes on after a restart or on another server.

local LEAP = 8
local now, mono, later
local moved = false

local function read_clock(wall, lease, delay)
  local time = call('TIME')
  now = tonumber(time[1]) + tonumber(time[2]) / 1000000
  local passed = math.max(0, now - tonumber(wall or now))
  mono = tonumber(lease or 0) + math.min(passed, LEAP)
  later = tonumber(delay or 0) + passed
  moved = not wall or passed >= 1 or now < tonumber(wall)
end
