-- Claiming: an attempt at a run begins, under a lease. `c` is the fields of Claim in
-- model/commands.py, but `pipelines`: a set, and `examined`: how many tenants are looked
-- at.

local keys, meta, run = require('keys'), require('meta'), require('run')
local indexes, locks, writes = require('indexes'), require('locks'), require('writes')
local call, H, clock = redis.call, keys.H, meta.clock

-- Ready queues that a claim looks at. It is text: numbers are written out anew for each call.
local NAMES_AT_ONCE = '4000'

local function sort_by(list, first, second)
  table.sort(list, function(a, b)
    if a[first] ~= b[first] then
      return a[first] < b[first]
    end
    return a[second] < b[second]
  end)
end

-- Runs whose delay is over, so many at a time: from now on they can be claimed.
local function end_delays(lane)
  local delayed, now = H .. 'delayed:' .. lane, writes.moment(clock.later)
  for _, id in ipairs(call('ZRANGEBYSCORE', delayed, '-inf', now, 'LIMIT', '0', '1000')) do
    indexes.update(run.load(id), {available = 0, due = 0})
  end
end

-- How many more runs of a tenant may run.
local function free_slots(tenant)
  local limit = call('HGET', H .. 'limits', tenant)
  if not limit then
    return math.huge
  end
  return tonumber(limit) - tonumber(call('HGET', H .. 'running', tenant) or 0)
end

-- The names of ready queues: behind the tenant that was served last, and on with the first.
local function queue_names(c)
  local key, border = H .. 'queues:' .. c.lane, c.after .. '\1'
  local names = call('ZRANGEBYLEX', key, '[' .. border, '+', 'LIMIT', '0', NAMES_AT_ONCE)
  local before = call('ZRANGEBYLEX', key, '-', '(' .. border, 'LIMIT', '0', NAMES_AT_ONCE)
  for _, name in ipairs(before) do
    names[#names + 1] = name
  end
  return names
end

-- The tenants that have queues of its pipelines: those with the fewest running runs of the
-- lane first.
local function waiting(c)
  local tenants, by_name = {}, {}
  for _, name in ipairs(queue_names(c)) do
    local tenant, pipeline, priority = string.match(name, '^(%Z*)%z(%Z*)%z(.*)$')
    if c.pipelines[pipeline] then
      if not by_name[tenant] and #tenants < c.examined then
        local running = tonumber(call('HGET', H .. 'running:' .. c.lane, tenant) or 0)
        by_name[tenant] = {name = tenant, running = running, turn = #tenants + 1, queues = {}}
        tenants[#tenants + 1] = by_name[tenant]
      end
      if by_name[tenant] then
        table.insert(by_name[tenant].queues, {name = name, rank = -tonumber(priority)})
      end
    end
  end
  sort_by(tenants, 'running', 'turn')
  return tenants
end

-- The first runs of a tenant: by priority, then in the order of acceptance. Queues that turn out to
-- be empty are not named any more.
local function first_runs(tenant, c)
  local runs, most = {}, math.min(c.limit, free_slots(tenant.name))
  for _, queue in ipairs(most > 0 and tenant.queues or {}) do
    local ready = H .. 'ready:' .. c.lane .. '\0' .. queue.name
    local entries = call('ZRANGE', ready, 0, most - 1, 'WITHSCORES')
    for i = 1, #entries, 2 do
      runs[#runs + 1] = {id = entries[i], rank = queue.rank, seq = tonumber(entries[i + 1])}
    end
    if not entries[1] then
      call('ZREM', H .. 'queues:' .. c.lane, queue.name)
    end
  end
  sort_by(runs, 'rank', 'seq')
  return {unpack(runs, 1, math.min(most, #runs))}
end

-- The runs of a parallel lane that are to be claimed, in rounds: each tenant one.
local function take_turns(c)
  local served, ids = {}, {}
  for _, tenant in ipairs(waiting(c)) do
    local runs = #served < c.limit and first_runs(tenant, c) or {}
    if runs[1] then
      served[#served + 1] = runs
    end
  end
  local round, before = 0, nil
  repeat
    round, before = round + 1, #ids
    for _, runs in ipairs(served) do
      if #ids < c.limit and runs[round] then
        ids[#ids + 1] = runs[round].id
      end
    end
  until #ids == before
  return ids
end

-- The head of a fifo lane, for its leader, when nothing is under way or in the way.
local function head_of(c)
  local leader = locks.load('lane:' .. c.lane)
  if not leader.token or leader.token ~= c.token or leader.epoch ~= c.term
    or call('EXISTS', H .. 'running:' .. c.lane, H .. 'blocked:' .. c.lane) > 0 then
    return {}
  end
  local id = call('ZRANGE', H .. 'fifo:' .. c.lane, 0, 0)[1]
  local head = id and run.load(id)
  local is_ready = head and head.due <= clock.later and c.pipelines[head.pipeline]
    and free_slots(head.tenant) > 0
  return is_ready and {id} or {}
end

-- Lease a run, unless its input is larger than `left`: what the worker is told, and the size.
local function start(id, c, left)
  local self, input, progress = run.load(id, 'i', 'p')
  if #input > left then
    return nil
  end
  local resumed = self.epoch > 0 or self.inherits
  local epoch, attempts = meta.raised(self.epoch), self.attempts + 1
  run.put(self, 'w', c.worker)
  run.event(self, 'run.started', string.format('{"attempt":%d,"worker":%s,"epoch":%d}',
    attempts, cjson.encode(c.worker), epoch))
  indexes.update(self, {
    state = run.RUNNING, epoch = epoch, attempts = attempts, lease_until = clock.mono + c.ttl,
    lease_ttl = c.ttl, available = 0, due = 0,
    started = self.started > 0 and self.started or clock.now,
  })
  return {id, self.tenant, self.pipeline, self.lane, epoch, attempts, self.attempt_limit, input,
    progress or '{}', resumed, self.fingerprint}, #input
end

-- Returns rows of Claimed.
local function claim(c)
  c.limit = math.min(c.limit, c.examined)
  if c.limit < 1 then
    return {}
  end
  end_delays(c.lane)
  writes.flush() -- what is queued can be claimed, also by the batch that queued it
  local claimed, size = {}, 0
  for i, id in ipairs((indexes.is_fifo(c.lane) and head_of or take_turns)(c)) do
    local row, bytes = start(id, c, i > 1 and c.max_bytes - size or math.huge)
    if not row then
      break
    end
    claimed[i], size = row, size + bytes
  end
  return claimed
end

return {claim = claim}
