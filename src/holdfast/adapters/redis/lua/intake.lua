-- Accepting runs: once per id, once per key, once per unique slot.

-- The run that stands in the way of a new one, and whether that is a conflict.
local function in_the_way(c)
  local tenant, key = c[2], c[7]
  local id = key and call('HGET', H .. 'keys', tenant .. '\0' .. key)
  if id then
    local run = find(id)
    return run, run.fingerprint ~= c[6]
  end
  id = c[8] and call('HGET', H .. 'slots', tenant .. '\0' .. c[3])
  local run = id and find(id)
  if run and run.state <= PAUSED then
    return run, false
  end
  return nil
end

-- Note where it is to be found.
local function index(run)
  seq = run.seq
  accepted[#accepted + 1] = run.id
  local runs = within(tenants, run.tenant)
  runs[#runs + 1] = run.seq
  runs[#runs + 1] = run.id
  if run.key then
    call('HSET', H .. 'keys', run.tenant .. '\0' .. run.key, run.id)
  end
  if run.unique then
    call('HSET', H .. 'slots', run.tenant .. '\0' .. run.pipeline, run.id)
  end
end

-- Into line, behind all others: written later, if nobody claims it before.
local function line_up_behind(run, delay)
  if delay > 0 then
    run.available, run.due = now + delay, later + delay
    line_up(run)
  else
    local queue = queue_of(run)
    queue[#queue + 1] = run
  end
end

-- id, tenant, pipeline, lane, input, fingerprint, key, unique, priority, delay, max_attempts, parent, checkpoints
-- Answers true for a new run, or run, created, state, conflict.
on.Submit = function(c)
  local id, checkpoints = c[1], c[13]
  if pending[id] or call('EXISTS', RUN .. id) == 1 then
    return {id, true, NAMES[find(id).state], false}
  end
  if c[7] or c[8] then
    local other, conflict = in_the_way(c)
    if other then
      return {other.id, false, NAMES[other.state], conflict}
    end
  end
  local inherited = #checkpoints > 0 or nil
  local run = {
    id = id, tenant = c[2], pipeline = c[3], lane = c[4], key = c[7], unique = c[8] or nil, priority = c[9],
    created = now, inherited = inherited, input = c[5], seq = seq + 1, state = QUEUED, epoch = 0, lasts = 0, last = 0,
    started = 0, finished = 0, bad = 0, steps = 0, results = 0, a = 0, room = 0, begun = 0, b = 0, size = 0, tokens = 0,
    cost = 0, attempts = 0, limit = c[11],
    written = {'i', c[5], 's', pack(c[2], c[3], c[4], c[6], c[7], c[8] or nil, c[9], c[12], now, inherited)},
  }
  index(run)
  line_up_behind(run, c[10])
  tally(run, QUEUED, 1)
  event(run, 'run.queued')
  for _, k in ipairs(checkpoints) do -- taken over from the run that this one reruns
    put(run, 'c' .. k.step .. '\0' .. k.key,
      pack(k.value, k.checksum, k.schema, k.fingerprint, k.record or '{}', 0))
  end
  pending[id] = run
  loud = true
  return true
end
