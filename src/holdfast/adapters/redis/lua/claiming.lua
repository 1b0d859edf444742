-- Claiming: an attempt at a run begins, under a lease.

local AT_ONCE = 1000 -- runs that one command claims, or whose delay it ends
local LEAP = 8 -- as in clock.lua
local claims = {} -- what each Claim was given, packed

-- An array of so many values that are packed already, in pieces.
local function array_of(count, pieces)
  return struct.pack('>BI2', 0xdc, count) .. table.concat(pieces)
end

function told(answers)
  return '\146' .. pack(answers) .. array_of(#claims, claims)
end

local function end_delays(lane)
  local due = call('ZRANGEBYSCORE', H .. 'delayed:' .. lane, '-inf', later, 'LIMIT', 0, AT_ONCE)
  for _, id in ipairs(due) do
    local run = find(id)
    call('ZREM', H .. 'delayed:' .. lane, id)
    call('ZREM', H .. 'waiting:' .. lane, id)
    run.available = nil
    line_up(run)
    save(run)
  end
end

local function contains(list, wanted)
  for _, value in ipairs(list) do
    if value == wanted then
      return true
    end
  end
  return false
end

-- The ready queues of a lane: priority, pipeline, key of each, the highest priority first.
local function queues_of(lane, pipelines)
  local found = {}
  for _, name in ipairs(call('SMEMBERS', H .. 'queues:' .. lane)) do
    local priority, pipeline = string.match(name, '^(%Z*)%z(.*)$')
    if not pipelines or contains(pipelines, pipeline) then
      found[#found + 1] = {tonumber(priority), pipeline, H .. 'ready:' .. lane .. '\0' .. name}
    end
  end
  table.sort(found, function(a, b) return a[1] > b[1] end)
  return found
end

-- The first runs of a queue: the ids of stored ones and, behind them, runs of this batch as they are.
local function first_of(key, limit)
  local found, new = call('ZRANGE', key, 0, limit - 1), fresh[key]
  local count = #found
  for i = 1, new and math.min(#new, limit - count) or 0 do
    found[count + i] = new[i]
  end
  return found
end

-- The same of several queues, in the order of acceptance: run, key, number.
local function first_of_all(queues, from, to, limit)
  local found = {}
  for i = from, to do
    local key = queues[i][3]
    local entries, new = call('ZRANGE', key, 0, limit - 1, 'WITHSCORES'), fresh[key] or {}
    for j = 1, #entries, 2 do
      found[#found + 1] = {entries[j], key, tonumber(entries[j + 1])}
    end
    for j = 1, math.min(#new, limit - #entries / 2) do
      found[#found + 1] = {new[j], key, new[j].seq}
    end
  end
  table.sort(found, function(a, b) return a[3] < b[3] end)
  return found
end

-- The next runs of a parallel lane, by priority, then in the order of acceptance, and the keys of their queues.
local function next_of(c)
  local queues, found, keys, from = queues_of(c.lane, c.pipelines), {}, {}, 1
  while from <= #queues and #found < c.limit do
    local to, limit, key = from, c.limit - #found, queues[from][3]
    while queues[to + 1] and queues[to + 1][1] == queues[from][1] do
      to = to + 1
    end
    local next = to == from and first_of(key, limit) or first_of_all(queues, from, to, limit)
    for i = 1, math.min(#next, limit) do
      if to == from then
        found[#found + 1], keys[#keys + 1] = next[i], key
      else
        found[#found + 1], keys[#keys + 1] = next[i][1], next[i][2]
      end
    end
    from = to + 1
  end
  return found, keys
end

local function leads(c)
  local found = call('HGET', H .. 'locks', 'lane:' .. c.lane)
  if not found then
    return false
  end
  local epoch, token, _, _, lasts = decode(found)
  return token and token == c.token and epoch == c.term and lasts > mono
end

-- The head of a fifo lane and the key of its queue, for its leader, when nothing is under way or in the way. Delayed runs keep
-- their place.
local function head_of(c)
  writes.queues()
  if c.limit < 1 or not leads(c) or call('EXISTS', H .. 'leases:' .. c.lane, H .. 'blocked:' .. c.lane) > 0 then
    return {}, {}
  end
  local found = call('ZRANGE', H .. 'waiting:' .. c.lane, 0, 0, 'WITHSCORES')
  local head, key, pipeline, number = nil, nil, nil, tonumber(found[2] or math.huge)
  for _, queue in ipairs(queues_of(c.lane)) do
    found = call('ZRANGE', queue[3], 0, 0, 'WITHSCORES')
    if found[1] and tonumber(found[2]) < number then
      head, key, pipeline, number = found[1], queue[3], queue[2], tonumber(found[2])
    end
  end
  if not head or not contains(c.pipelines, pipeline) then
    return {}, {}
  end
  return {head}, {key}
end

-- Take as many runs from the start of each queue.
local function take(taken)
  for key, numbers in pairs(taken) do
    if numbers.old > 0 then
      call('ZREMRANGEBYRANK', key, 0, numbers.old - 1)
    end
    if numbers.new > 0 then
      local queue = fresh[key]
      for i = 1, #queue do
        queue[i] = queue[i + numbers.new]
      end
    end
  end
end

-- What the event says of a worker: most runs of a claim have the same epoch and attempt.
local function describe(worker, epoch, attempts)
  worker.epoch, worker.attempts = epoch, attempts
  worker.data = format('{"attempt":%d,"worker":%s,"epoch":%d}', attempts, worker.json, epoch)
  worker.packed, worker.limit = pack(epoch, attempts), nil
end

local function as_worker(c)
  return {name = c.worker, json = cjson.encode(c.worker), lasts = mono + c.ttl, told = {}, count = 0}
end

-- Lease a run. What is to be written of it: the field of an event, the event, the fence, the rest. Runs are claimed by the
-- thousand, and a table for each of them is what would take longest.
local function lease(worker, tenant, pipeline, lane, seq, epoch, number, started, finished, bad, attempts, limit, due, holds)
  if worker.epoch ~= epoch or worker.attempts ~= attempts then
    describe(worker, epoch, attempts)
  end
  tally_of(tenant, pipeline, lane, QUEUED, RUNNING)
  local field, event = event_of_run(seq, number, 'run.started', worker.data)
  return field, event,
    pack_fence(FENCE, seq, RUNNING, epoch, worker.lasts, number, started > 0 and started or now, finished, bad),
    rest_of(attempts, limit, nil, due, worker.name, nil, holds)
end

-- What comes before a text.
local function head_of_text(text)
  return #text < 32 and string.char(0xa0 + #text) or struct.pack('>BI4', 0xdb, #text)
end

-- What a worker is told of a run, packed: what never changes of it, its id, input, progress, limit of attempts, whether it was
-- claimed before, epoch, attempts. An array of eight, of which the first is an array of ten; put down in pieces, since
-- every string that is made has its price.
local function tell(worker, s, id, input, progress, limit, again)
  if worker.limit ~= limit or worker.progress ~= progress or worker.again ~= again then
    worker.limit, worker.progress, worker.again = limit, progress, again
    worker.ending = pack(progress, limit, again) .. worker.packed
  end
  local told, count = worker.told, worker.count
  told[count + 1], told[count + 2], told[count + 3], told[count + 4] = '\152\154', s, head_of_text(id), id
  told[count + 5], told[count + 6], told[count + 7] = head_of_text(input), input, worker.ending
  worker.count = count + 7
end

-- Lease a stored run, unless its input is larger than `room`, and tell the worker. The size of the input.
local function start_stored(worker, id, room)
  flush(id)
  local name = RUN .. id
  local found = call('HMGET', name, 's', 'f', 'r', 'i')
  local s, input = found[1], found[4]
  if #input > room then
    return nil
  end
  local seq, _, epoch, _, last, started, finished, bad = unpack_fence(FENCE, found[2])
  local _, tenant, pipeline, lane = cmsgpack.unpack_limit(s, 3)
  local attempts, limit, _, due, _, _, holds = decode(found[3])
  local field, event, fence, rest = lease(worker, tenant, pipeline, lane, seq, raised(epoch), last + 1, started, finished,
    bad, attempts + 1, limit, due, holds)
  call('HSET', name, field, event, 'f', fence, 'r', rest)
  if epoch > 0 then
    to_show[id] = WANTED or nil
  end
  tell(worker, s, id, input, epoch > 0 and call('HGET', name, 'p') or '{}', limit, epoch > 0)
  return #input
end

-- The same of a run that this batch has accepted, under an epoch that it was given, if it was.
local function start_new(worker, run, room, epoch)
  if #run.input > room then
    return nil
  end
  local field, event, fence, rest = lease(worker, run.tenant, run.pipeline, run.lane, run.seq, epoch or raised(0),
    run.last + 1, 0, 0, 0, 1, run.limit, run.due, nil)
  put(run, field, event)
  put(run, 'f', fence)
  put(run, 'r', rest)
  pending[run.id] = nil
  write(run)
  tell(worker, run.s, run.id, run.input, '{}', run.limit, false)
  return #run.input
end

-- Note which runs are running, and from when on it is worth while to look for leases that have ended.
local function note_leases(c, ids)
  local first = call('HGET', H .. 'leases', c.lane)
  call('SADD', H .. 'leases:' .. c.lane, unpack(ids))
  if not first or mono + c.ttl < tonumber(first) then
    call('HSET', H .. 'leases', c.lane, mono + c.ttl)
  end
end

-- The epoch of a run that was given out with an entry of the inbox: microseconds since 2026, as a server's new life begins
-- with (adopt.lua), and one for each entry.
local function epoch_of(id)
  local ms, number = string.match(id, '^(%d+)-(%d+)$')
  return (tonumber(ms) - 1767225600000) * 1000 + math.min(tonumber(number), 999)
end

-- Lease a run of this batch that was given out `waited` milliseconds ago; no jump of the clock takes more than LEAP from it.
-- A run of a fifo lane has to wait its turn, whoever has it; and by a clock that stands before 2026 nothing is given.
function begin_given(run, id, consumer, waited)
  local epoch = epoch_of(id)
  if epoch < 1 or order_of(run.lane) == 'fifo' then
    return
  end
  local worker, ttl = string.match(consumer, '^(.*) (%S+)$')
  local c = {worker = worker, lane = run.lane, ttl = tonumber(ttl) - math.min(waited / 1000, LEAP)}
  local queue = queue_of(run)
  queue[#queue] = nil
  start_new(as_worker(c), run, math.huge, epoch)
  note_leases(c, {run.id})
end

-- Answers which of `claims` are its runs, and the time.
on.Claim = function(c)
  c.limit = math.min(c.limit, AT_ONCE)
  writes.freed()
  end_delays(c.lane)
  local next, keys = (order_of(c.lane) == 'fifo' and head_of or next_of)(c)
  local taken, started, size, worker = {}, {}, 0, as_worker(c)
  for i, each in ipairs(next) do
    local is_stored = type(each) == 'string'
    local bytes = (is_stored and start_stored or start_new)(worker, each, i > 1 and c.max_bytes - size or math.huge)
    if not bytes then
      break
    end
    local numbers = within(taken, keys[i])
    numbers.old = (numbers.old or 0) + (is_stored and 1 or 0)
    numbers.new = (numbers.new or 0) + (is_stored and 0 or 1)
    started[i], size = is_stored and each or each.id, size + bytes
  end
  take(taken)
  if started[1] then
    note_leases(c, started)
  end
  claims[#claims + 1] = array_of(#started, worker.told)
  return {#claims, now}
end
