-- Locks: held by one token at a time, numbered by an epoch that only rises and outlives every holder.

local is_held = {} -- the locks that this batch wrote: those that are held are listed once, in the end
local conclude = finish

local function lock_of(name)
  local found = call('HGET', H .. 'locks', name)
  if not found then
    return 0
  end
  return decode(found)
end

local function write_lock(name, epoch, token, owner, acquired, lasts)
  call('HSET', H .. 'locks', name, pack(epoch, token, owner, acquired, lasts))
  is_held[name] = token ~= nil
end

local function write_held(command, names)
  if #names > 0 then
    call(command, H .. 'locks:held', unpack(names))
  end
end

-- Answers the epoch, or owner, remaining, epoch of another holder. Asked again by the holder's token (its answer was
-- lost) it gives the same epoch, and lasts from this request: its owner counts from here too.
on.Acquire = function(c)
  local epoch, token, owner, acquired, lasts = lock_of(c.name)
  if not token or lasts <= mono then
    epoch = raised(epoch)
    write_lock(c.name, epoch, c.token, c.owner, now, mono + c.ttl)
    return epoch
  end
  if token ~= c.token then
    return {owner, lasts - mono, epoch}
  end
  write_lock(c.name, epoch, token, owner, acquired, math.max(lasts, mono + c.ttl))
  return epoch
end

-- Answers the pairs of name and token that are lost.
on.RenewLocks = function(c)
  local lost = {}
  for _, pair in ipairs(c.held) do
    local epoch, token, owner, acquired, lasts = lock_of(pair[1])
    if token == pair[2] and lasts > mono then
      lasts = math.max(lasts, mono + c.ttl)
      call('HSET', H .. 'locks', pair[1], pack(epoch, token, owner, acquired, lasts)) -- it is listed already
    else
      lost[#lost + 1] = pair
    end
  end
  return lost
end

on.ReleaseLock = function(c)
  local epoch, token, _, _, lasts = lock_of(c.name)
  if token ~= c.token or lasts <= mono then
    return false
  end
  write_lock(c.name, epoch)
  loud = true
  return true
end

function finish()
  local taken, given_back = {}, {}
  for name, held in pairs(is_held) do
    local names = held and taken or given_back
    names[#names + 1] = name
  end
  write_held('SADD', taken)
  write_held('SREM', given_back)
  conclude()
end
