-- Locks: held by one token at a time, numbered by an epoch that only rises and outlives every
-- holder.

local keys, meta, writes = require('keys'), require('meta'), require('writes')
local call, pack, decode = redis.call, cmsgpack.pack, cmsgpack.unpack
local HELD, clock = keys.LOCKS .. ':held', meta.clock

-- A lock, without a token if nobody holds it.
local function load(name)
  local lock, packed = {name = name, epoch = 0}, call('HGET', keys.LOCKS, name)
  if packed then
    lock.epoch, lock.token, lock.owner, lock.acquired, lock.lease_until, lock.ttl = decode(packed)
  end
  if lock.token and not meta.lasts(lock.lease_until) then
    lock.token = nil
  end
  return lock
end

local function extend(lock, ttl)
  lock.lease_until = math.max(lock.lease_until, clock.mono + ttl)
  lock.ttl = math.max(lock.ttl, ttl)
  call('HSET', keys.LOCKS, lock.name, pack(lock.epoch, lock.token, lock.owner, lock.acquired,
    lock.lease_until, lock.ttl))
  writes.add(HELD, writes.moment(lock.lease_until), lock.name)
end

local function free(name, epoch)
  call('HSET', keys.LOCKS, name, pack(epoch, nil, nil, nil, nil, nil))
  writes.remove(HELD, nil, name)
end

-- Returns the epoch, or owner, remaining, epoch of another holder. Asked again by the holder's
-- token (its answer was lost) it gives the same epoch, and lasts from this request: so its owner
-- counts.
local function acquire(name, token, owner, ttl)
  local lock = load(name)
  if not lock.token then
    lock = {
      name = name, epoch = meta.raised(lock.epoch), token = token, owner = owner,
      acquired = clock.now, lease_until = 0, ttl = 0,
    }
  elseif lock.token ~= token then
    return {lock.owner, lock.lease_until - clock.mono, lock.epoch}
  end
  extend(lock, ttl)
  return lock.epoch
end

-- Returns the pairs of name and token that are lost.
local function renew(held, ttl)
  local lost = {}
  for _, pair in ipairs(held) do
    local lock = load(pair[1])
    if lock.token == pair[2] then
      extend(lock, ttl)
    else
      lost[#lost + 1] = pair
    end
  end
  call('ZREMRANGEBYSCORE', HELD, '-inf', writes.moment(clock.mono))
  return lost
end

-- Returns whether the token still held it.
local function release(name, token)
  local lock = load(name)
  if lock.token == token then
    free(name, lock.epoch)
  end
  return lock.token == token
end

return {load = load, acquire = acquire, renew = renew, release = release, free = free}
