-- What people, the sweeper and retention do to runs and lanes, against a worker's will if need be.
-- Interventions answer true, or state (false: no such run) and the run that stands in the way (false: none).

local function refused(run, other)
  return {run and NAMES[run.state] or false, other or false}
end

local function said(c)
  return cjson.encode({actor = c.actor, reason = c.reason or ''})
end

-- Take a run out of wherever its state has put it.
local function leave(run)
  local state = run.state
  tally(run, state, nil)
  if state == QUEUED and run.available then
    call('ZREM', H .. 'delayed:' .. run.lane, run.id)
    call('ZREM', H .. 'waiting:' .. run.lane, run.id)
  elseif state == QUEUED then
    call('ZREM', H .. 'ready:' .. run.lane .. '\0' .. run.priority .. '\0' .. run.pipeline, run.id)
  elseif state == RUNNING then
    set_free(run.id, run.lane, true)
    run.lasts = 0
  else
    call('ZREM', H .. 'state:' .. NAMES[state], run.id)
    call('ZREM', H .. 'failed', run.id)
  end
end

local function arrived(run)
  local found = call('HMGET', RUN .. run.id, 'p', 'e')
  run.progress, run.failure = found[1], run.failure or found[2] or nil
  tally(run, nil, run.state)
  documents.show(run)
  save(run)
  loud = true
  return true
end

on.Cancel = function(c)
  local run = find(c.run)
  if not run or run.state > PAUSED then
    return refused(run)
  end
  leave(run)
  run.epoch, run.state, run.finished, run.available = raised(run.epoch), CANCELLED, now, nil
  run.reason = c.reason ~= '' and c.reason or nil
  call('ZADD', H .. 'state:cancelled', run.seq, run.id)
  ended[#ended + 1] = run.id
  event(run, 'run.cancelled', said(c))
  note(c.actor, 'run.cancel', c.run, c.reason)
  return arrived(run)
end

on.PauseRun = function(c)
  local run = find(c.run)
  if not run or run.state > RUNNING then
    return refused(run)
  end
  leave(run)
  run.epoch = raised(run.epoch)
  run.attempts = run.attempts - (run.state == RUNNING and 1 or 0)
  pause(run, said(c), c.reason ~= '' and c.reason or nil)
  note(c.actor, 'run.pause', c.run, c.reason)
  return arrived(run)
end

-- Take the unique slot of a run's pipeline, unless another live run has it: its id.
local function retake_slot(run)
  local slot = run.tenant .. '\0' .. run.pipeline
  local id = call('HGET', H .. 'slots', slot)
  local other = id and id ~= run.id and find(id)
  if other and other.state <= PAUSED then
    return id
  end
  call('HSET', H .. 'slots', slot, run.id)
  return nil
end

on.Resume = function(c)
  local run = find(c.run)
  if not run or (run.state ~= PAUSED and run.state ~= FAILED) then
    return refused(run)
  end
  local other = run.unique and retake_slot(run)
  if other then
    return refused(run, other)
  end
  leave(run)
  if run.holds then
    run.holds = nil
    call('ZREM', H .. 'blocked:' .. run.lane, run.id)
  end
  call('HDEL', RUN .. run.id, 'e')
  call('PERSIST', PREFIX .. 'pipeline_state:' .. run.id)
  run.limit, run.finished = run.attempts + c.attempts, 0
  requeue(run, 'run.resumed', said(c))
  close_letter('run:' .. run.id, 'redriven')
  note(c.actor, 'run.resume', c.run, '')
  return arrived(run)
end

-- --- the sweeper ---

local function by_lease(a, b)
  if a.lasts ~= b.lasts then
    return a.lasts < b.lasts
  end
  return a.seq < b.seq
end

-- The runs of a lane whose lease has ended: id, seq, lasts. The lane is looked at when one can have, and not again
-- before the next can.
local function ended_in(lane, found)
  local first = call('HGET', H .. 'leases', lane)
  if mono < tonumber(first) then
    return
  end
  local known, next_end = #found, nil
  for _, id in ipairs(call('SMEMBERS', H .. 'leases:' .. lane)) do
    local number, _, _, lasts = unpack_fence(FENCE, call('HGET', RUN .. id, 'f'))
    if lasts <= mono then
      found[#found + 1] = {id = id, seq = number, lasts = lasts}
    end
    next_end = math.min(next_end or lasts, lasts)
  end
  if not next_end then
    call('HDEL', H .. 'leases', lane)
  elseif #found == known then
    call('HSET', H .. 'leases', lane, next_end)
  end
end

local function ended_leases()
  local found = {}
  writes.freed()
  for _, lane in ipairs(call('HKEYS', H .. 'leases')) do
    ended_in(lane, found)
  end
  table.sort(found, by_lease)
  return found
end

-- Take some locks off the list of those that are held which are not any more, and more of them where many are.
local function forget_ended_locks()
  for _ = 1, 10 do
    local gone = {}
    for _, name in ipairs(call('SRANDMEMBER', H .. 'locks:held', 100)) do
      local lasts = select(5, lock_of(name))
      if not lasts or lasts <= mono then
        gone[#gone + 1] = name
      end
    end
    if gone[1] then
      call('SREM', H .. 'locks:held', unpack(gone))
    end
    if #gone < 50 then
      return
    end
  end
end

-- Answers run, new state of each.
on.Sweep = function(c)
  local swept = {}
  forget_ended_locks()
  documents.hide(20)
  for i, each in ipairs(ended_leases()) do
    if i > math.min(c.limit, AT_ONCE) then
      break
    end
    local run = find(each.id)
    leave(run)
    if run.attempts < run.limit then
      requeue(run, 'run.worker_lost', '{"attempt":' .. run.attempts .. '}')
    else
      call('HDEL', RUN .. run.id, 'e')
      fail(run, '{"name":"WorkerLost","message":"the worker vanished ' .. run.attempts
        .. ' times while it had this run; look at what kills it, then resume the run"}')
    end
    swept[i] = {run.id, NAMES[run.state]}
    arrived(run)
  end
  return swept
end

-- --- locks and lanes ---

on.ForceRelease = function(c)
  local epoch, token, _, _, lasts = lock_of(c.name)
  if not token or lasts <= mono then
    return false
  end
  write_lock(c.name, raised(epoch))
  note(c.actor, 'lock.force_release', c.name, c.reason)
  loud = true
  return true
end

on.DefineLane = function(c)
  local known = call('HGET', H .. 'lanes', c.name)
  local order = known and decode(known) or c.order
  call('HSET', H .. 'lanes', c.name, pack(order, c.head))
  return order
end

-- --- what is collected is written before anybody looks ---

local function after_writing(act)
  return function(...)
    writes.runs()
    write_locks()
    return act(...)
  end
end

for name, act in pairs(on) do
  on[name] = after_writing(act)
end
