-- Locks: held by one token at a time, numbered by an epoch that only rises and outlives every holder.
--
-- What a batch changes is written in the end, all at once. A lock that is given back stays on the list of those that are
-- held until its lease would have ended and the sweeper comes by: most are soon taken again, and need not be listed anew.
--
-- That a lock was given back is the one thing that is not written to the log, so nobody waits for the disk. A server that
-- was restarted or promoted meanwhile takes the lock for held until its lease ends, as if its holder had died.

local LOCKS = H .. 'locks'
local LENGTH = '----------------' -- a hash of values under 65 bytes is a list, which is searched from its start
local changed, listed, given_back = {}, {}, {}
local conclude = finish

-- Epoch, token, owner, acquired, lasts.
local function lock_of(name)
  local found = changed[name] or given_back[name] or call('HGET', LOCKS, name)
  if not found then
    return 0
  end
  return decode(found)
end

local function write_lock(name, epoch, token, owner, acquired, lasts)
  given_back[name] = nil
  if token then
    changed[name] = pack(epoch, token, owner, acquired, lasts, LENGTH)
  else
    changed[name] = pack(epoch, nil, nil, nil, nil)
  end
end

local function as_fields(locks)
  local fields = {}
  for name, lock in pairs(locks) do
    fields[#fields + 1], fields[#fields + 2] = name, lock
  end
  return unpack(fields)
end

local function write_locks()
  if next(changed) then
    call('HSET', LOCKS, as_fields(changed))
  end
  if listed[1] then
    call('SADD', H .. 'locks:held', unpack(listed))
  end
  if next(given_back) then
    redis.set_repl(redis.REPL_NONE)
    call('HSET', LOCKS, as_fields(given_back))
    redis.set_repl(redis.REPL_ALL)
  end
  changed, listed, given_back = {}, {}, {}
end

-- Answers the epoch, or owner, remaining, epoch of another holder. Asked again by the holder's token (its answer was
-- lost) it gives the same epoch, and lasts from this request: its owner counts from here too.
on.Acquire = function(name, mine, me, ttl)
  local epoch, token, owner, acquired, lasts = lock_of(name)
  if not lasts or lasts <= mono then
    listed[#listed + 1] = name
    token = nil
  end
  if not token then
    epoch = raised(epoch)
    write_lock(name, epoch, mine, me, now, mono + ttl)
    return epoch
  end
  if token ~= mine then
    return {owner, lasts - mono, epoch}
  end
  write_lock(name, epoch, token, owner, acquired, math.max(lasts, mono + ttl))
  return epoch
end

-- Answers the pairs of name and token that are lost.
on.RenewLocks = function(c)
  local lost = {}
  for _, pair in ipairs(c.held) do
    local epoch, token, owner, acquired, lasts = lock_of(pair[1])
    if token == pair[2] and lasts > mono then
      write_lock(pair[1], epoch, token, owner, acquired, math.max(lasts, mono + c.ttl))
    else
      lost[#lost + 1] = pair
    end
  end
  return lost
end

on.ReleaseLock = function(name, mine)
  local epoch, token, _, _, lasts = lock_of(name)
  if token ~= mine or lasts <= mono then
    return false
  end
  local free = pack(epoch, nil, nil, nil, lasts)
  if changed[name] then
    changed[name] = free -- its epoch is yet to be written to the log
  else
    given_back[name] = free
  end
  loud = true
  return true
end

-- The bell comes first: what is rung after a write would be written to the log.
function finish()
  conclude()
  write_locks()
end
