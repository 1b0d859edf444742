-- Accepting runs: once per id, once per key, once per unique slot.

local function answer(run, created, conflict)
  return {run.id, created, NAMES[run.state], conflict}
end

local function same_key(tenant, key)
  local id = key and call('HGET', KEYS_TAKEN, tenant .. '\0' .. key)
  return id and load(id)
end

local function index_run(run)
  local place = format('%d-0', run.seq)
  call('XADD', RUNS, place, 'i', run.id)
  call('XADD', TENANT .. run.tenant, place, 'i', run.id)
  if not here[run.tenant] then
    here[run.tenant] = true
    call('SADD', TENANTS, run.tenant)
  end
  if run.key then
    call('HSET', KEYS_TAKEN, run.tenant .. '\0' .. run.key, run.id)
  end
  if run.unique then
    call('HSET', SLOTS, run.tenant .. '\0' .. run.pipeline, run.id)
  end
end

local function accept(run, input, delay)
  run.seq = seq + 1
  if delay > 0 then
    run.available, run.due = now + delay, later + delay
  end
  index_run(run)
  seq = run.seq
  line_up(run)
  tally(run, QUEUED, 1)
  record(run, 'run.queued')
  save(run, 'i', input, 's', pack(run.tenant, run.pipeline, run.lane, run.fingerprint, run.key, run.unique,
    run.priority, run.parent))
  loud = true
end

-- Results taken over from the run that this one reruns.
local function inherit(run, checkpoints)
  for _, k in ipairs(checkpoints) do
    call('HSET', RUN .. run.id, checkpoint_field(k.step, k.key),
      pack(k.value, k.checksum, k.schema, k.fingerprint, k.record or '{}', 0))
  end
end

-- Answers true for a new run, or run, created, state, conflict.
on.Submit = function(c)
  local id, tenant, key = c[1], c[2], c[7]
  if call('EXISTS', RUN .. id) == 1 then
    return answer(load(id), true, false)
  end
  local twin = same_key(tenant, key)
  if twin then
    return answer(twin, false, twin.fingerprint ~= c[6])
  end
  local checkpoints = c[13]
  local run = {
    id = id, tenant = tenant, pipeline = c[3], lane = c[4], fingerprint = c[6], key = key, unique = c[8] or nil,
    priority = c[9], limit = c[11], parent = c[12], state = QUEUED, epoch = 0, lasts = 0, last = 0, attempts = 0,
    created = now, positions = '', bad = 0, inherited = #checkpoints > 0 or nil,
  }
  local live = run.unique and slot_holder(run)
  if live then
    return answer(live, false, false)
  end
  accept(run, c[5], c[10])
  inherit(run, checkpoints)
  return true
end
