-- Accepting runs: once per id, once per key, once per unique slot.

-- The run that stands in the way of a new one, and whether that is a conflict.
local function in_the_way(tenant, pipeline, fingerprint, key, unique)
  local id = key and call('HGET', H .. 'keys', tenant .. '\0' .. key)
  if id then
    local run = find(id)
    return run, run.fingerprint ~= fingerprint
  end
  id = unique and call('HGET', H .. 'slots', tenant .. '\0' .. pipeline)
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

-- Answers true for a new run, or run, created, state, conflict.
on.Submit = function(id, tenant, pipeline, lane, input, fingerprint, key, unique, priority, delay, limit, parent,
  checkpoints)
  if pending[id] or call('EXISTS', RUN .. id) == 1 then
    return {id, true, NAMES[find(id).state], false}
  end
  if key or unique then
    local other, conflict = in_the_way(tenant, pipeline, fingerprint, key, unique)
    if other then
      return {other.id, false, NAMES[other.state], conflict}
    end
  end
  local inherited = #checkpoints > 0 or nil
  local s = pack(tenant, pipeline, lane, fingerprint, key, unique or nil, priority, parent, now, inherited)
  local run = {
    id = id, s = s, tenant = tenant, pipeline = pipeline, lane = lane, key = key, unique = unique or nil, priority = priority,
    created = now, inherited = inherited, input = input, seq = seq + 1, state = QUEUED, epoch = 0, lasts = 0, last = 0,
    started = 0, finished = 0, bad = 0, attempts = 0, limit = limit,
    written = {'i', input, 's', s},
  }
  index(run)
  line_up_behind(run, delay)
  tally(run, nil, QUEUED)
  event(run, 'run.queued')
  for _, k in ipairs(checkpoints) do -- taken over from the run that this one reruns
    put(run, 'c' .. k.step .. '\0' .. k.key,
      pack(k.value, k.checksum, k.schema, k.fingerprint, k.record or '{}', 0))
  end
  pending[id] = run
  loud = true
  return true
end
