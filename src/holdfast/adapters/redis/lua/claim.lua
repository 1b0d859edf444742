-- Claiming: an attempt at a run begins, under a lease.

local keys, meta, run = require('keys'), require('meta'), require('run')
local indexes, locks, writes = require('indexes'), require('locks'), require('writes')
local call, decode = redis.call, cmsgpack.unpack
local H, clock = keys.H, meta.clock

local NAMES_AT_ONCE = 4000 -- ready queues that a claim looks at

-- How many more runs of a tenant may run.
local function room(tenant)
  local limit = call('HGET', H .. 'limits', tenant)
  if not limit then
    return math.huge
  end
  return tonumber(limit) - tonumber(call('HGET', H .. 'running', tenant) or 0)
end

-- Append the tenants whose queues are named, in the order of their names, with their queues of the
-- wanted pipelines.
local function collect(names, wanted, tenants, by_name, most)
  for _, name in ipairs(names) do
    local tenant, pipeline, priority = string.match(name, '^(%Z*)%z(%Z*)%z(.*)$')
    if wanted[pipeline] and (by_name[tenant] or #tenants < most) then
      local known = by_name[tenant]
      if not known then
        known = {name = tenant, turn = #tenants + 1, running = 0, room = math.huge, queues = {}}
        by_name[tenant], tenants[#tenants + 1] = known, known
      end
      known.queues[#known.queues + 1] = {name = name, priority = tonumber(priority)}
    end
  end
end

-- The tenants that have queues: behind the one that was served last, and on with the first.
local function waiting(c)
  local wanted, tenants, by_name = {}, {}, {}
  for _, pipeline in ipairs(c.pipelines) do
    wanted[pipeline] = true
  end
  local key, border = H .. 'queues:' .. c.lane, c.after .. '\1'
  local behind = call('ZRANGEBYLEX', key, '[' .. border, '+', 'LIMIT', 0, NAMES_AT_ONCE)
  collect(behind, wanted, tenants, by_name, c.examined)
  if c.after ~= '' then
    local before = call('ZRANGEBYLEX', key, '-', '(' .. border, 'LIMIT', 0, NAMES_AT_ONCE)
    collect(before, wanted, tenants, by_name, c.examined)
  end
  return tenants
end

-- Those with the fewest running runs of the lane first.
local function in_turn(tenants, lane)
  for _, tenant in ipairs(tenants) do
    tenant.room = room(tenant.name)
    if #tenants > 1 then
      tenant.running = tonumber(call('HGET', H .. 'running:' .. lane, tenant.name) or 0)
    end
  end
  table.sort(tenants, function(a, b)
    if a.running ~= b.running then
      return a.running < b.running
    end
    return a.turn < b.turn
  end)
end

-- The first runs of a tenant: by priority, then in the order of acceptance. Queues that turn out to
-- be empty are not named any more.
local function first_of(tenant, lane, most)
  local runs = {}
  for _, queue in ipairs(tenant.queues) do
    local entries = call('ZRANGE', H .. 'ready:' .. lane .. '\0' .. queue.name, 0, most - 1,
      'WITHSCORES')
    for i = 1, #entries, 2 do
      local seq = tonumber(entries[i + 1])
      runs[#runs + 1] = {id = entries[i], seq = seq, priority = queue.priority}
    end
    if not entries[1] then
      call('ZREM', H .. 'queues:' .. lane, queue.name)
    end
  end
  if #tenant.queues > 1 then
    table.sort(runs, function(a, b)
      if a.priority ~= b.priority then
        return a.priority > b.priority
      end
      return a.seq < b.seq
    end)
  end
  return runs
end

-- The runs of a parallel lane that are to be claimed, in rounds: each tenant one.
local function take_turns(c)
  local tenants, served, chosen = waiting(c), {}, {}
  in_turn(tenants, c.lane)
  for _, tenant in ipairs(tenants) do
    local most = math.min(c.limit, tenant.room)
    local runs = most > 0 and #served < c.limit and first_of(tenant, c.lane, most) or {}
    if runs[1] then
      served[#served + 1] = runs
    end
  end
  for round = 1, c.limit do
    local before = #chosen
    for _, runs in ipairs(served) do
      if #chosen < c.limit and runs[round] then
        chosen[#chosen + 1] = runs[round].id
      end
    end
    if #chosen == before then
      break
    end
  end
  return chosen
end

-- The head of a fifo lane, for its leader, when nothing is under way or in the way.
local function head_of(c)
  if not locks.is_held('lane:' .. c.lane, c.token, c.term)
    or call('EXISTS', H .. 'running:' .. c.lane, H .. 'blocked:' .. c.lane) > 0 then
    return {}
  end
  local id = call('ZRANGE', H .. 'fifo:' .. c.lane, 0, 0)[1]
  local head = id and run.load(id)
  if not head or head.due > clock.later or room(head.tenant) < 1 then
    return {}
  end
  for _, pipeline in ipairs(c.pipelines) do
    if pipeline == head.pipeline then
      return {id}
    end
  end
  return {}
end

-- Lease a run, unless its input is larger than `left`: what the worker is told, and the size.
local function start(id, c, left)
  local self, input, progress = run.load(id, 'i', 'p')
  if #input > left then
    return nil
  end
  indexes.leave(self)
  local resumed = self.epoch > 0 or self.inherits
  self.state, self.epoch, self.attempts = run.RUNNING, meta.raised(self.epoch), self.attempts + 1
  self.until_, self.ttl, self.available, self.due = clock.mono + c.ttl, c.ttl, 0, 0
  self.started = self.started > 0 and self.started or clock.now
  run.put(self, 'w', c.worker)
  run.event(self, 'run.started', string.format('{"attempt":%d,"worker":%s,"epoch":%d}',
    self.attempts, cjson.encode(c.worker), self.epoch))
  indexes.enter(self)
  run.save(self)
  return {id, self.tenant, self.pipeline, self.lane, self.epoch, self.attempts, self.limit, input,
    progress or '{}', resumed, (select(10, decode(self.s)))}, #input
end

-- The fields of model/commands.py, and how many tenants are to be examined. Returns rows of
-- Claimed.
local function claim(c)
  c.limit = math.min(c.limit, c.examined)
  if c.limit < 1 then
    return {}
  end
  writes.flush()
  indexes.end_delays(c.lane, clock.later)
  local claimed, size = {}, 0
  for i, id in ipairs((indexes.lane(c.lane) and head_of or take_turns)(c)) do
    local row, bytes = start(id, c, i > 1 and c.max_bytes - size or math.huge)
    if not row then
      break
    end
    claimed[i], size = row, size + bytes
  end
  return claimed
end

return {Claim = claim}
