-- Begins a subscription: makes its group, unless it is there, so that it receives what is published
-- from now on.
--
-- KEYS[1]  <prefix>holdfast:topic:<topic>, the stream
-- ARGV[1]  the group
-- ARGV[2]  its filter, as text
-- ARGV[3]  how many milliseconds ago the subscription was requested: what was published since then
--          counts
--
-- Returns the filter of the group: that of its first member.

local stream, group = KEYS[1], ARGV[1]
local filters = stream .. ':filters'
redis.call('HSETNX', filters, group, ARGV[2])

local from = '$'
if redis.call('EXISTS', stream) == 1 then
  local time = redis.call('TIME')
  local requested = time[1] * 1000 + math.floor(time[2] / 1000) - ARGV[3]
  local last = redis.call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1]
  if last and tonumber(string.match(last[1], '^%d+')) >= requested then
    from = string.format('%d-18446744073709551615', requested - 1)
  end
end
local created = redis.pcall('XGROUP', 'CREATE', stream, group, from, 'MKSTREAM')
if created.err and not string.find(created.err, 'BUSYGROUP', 1, true) then
  return created
end
return redis.call('HGET', filters, group)
