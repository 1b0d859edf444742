-- The reads that take more than one command. Nothing is written.
--
-- KEYS[1]  <prefix>holdfast:meta
-- ARGV[1]  the prefix
-- ARGV[2]  name of the read
-- ARGV[3]  MessagePack: what it asks for
--
-- Returns what is said at each read, or the error INBOX: what lies there has to be taken in first. A run is its fields s, f, r, i, p, o, e as they are stored, and its id.

local known = call('HMGET', KEYS[1], 'wall', 'mono', 'later')
read_clock(known[1], known[2], known[3])

if ARGV[2] ~= 'over' and call('XLEN', H .. 'inbox') > 0 then
  return redis.error_reply('INBOX has to be taken in first') -- Redis 7 takes the first of several words for the code
end

local EXAMINED = 500 -- runs that one call of `runs` looks at: the server is never busy for long

local function whole(id)
  local found = call('HMGET', RUN .. id, 's', 'f', 'r', 'i', 'p', 'o', 'e')
  if not found[1] then
    return nil
  end
  if found[6] and string.sub(found[6], 1, 1) == '=' then
    found[6] = (decode(call('HGET', RUN .. id, 'c' .. string.sub(found[6], 2) .. '\0')))
  end
  found[8] = id
  return found
end

local read = {}

function read.run(asked)
  return whole(asked) or false
end

-- Those of the given runs that are over.
function read.over(ids)
  local found = {}
  for _, id in ipairs(ids) do
    local fence = call('HGET', RUN .. id, 'f')
    if fence and select(2, unpack_fence(FENCE, fence)) >= SUCCEEDED then
      found[#found + 1] = whole(id)
    end
  end
  return found
end

-- --- lists of runs: sources give ids with their numbers, newest first, below a number ---

local function newest(a, b)
  return a.seq > b.seq
end

-- Entries of a stream name several runs: ids whose numbers end with that of the entry, or number, id, number, id, …
local function from_stream(key, with_numbers, below, limit)
  local found, top = {}, '+'
  local function add(entry)
    local group, last = decode(entry[2][2]), tonumber(string.match(entry[1], '^%d+'))
    for i = #group, 1, with_numbers and -2 or -1 do
      local number = with_numbers and group[i - 1] or last - (#group - i)
      if not below or number < below then
        found[#found + 1] = {seq = number, id = group[i]}
      end
    end
    top = '(' .. entry[1]
  end
  local around = below and call('XRANGE', key, format('%d-0', below - 1), '+', 'COUNT', 1)[1]
  if around then
    add(around)
  end
  local count = 1 -- entries name one run or hundreds: begin with few
  while #found < limit do
    local entries = call('XREVRANGE', key, top, '-', 'COUNT', count)
    for _, entry in ipairs(entries) do
      add(entry)
    end
    if #entries < count then
      break
    end
    count = math.min(2 * count, 64)
  end
  return found
end

local function from_set(key, below, limit)
  local found = {}
  local top = below and format('(%d', below) or '+inf'
  local entries = call('ZREVRANGEBYSCORE', key, top, '-inf', 'WITHSCORES', 'LIMIT', 0, limit)
  for i = 1, #entries, 2 do
    found[#found + 1] = {id = entries[i], seq = tonumber(entries[i + 1])}
  end
  return found
end

-- Runs known by id only.
local function from_ids(ids, below)
  local found = {}
  for _, id in ipairs(ids) do
    local run = stored(id)
    if run and (not below or run.seq < below) then
      found[#found + 1] = run
    end
  end
  return found
end

local function lanes_of(where)
  return where.lane and {where.lane} or call('SMEMBERS', H .. 'lanes:busy')
end

local function with_key(where)
  local ids = {}
  for _, tenant in ipairs(where.tenant and {where.tenant} or call('SMEMBERS', H .. 'tenants')) do
    ids[#ids + 1] = call('HGET', H .. 'keys', tenant .. '\0' .. where.key) or nil
  end
  return ids
end

local function queues_of(lane)
  local keys = {H .. 'waiting:' .. lane}
  for _, name in ipairs(call('SMEMBERS', H .. 'queues:' .. lane)) do
    keys[#keys + 1] = H .. 'ready:' .. lane .. '\0' .. name
  end
  return keys
end

local function from_lanes(where, below, limit)
  local all = {}
  local function add(found)
    for _, run in ipairs(found) do
      all[#all + 1] = run
    end
  end
  for _, lane in ipairs(lanes_of(where)) do
    if where.state == 'running' then
      add(from_ids(call('SMEMBERS', H .. 'leases:' .. lane), below))
    else
      for _, key in ipairs(queues_of(lane)) do
        add(from_set(key, below, limit))
      end
    end
  end
  return all
end

-- The narrowest list that has all that match.
local function candidates(where, below, limit)
  local state = where.state
  local found
  if where.key then
    found = from_ids(with_key(where), below)
  elseif state == 'queued' or state == 'running' then
    found = from_lanes(where, below, limit)
  elseif state == 'paused' or state == 'failed' or state == 'cancelled' then
    return from_set(H .. 'state:' .. state, below, limit)
  else
    local key = where.tenant and 'tenant:' .. where.tenant or 'runs'
    return from_stream(H .. key, where.tenant ~= nil, below, limit)
  end
  table.sort(found, newest)
  return found
end

-- Whether only what a list is made of was asked for: then every candidate is a hit.
local function is_plain(where)
  return not (where.pipeline or where.state or where.lane or where.key or where.id_prefix)
end

local function matches(id, number, where)
  local found = call('HMGET', RUN .. id, 's', 'f')
  if not found[1] or unpack_fence(FENCE, found[2]) ~= number then
    return false -- it is gone, only its group is left
  end
  local tenant, pipeline, lane, _, key = decode(found[1])
  return (where.tenant or tenant) == tenant and (where.pipeline or pipeline) == pipeline
    and (where.lane or lane) == lane and (where.key or key) == key
    and (not where.state or where.state == NAMES[select(2, unpack_fence(FENCE, found[2]))])
end

-- `asked` is where, limit, below (false: from the newest). Returns runs, and below which number to go on (0: the end).
function read.runs(asked)
  local where, limit, below = asked[1], asked[2], asked[3] or nil
  local prefix = where.id_prefix or ''
  local found, last = {}, 0
  local wanted = is_plain(where) and math.min(limit + 1, EXAMINED) or EXAMINED
  local examined = candidates(where, below, wanted)
  for i, run in ipairs(examined) do
    if i > EXAMINED or #found >= limit then
      return {found, last}
    end
    last = run.seq
    if string.sub(run.id, 1, #prefix) == prefix and matches(run.id, run.seq, where) then
      found[#found + 1] = whole(run.id)
    end
  end
  return {found, #examined >= wanted and last or 0}
end

-- Returns state, number, state, number, …
function read.count(where)
  local counts, flat = {}, {}
  for _, tenant in ipairs(where.tenant and {where.tenant} or call('SMEMBERS', H .. 'tenants')) do
    local fields = call('HGETALL', H .. 'counts:' .. tenant)
    for i = 1, #fields, 2 do
      local pipeline, lane, state = string.match(fields[i], '^(%Z*)%z(%Z*)%z(%Z*)$')
      if (where.pipeline or pipeline) == pipeline and (where.lane or lane) == lane
        and (where.state or state) == state then
        counts[state] = (counts[state] or 0) + tonumber(fields[i + 1])
      end
    end
  end
  for state, number in pairs(counts) do
    flat[#flat + 1], flat[#flat + 2] = state, number
  end
  return flat
end

-- --- what belongs to a run ---

-- `asked` is run, step (false: all). Returns field, value, field, value, …
function read.checkpoints(asked)
  local start = asked[2] and 'c' .. asked[2] .. '\0' or 'c'
  local all, found = call('HGETALL', RUN .. asked[1]), {}
  for i = 1, #all, 2 do
    if #all[i] > 1 and string.sub(all[i], 1, #start) == start then
      found[#found + 1], found[#found + 2] = all[i], all[i + 1]
    end
  end
  return found
end

-- Returns s, and the events: type, at, data, position.
function read.history(id)
  local found = call('HMGET', RUN .. id, 's', 'f')
  local events, place, last = {}, 0, found[1] and select(5, unpack_fence(FENCE, found[2])) or 0
  for from = 1, last, 1000 do
    local fields = {}
    for number = from, math.min(from + 999, last) do
      fields[#fields + 1] = 'e' .. number
    end
    for _, event in ipairs(call('HMGET', RUN .. id, unpack(fields))) do
      local kind, at, data, found_at = event_of(id, event, found[2], place + 1)
      events[#events + 1], place = pack(kind, at, data, found_at), found_at
    end
  end
  return {found[1], events}
end

-- --- the rest ---

-- `asked` is tenant (false: all), open only, limit. Returns ids with m and b.
function read.dead_letters(asked)
  local index = H .. 'letters:' .. (asked[2] and 'open' or 'all') .. (asked[1] and ':' .. asked[1] or '')
  local found = {}
  for i, id in ipairs(asked[3] > 0 and call('ZREVRANGE', index, 0, asked[3] - 1) or {}) do
    local letter = call('HMGET', H .. 'letter:' .. id, 'm', 'b')
    found[i] = {id, letter[1], letter[2]}
  end
  return found
end

local function holder(name)
  local found = call('HGET', H .. 'locks', name)
  if not found then
    return nil
  end
  local epoch, token, owner, acquired, lasts = decode(found)
  if token and lasts > mono then
    return epoch, owner, acquired, lasts - mono
  end
  return nil
end

-- Returns MessagePack: name, epoch, owner, acquired, remaining of each lock that is held.
function read.locks()
  local rows = {}
  for _, name in ipairs(call('SMEMBERS', H .. 'locks:held')) do
    local epoch, owner, acquired, remaining = holder(name)
    if epoch then
      rows[#rows + 1] = {name, epoch, owner, acquired, remaining}
    end
  end
  return pack(rows)
end

local function lane_row(name)
  local order, head = order_of(name)
  local term, leader = holder('lane:' .. name)
  local queued = 0
  for _, key in ipairs(queues_of(name)) do
    queued = queued + call('ZCARD', key)
  end
  local running = call('SCARD', H .. 'leases:' .. name)
  return {name, order, head, queued, running, leader or false, term or 0,
    call('ZRANGE', H .. 'blocked:' .. name, 0, 0)[1] or false}
end

-- Returns MessagePack: name, order, head, queued, running, leader, term, blocked by, of each lane.
function read.lanes()
  local rows, defined = {}, {}
  for _, name in ipairs(call('HKEYS', H .. 'lanes')) do
    defined[name] = true
    rows[#rows + 1] = lane_row(name)
  end
  for _, name in ipairs(call('SMEMBERS', H .. 'lanes:busy')) do
    local lane = not defined[name] and lane_row(name)
    if lane and lane[4] + lane[5] > 0 then
      rows[#rows + 1] = lane
    end
  end
  return pack(rows)
end

return read[ARGV[2]](decode(ARGV[3]))
