-- The reads that take more than one command. Nothing is written.
--
-- KEYS[1]  <prefix>holdfast:meta
-- ARGV[1]  the prefix
-- ARGV[2]  name of the read
-- ARGV[3]  MessagePack: what it asks for
--
-- Returns what is said at each read. A run is its fields s, f, r, i, p, o, e as they are stored, and its id.

read_clock(call('HMGET', META, 'wall', 'mono', 'later'))

local EXAMINED = 500 -- runs that one call of `runs` looks at: the server is never busy for long

local function whole(id)
  local found = call('HMGET', RUN .. id, 's', 'f', 'r', 'i', 'p', 'o', 'e')
  if not found[2] then
    return nil
  end
  local step = not found[6] and select(14, decode(found[3]))
  if step then
    found[6] = (decode(call('HGET', RUN .. id, checkpoint_field(step, ''))))
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
    if fence and decode(fence) >= SUCCEEDED then
      found[#found + 1] = whole(id)
    end
  end
  return found
end

-- --- lists of runs: sources give ids with their numbers, newest first, below a number ---

local function newest(a, b)
  return a.seq > b.seq
end

local function from_stream(key, below, limit)
  local found = {}
  for i, entry in ipairs(call('XREVRANGE', key, below and format('%d-0', below - 1) or '+', '-', 'COUNT', limit)) do
    found[i] = {seq = tonumber(string.match(entry[1], '^%d+')), id = entry[2][2]}
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
    local run = load(id)
    if run and (not below or run.seq < below) then
      found[#found + 1] = run
    end
  end
  return found
end

local function lanes_of(where)
  return where.lane and {where.lane} or call('SMEMBERS', BUSY)
end

local function with_key(where)
  local ids = {}
  for _, tenant in ipairs(where.tenant and {where.tenant} or call('SMEMBERS', TENANTS)) do
    ids[#ids + 1] = call('HGET', KEYS_TAKEN, tenant .. '\0' .. where.key) or nil
  end
  return ids
end

local function from_lanes(where, below, limit)
  local all = {}
  for _, lane in ipairs(lanes_of(where)) do
    local found
    if where.state == 'queued' then
      found = from_set(QUEUE .. lane, below, limit)
    else
      found = from_ids(call('ZRANGE', LEASES .. lane, 0, -1), below)
    end
    for _, run in ipairs(found) do
      all[#all + 1] = run
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
    return from_set(STATE .. state, below, limit)
  else
    return from_stream(where.tenant and TENANT .. where.tenant or RUNS, below, limit)
  end
  table.sort(found, newest)
  return found
end

local function matches(id, where)
  local run = {}
  local found = call('HMGET', RUN .. id, 's', 'f')
  if not found[1] then
    return false
  end
  read_spec(run, found[1])
  local function is(name, value)
    return not where[name] or where[name] == value
  end
  return is('tenant', run.tenant) and is('pipeline', run.pipeline) and is('lane', run.lane) and is('key', run.key)
    and is('state', NAMES[decode(found[2])])
end

-- `asked` is where, limit, below (false: from the newest). Returns runs, and below which number to go on (0: the end).
function read.runs(asked)
  local where, limit, below = asked[1], asked[2], asked[3] or nil
  local prefix = where.id_prefix or ''
  local found, last = {}, 0
  local examined = candidates(where, below, EXAMINED)
  for i, run in ipairs(examined) do
    if i > EXAMINED or #found >= limit then
      return {found, last}
    end
    last = run.seq
    if string.sub(run.id, 1, #prefix) == prefix and matches(run.id, where) then
      found[#found + 1] = whole(run.id)
    end
  end
  return {found, #examined >= EXAMINED and last or 0}
end

-- Returns state, number, state, number, …
function read.count(where)
  local counts, flat = {}, {}
  for _, tenant in ipairs(where.tenant and {where.tenant} or call('SMEMBERS', TENANTS)) do
    local fields = call('HGETALL', COUNTS .. tenant)
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

-- Returns s, and the events as they are stored with their positions.
function read.history(id)
  local found = call('HMGET', RUN .. id, 's', 'h')
  local events = {}
  for _, place in ipairs(found[1] and positions_of(found[2]) or {}) do
    local at = format('%d-0', place)
    local entry = call('XRANGE', EVENTS, at, at)[1]
    events[#events + 1], events[#events + 2] = entry[2][2], place
  end
  return {found[1], events}
end

-- --- the rest ---

-- `asked` is tenant (false: all), open only, limit. Returns ids with m and b.
function read.dead_letters(asked)
  local index = LETTERS .. (asked[2] and 'open' or 'all') .. (asked[1] and ':' .. asked[1] or '')
  local found = {}
  for i, id in ipairs(asked[3] > 0 and call('ZREVRANGE', index, 0, asked[3] - 1) or {}) do
    local letter = call('HMGET', LETTER .. id, 'm', 'b')
    found[i] = {id, letter[1], letter[2]}
  end
  return found
end

local function holder(name)
  local found = call('HGET', LOCKS, name)
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
  for _, name in ipairs(call('ZRANGEBYSCORE', HELD, '(' .. format('%.17g', mono), '+inf')) do
    local epoch, owner, acquired, remaining = holder(name)
    if epoch then
      rows[#rows + 1] = {name, epoch, owner, acquired, remaining}
    end
  end
  return pack(rows)
end

local function lane_row(name)
  local order, head = lane_of(name)
  local term, leader = holder('lane:' .. name)
  return {name, order, head, call('ZCARD', QUEUE .. name), call('ZCARD', LEASES .. name), leader or false, term or 0,
    call('ZRANGE', BLOCKED .. name, 0, 0)[1] or false}
end

-- Returns MessagePack: name, order, head, queued, running, leader, term, blocked by, of each lane.
function read.lanes()
  local rows, seen = {}, {}
  for _, name in ipairs(call('HKEYS', LANES)) do
    seen[name] = true
    rows[#rows + 1] = lane_row(name)
  end
  for _, name in ipairs(call('SMEMBERS', BUSY)) do
    if not seen[name] and call('EXISTS', QUEUE .. name, LEASES .. name) > 0 then
      rows[#rows + 1] = lane_row(name)
    end
  end
  return pack(rows)
end

return read[ARGV[2]](decode(ARGV[3]))
