-- How a mover puts what comes from elsewhere where it belongs. It stands in the place of batch.lua, so it also writes to a
-- store that is held.
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
local WAITING = {outbox = H .. 'moving:outbox', ended = H .. 'moving:ended'}

-- --- taking in ---

-- name, epoch, name, epoch, …
function act.locks(c)
  for i = 1, #c, 2 do
    write_lock(c[i], math.max(c[i + 1], (lock_of(c[i]))))
  end
  write_locks()
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
    worker = c.worker, reason = c.reason, holds = c.holds or nil, bad = c.bad, started = c.started or 0,
    finished = c.finished or 0, written = {},
  }
  put(run, 's', pack(c.tenant, c.pipeline, c.lane, c.fingerprint, c.key, c.unique or nil, c.priority, c.parent, c.created,
    c.inherits or nil))
  place[run.state](run, c)
  claim_names(run)
  tally(run, nil, run.state)
  note_events(run, c, confirmed)
  save(run)
  to_show[run.id] = WANTED and run.epoch > 0 and (run.finished == 0 or now < run.finished + KEPT) or nil
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
    if run.finished > 0 then
      call('EXPIRE', PREFIX .. 'pipeline_state:' .. run.id, math.ceil(math.max(1, run.finished + KEPT - now)))
    end
  end
  return true
end

-- --- the end ---

-- seq, position, confirmed. Runs that have arrived are numbered by positions, and new ones come behind them.
function act.numbers(c)
  call('HSET', KEYS[1], 'seq', math.max(seq, c[1], c[2]), 'position', math.max(position, c[2]), 'confirmed', c[3])
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

return pack(act[ARGV[4]](decode(ARGV[5])))
