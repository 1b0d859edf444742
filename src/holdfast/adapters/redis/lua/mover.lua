-- What only a mover does: hold a store, and put runs that come from elsewhere where they belong. It stands in the place
-- of batch.lua, so it also writes to a store that is held.
--
-- A store that takes part in a move has in its meta
--   mark   JSON of `Mark`
--   held   what everybody is told who wants to write
--
-- KEYS[1]  <prefix>holdfast:meta
-- ARGV[1]  the prefix
-- ARGV[2]  name of the act
-- ARGV[3]  who does it
-- ARGV[4]  1 when state documents are wanted
-- ARGV[5]  MessagePack: what the act is given
--
-- Returns MessagePack: what is said at each act.

local act = {}
local WAITING = {outbox = H .. 'moving:outbox', ended = H .. 'moving:ended'}

-- --- holding ---

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
  return {used, count_runs(), newest and tonumber(string.match(newest[1], '^%d+')) or 0, seq, position,
    tonumber(call('HGET', KEYS[1], 'confirmed') or 0), later, holders}
end

-- Streams remember the highest number they ever had: a store whose runs are all gone begins anew.
local function forget_streams()
  call('DEL', H .. 'runs', H .. 'ended', H .. 'outbox')
  for _, tenant in ipairs(call('SMEMBERS', H .. 'tenants')) do
    call('DEL', H .. 'tenant:' .. tenant)
  end
end

-- mark, held. All leases and locks end.
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
  if c.arriving and call('XLEN', H .. 'runs') == 0 then
    forget_streams()
  end
  return true
end

-- --- taking in ---

-- name, epoch, name, epoch, …
function act.locks(c)
  for i = 1, #c, 2 do
    write_lock(c[i], math.max(c[i + 1], (lock_of(c[i]))))
  end
  return true
end

-- Where a run belongs, by its state.
local place = {
  [QUEUED] = function(run) line_up(run) end,
  [PAUSED] = function(run) call('ZADD', H .. 'state:paused', run.seq, run.id) end,
  [SUCCEEDED] = function(run, c) call('ZADD', WAITING.ended, c.events[#c.events], run.id) end,
  [FAILED] = function(run)
    call('ZADD', H .. 'state:failed', run.seq, run.id)
    call('ZADD', H .. 'failed', run.finished, run.id)
    if run.holds then
      call('ZADD', H .. 'blocked:' .. run.lane, run.seq, run.id)
    end
  end,
  [CANCELLED] = function(run, c)
    call('ZADD', H .. 'state:cancelled', run.seq, run.id)
    call('ZADD', WAITING.ended, c.events[#c.events], run.id)
  end,
}

local function claim_names(run)
  if run.key then
    call('HSET', H .. 'keys', run.tenant .. '\0' .. run.key, run.id)
  end
  if run.unique and run.state <= PAUSED then
    call('HSET', H .. 'slots', run.tenant .. '\0' .. run.pipeline, run.id)
  end
end

local function note_events(run, c, confirmed)
  for number, at in ipairs(c.events) do
    if at > confirmed then
      call('ZADD', WAITING.outbox, at, format('%d:%d', run.seq, number))
    end
  end
end

local function arrive(c, confirmed)
  local run = {
    id = c.id, tenant = c.tenant, pipeline = c.pipeline, lane = c.lane, key = c.key, unique = c.unique or nil,
    priority = c.priority, created = c.created, seq = c.seq, state = c.state, epoch = c.epoch, lasts = 0, last = #c.events,
    attempts = c.attempts, limit = c.limit, available = c.available, due = c.available and later + c.delay or nil,
    worker = c.worker, reason = c.reason, holds = c.holds or nil, bad = c.bad, started = c.started, finished = c.finished,
    written = {},
  }
  put(run, 's', pack(c.tenant, c.pipeline, c.lane, c.fingerprint, c.key, c.unique or nil, c.priority, c.parent, c.created,
    c.inherits or nil))
  place[run.state](run, c)
  claim_names(run)
  tally(run, run.state, 1)
  note_events(run, c, confirmed)
  save(run)
  to_rebuild[run.id] = WANTED and run.epoch > 0 and (not run.finished or now < run.finished + KEPT) or nil
  return run
end

-- Name runs in a stream, in groups: of `all` with their numbers, of a tenant each with its own.
local function name_runs(runs)
  local group = {}
  for i, run in ipairs(runs) do
    group[#group + 1] = run.id
    if not runs[i + 1] or runs[i + 1].seq ~= run.seq + 1 then
      call('XADD', H .. 'runs', format('%d-0', run.seq), 'm', pack(group))
      group = {}
    end
    local own = within(tenants, run.tenant)
    own[#own + 1], own[#own + 2] = run.seq, run.id
  end
  for tenant, own in pairs(tenants) do
    call('XADD', H .. 'tenant:' .. tenant, format('%d-0', own[#own - 1]), 'm', pack(own))
    call('SADD', H .. 'tenants', tenant)
  end
  tenants = {}
end

-- Runs, in the order of acceptance, whose input, results, events and so on are written already; `events` are the positions
-- of all their events. Those that are there stay as they are.
function act.runs(given)
  local confirmed = tonumber(call('HGET', KEYS[1], 'confirmed') or 0)
  local fresh = {}
  for _, c in ipairs(given) do
    if call('HEXISTS', RUN .. c.id, 's') == 0 then
      fresh[#fresh + 1] = arrive(c, confirmed)
    end
  end
  name_runs(fresh)
  finish()
  for _, run in ipairs(fresh) do
    if run.finished then
      call('EXPIRE', PREFIX .. 'pipeline_state:' .. run.id, math.ceil(math.max(1, run.finished + KEPT - now)))
    end
  end
  return true
end

-- --- the end ---

-- seq, position, confirmed
function act.numbers(c)
  call('HSET', KEYS[1], 'seq', math.max(seq, c[1]), 'position', math.max(position, c[2]), 'confirmed', c[3])
  call('ZREMRANGEBYSCORE', WAITING.outbox, '-inf', c[3])
  return true
end

local function to_outbox(entries)
  local group = {}
  for i = 1, #entries, 2 do
    local run, number = string.match(entries[i], '^(%d+):(%d+)$')
    group[#group + 1], group[#group + 2] = tonumber(run), tonumber(number)
    if tonumber(entries[i + 3] or 0) ~= entries[i + 1] + 1 then
      call('XADD', H .. 'outbox', format('%d-0', entries[i + 1]), 'm', pack(group))
      group = {}
    end
  end
end

local function to_ended(entries)
  for i = 1, #entries, 2 do
    call('XADD', H .. 'ended', format('%d-0', entries[i + 1]), 'm', pack({stored(entries[i]).finished, entries[i]}))
  end
end

-- Put what waits into the streams, in order, a bounded number at a time. Answers how many are left.
function act.drain(limit)
  local left = 0
  for key, put_into in pairs({[WAITING.outbox] = to_outbox, [WAITING.ended] = to_ended}) do
    put_into(call('ZRANGE', key, 0, limit - 1, 'WITHSCORES'))
    call('ZREMRANGEBYRANK', key, 0, limit - 1)
    left = left + call('ZCARD', key)
  end
  return left
end

return pack(act[ARGV[2]](decode(ARGV[5])))
