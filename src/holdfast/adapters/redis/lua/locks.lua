-- Locks: held by one token at a time, numbered by an epoch that only rises and outlives every holder.

local function lock_of(name)
  local found = call('HGET', H .. 'locks', name)
  if not found then
    return {epoch = 0}
  end
  local lock = {}
  lock.epoch, lock.token, lock.owner, lock.acquired, lock.lasts = decode(found)
  return lock
end

local function is_held(lock)
  return lock.token and lock.lasts > mono
end

local function write_lock(name, lock)
  call('HSET', H .. 'locks', name, pack(lock.epoch, lock.token, lock.owner, lock.acquired, lock.lasts))
  if lock.token then
    call('ZADD', H .. 'locks:held', lock.lasts, name)
  else
    call('ZREM', H .. 'locks:held', name)
  end
end

local function extend(name, lock, ttl)
  if mono + ttl > lock.lasts then
    lock.lasts = mono + ttl
    write_lock(name, lock)
  end
end

local function free(name, lock)
  lock.token, lock.owner, lock.acquired, lock.lasts = nil, nil, nil, nil
  write_lock(name, lock)
  loud = true
end

-- Answers the epoch, or owner, remaining, epoch of another holder. Asked again by the holder's token (its answer was
-- lost) it gives the same epoch, and lasts from this request: its owner counts from here too.
on.Acquire = function(c)
  local lock = lock_of(c.name)
  if is_held(lock) then
    if lock.token ~= c.token then
      return {lock.owner, lock.lasts - mono, lock.epoch}
    end
    extend(c.name, lock, c.ttl)
    return lock.epoch
  end
  write_lock(c.name, {
    epoch = raised(lock.epoch), token = c.token, owner = c.owner, acquired = now, lasts = mono + c.ttl,
  })
  return raised(lock.epoch)
end

on.RenewLocks = function(c)
  local lost = {}
  for _, pair in ipairs(c.held) do
    local lock = lock_of(pair[1])
    if is_held(lock) and lock.token == pair[2] then
      extend(pair[1], lock, c.ttl)
    else
      lost[#lost + 1] = pair
    end
  end
  return lost
end

on.ReleaseLock = function(c)
  local lock = lock_of(c.name)
  if not is_held(lock) or lock.token ~= c.token then
    return false
  end
  free(c.name, lock)
  return true
end

on.ForceRelease = function(c)
  local lock = lock_of(c.name)
  if not is_held(lock) then
    return false
  end
  lock.epoch = raised(lock.epoch)
  free(c.name, lock)
  note(c.actor, 'lock.force_release', c.name, c.reason)
  return true
end
