-- How a mover finds out about a store, and holds it. It stands in the place of batch.lua, so it also writes to a store
-- that is held.
--
-- A store that takes part in a move has in its meta
--   mark   JSON of `Mark`
--   held   what everybody is told who wants to write
--
-- KEYS[1]  <prefix>holdfast:meta
-- ARGV[1]  the prefix
-- ARGV[2]  who does it
-- ARGV[3]  1 when state documents are wanted
-- ARGV[4]  name of the act
-- ARGV[5]  MessagePack: what the act is given
--
-- Returns MessagePack: what is said at each act.

local act = {}

local function count_runs()
  local count = 0
  for _, tenant in ipairs(call('SMEMBERS', H .. 'tenants')) do
    for _, number in ipairs(call('HVALS', H .. 'counts:' .. tenant)) do
      count = count + tonumber(number)
    end
  end
  return count
end

-- Answers whether there is anything, how many runs, the newest, seq, position, confirmed, the present of delays, and who
-- holds what.
function act.standing()
  local newest = call('XREVRANGE', H .. 'runs', '+', '-', 'COUNT', 1)[1]
  local holders = {}
  for _, lane in ipairs(call('HKEYS', H .. 'leases')) do
    for _, id in ipairs(call('SMEMBERS', H .. 'leases:' .. lane)) do
      local run = stored(id)
      if run.lasts > mono then
        holders[#holders + 1] = {1, run.seq, 'run ' .. id, run.worker or ''}
      end
    end
  end
  for _, name in ipairs(call('SMEMBERS', H .. 'locks:held')) do
    local _, token, owner, _, lasts = lock_of(name)
    if token and lasts > mono then
      holders[#holders + 1] = {2, name, 'lock ' .. name, owner}
    end
  end
  local used = call('XLEN', H .. 'runs') + call('ZCARD', H .. 'letters:all') + call('LLEN', H .. 'audit') > 0
  local ids = newest and decode(newest[2][2]) or {}
  return {used, count_runs(), ids[#ids] or false, seq, position,
    tonumber(call('HGET', KEYS[1], 'confirmed') or 0), later, holders}
end

-- Streams remember the highest number they ever had: a store whose runs are all gone begins anew.
local function forget_streams()
  call('DEL', H .. 'runs', H .. 'ended', H .. 'outbox')
  call('HDEL', KEYS[1], 'hidden')
  for _, tenant in ipairs(call('SMEMBERS', H .. 'tenants')) do
    call('DEL', H .. 'tenant:' .. tenant)
  end
end

-- mark, held; of a store that is being filled also sent. All leases and locks end.
function act.hold(c)
  for _, lane in ipairs(call('HKEYS', H .. 'leases')) do
    for _, id in ipairs(call('SMEMBERS', H .. 'leases:' .. lane)) do
      local run = stored(id)
      run.lasts = 0
      save(run)
    end
    call('HSET', H .. 'leases', lane, 0)
  end
  repeat until #on.Sweep({limit = AT_ONCE}) == 0
  for _, name in ipairs(call('SMEMBERS', H .. 'locks:held')) do
    write_lock(name, (lock_of(name)))
  end
  finish()
  call('HSET', KEYS[1], 'mark', c.mark, 'held', c.held)
  call('DEL', INBOX)
  if c.sent and call('XLEN', H .. 'runs') == 0 then
    forget_streams()
    call('HSET', KEYS[1], 'confirmed', c.sent) -- of these events no note has to be kept: see note_events
  end
  return true
end

take_in()
finish()
return pack(act[ARGV[4]](decode(ARGV[5])))
