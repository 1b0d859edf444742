-- What people, the sweeper and retention do to runs and lanes, against a worker's will if need be.
-- Interventions answer true, or state (false: no such run) and the run that stands in the way (false: none).

local function refused(run, other)
  return {run and NAMES[run.state] or false, other or false}
end

local function said(c)
  return cjson.encode({actor = c.actor, reason = c.reason or ''})
end

local function given(reason)
  return reason ~= '' and reason or nil
end

on.Cancel = function(c)
  local run = load(c.run)
  if not run or run.state > PAUSED then
    return refused(run)
  end
  run.epoch = raised(run.epoch)
  change(run, CANCELLED, 'run.cancelled', said(c), given(c.reason))
  note(c.actor, 'run.cancel', c.run, c.reason)
  save(run)
  return true
end

on.PauseRun = function(c)
  local run = load(c.run)
  if not run or run.state > RUNNING then
    return refused(run)
  end
  run.epoch = raised(run.epoch)
  if run.state == RUNNING then
    run.attempts = run.attempts - 1
  end
  change(run, PAUSED, 'run.paused', said(c), given(c.reason))
  note(c.actor, 'run.pause', c.run, c.reason)
  save(run)
  return true
end

on.Resume = function(c)
  local run = load(c.run)
  if not run or (run.state ~= PAUSED and run.state ~= FAILED) then
    return refused(run)
  end
  if run.unique then
    local live = slot_holder(run)
    if live then
      return refused(run, live.id)
    end
    call('HSET', SLOTS, run.tenant .. '\0' .. run.pipeline, run.id)
  end
  if run.holds then
    run.holds = nil
    call('ZREM', BLOCKED .. run.lane, run.id)
  end
  set_error(run, nil)
  run.limit = run.attempts + c.attempts
  change(run, QUEUED, 'run.resumed', said(c))
  close_letter('run:' .. run.id, 'redriven')
  note(c.actor, 'run.resume', c.run, '')
  save(run)
  return true
end

-- --- the sweeper ---

local function by_lease(a, b)
  if a.lasts ~= b.lasts then
    return a.lasts < b.lasts
  end
  return a.seq < b.seq
end

local function ended_leases(limit)
  local found = {}
  for _, lane in ipairs(call('SMEMBERS', BUSY)) do
    for _, id in ipairs(call('ZRANGEBYSCORE', LEASES .. lane, '-inf', mono, 'LIMIT', 0, limit)) do
      found[#found + 1] = load(id)
    end
  end
  table.sort(found, by_lease)
  return found
end

local function give_up_on_worker(run)
  if run.attempts < run.limit then
    change(run, QUEUED, 'run.worker_lost', format('{"attempt":%d}', run.attempts))
  else
    fail(run, format('{"name":"WorkerLost","message":"the worker vanished %d times while it had this run; '
      .. 'look at what kills it, then resume the run"}', run.attempts))
  end
  save(run)
end

on.Sweep = function(c)
  local swept = {}
  for i, run in ipairs(ended_leases(c.limit)) do
    if i > c.limit then
      break
    end
    give_up_on_worker(run)
    swept[i] = {run.id, NAMES[run.state]}
  end
  return swept
end

-- --- retention ---

-- Whether a relay has yet to send its events, or a lane waits for it: others must not overtake it.
local function still_needed(run, positions)
  return run.holds or (confirmed > 0 and confirmed < positions[#positions])
end

local function forget_validation_failures(run)
  for _, entry in ipairs(call('LRANGE', BAD .. run.id, 0, -1)) do
    call('DEL', PREFIX .. 'pipeline_validation_failure:' .. run.id .. ':' .. (decode(entry)))
  end
end

local function forget(run, positions)
  local place = format('%d-0', run.seq)
  call('XDEL', RUNS, place)
  call('XDEL', TENANT .. run.tenant, place)
  for i, each in ipairs(positions) do
    positions[i] = format('%d-0', each)
  end
  in_pieces('XDEL', EVENTS, positions)
  if run.state ~= SUCCEEDED then
    call('ZREM', STATE .. NAMES[run.state], run.id)
  end
  call('ZREM', FINISHED .. (run.state == FAILED and 'failed' or 'over'), run.id)
  if run.key then
    call('HDEL', KEYS_TAKEN, run.tenant .. '\0' .. run.key)
  end
  local slot = run.tenant .. '\0' .. run.pipeline
  if run.unique and call('HGET', SLOTS, slot) == run.id then
    call('HDEL', SLOTS, slot)
  end
  forget_letter('run:' .. run.id, run.tenant)
  if run.bad > 0 then
    forget_validation_failures(run)
  end
  call('UNLINK', RUN .. run.id, LOG .. run.id, BAD .. run.id, PREFIX .. 'pipeline_state:' .. run.id)
  tally(run, run.state, -1)
end

local function by_end(a, b)
  if a.finished ~= b.finished then
    return a.finished < b.finished
  end
  return a.seq < b.seq
end

local function expired(keep, keep_failed, limit)
  local found = {}
  for kind, seconds in pairs({over = keep, failed = keep_failed}) do
    for _, id in ipairs(call('ZRANGEBYSCORE', FINISHED .. kind, '-inf', now - seconds, 'LIMIT', 0, 2 * limit)) do
      found[#found + 1] = load(id)
    end
  end
  table.sort(found, by_end)
  return found
end

on.Prune = function(c)
  local pruned = {}
  for _, run in ipairs(expired(c.keep, c.keep_failed, c.limit)) do
    if #pruned >= c.limit then
      break
    end
    local positions = positions_of(run.positions)
    if not still_needed(run, positions) then
      forget(run, positions)
      pruned[#pruned + 1] = {run.id, run.tenant}
    end
  end
  return pruned
end

-- --- lanes ---

on.DefineLane = function(c)
  local known = call('HGET', LANES, c.name)
  local order = known and decode(known) or c.order
  call('HSET', LANES, c.name, pack(order, c.head))
  return order
end
