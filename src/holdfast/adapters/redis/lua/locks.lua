-- Locks: held by one token at a time, numbered by an epoch that only rises and outlives every
-- holder.

local keys, meta, writes = require('keys'), require('meta'), require('writes')
local call, pack, decode = redis.call, cmsgpack.pack, cmsgpack.unpack
local HELD, clock = keys.LOCKS .. ':held', meta.clock

-- Epoch; and token, owner, acquired, until, ttl while it is held.
local function load(name)
  local packed = call('HGET', keys.LOCKS, name)
  if not packed then
    return 0
  end
  local epoch, token, owner, acquired, until_, ttl = decode(packed)
  if not token or not meta.lasts(until_) then
    return epoch
  end
  return epoch, token, owner, acquired, until_, ttl
end

local function hold(name, epoch, token, owner, acquired, until_, ttl)
  call('HSET', keys.LOCKS, name, pack(epoch, token, owner, acquired, until_, ttl))
  call('ZADD', HELD, until_, name)
end

local function free(name, epoch)
  call('HSET', keys.LOCKS, name, pack(epoch, nil, nil, nil, nil, nil))
  call('ZREM', HELD, name)
end

-- Returns the epoch, or owner, remaining, epoch of another holder. Asked again by the holder's
-- token (its answer was lost) it gives the same epoch, and lasts from this request: so its owner
-- counts.
local function acquire(name, new_token, new_owner, ttl)
  local epoch, token, owner, acquired, until_, old_ttl = load(name)
  if not token then
    epoch = meta.raised(epoch)
    hold(name, epoch, new_token, new_owner, clock.now, clock.mono + ttl, ttl)
    return epoch
  end
  if token ~= new_token then
    return {owner, until_ - clock.mono, epoch}
  end
  hold(name, epoch, token, owner, acquired, math.max(until_, clock.mono + ttl),
    math.max(old_ttl, ttl))
  return epoch
end

-- Returns the pairs of name and token that are lost.
local function renew_locks(held, ttl)
  local lost = {}
  for _, pair in ipairs(held) do
    local epoch, token, owner, acquired, until_, old_ttl = load(pair[1])
    if token == pair[2] then
      hold(pair[1], epoch, token, owner, acquired, math.max(until_, clock.mono + ttl),
        math.max(old_ttl, ttl))
    else
      lost[#lost + 1] = pair
    end
  end
  call('ZREMRANGEBYSCORE', HELD, '-inf', clock.mono)
  return lost
end

-- Whether the lock is held by this token, under this epoch.
local function is_held(name, its_token, its_epoch)
  local epoch, token = load(name)
  return token ~= nil and token == its_token and epoch == its_epoch
end

-- Returns whether the token still held it.
local function release(name, its_token)
  local epoch, token = load(name)
  if token ~= its_token then
    return false
  end
  free(name, epoch)
  return true
end

return {
  Acquire = acquire, RenewLocks = renew_locks, ReleaseLock = release, free = free,
  is_held = is_held,
}
