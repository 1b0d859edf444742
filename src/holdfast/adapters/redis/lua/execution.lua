-- Writing under the fence of an attempt, up to its end.
-- Commands with a fence answer true, or false when it refused them; then nothing was written.

local LOG_LIMIT = 10000
local end_attempt -- how an attempt ends that did not succeed: failing.lua

-- As much of a run as its fence tells, if the holder of this epoch may still write to it, and fields of it, its fence first.
local function held(id, epoch, ...)
  flush(id)
  local found = call('HMGET', RUN .. id, 'f', ...)
  if not found[1] then
    return nil
  end
  local seq, state, current, lasts, last, started, finished, bad = unpack_fence(FENCE, found[1])
  if state ~= RUNNING or current ~= epoch or lasts <= mono then
    return nil
  end
  return {
    id = id, seq = seq, state = state, epoch = epoch, lasts = lasts, last = last, started = started,
    finished = finished, bad = bad,
    written = {nil, nil, nil, nil, nil, nil, nil, nil, nil, nil},
  }, found
end

-- Answers the pairs of run and epoch that are lost.
on.Renew = function(c)
  local lost, lasts = {}, mono + c.ttl
  write_freed()
  for _, pair in ipairs(c.held) do
    local run = held(pair[1], pair[2])
    if not run then
      lost[#lost + 1] = pair
    elseif lasts > run.lasts then
      run.lasts = lasts
      put_fence(run)
      write(run)
      call('PEXPIRE', PREFIX .. 'pipeline_lock:' .. run.id, math.max(1, math.floor(c.ttl * 1000)))
    end
  end
  return lost
end

-- A step's checkpoint is about to go or to be replaced: let the event that refers to its record keep it.
local function keep_record(run, step, before)
  local record = select(5, decode(before))
  for number = run.last, 1, -1 do
    local kind, at, data, place, of = decode(call('HGET', RUN .. run.id, 'e' .. number))
    if of == step and not data then
      call('HSET', RUN .. run.id, 'e' .. number, pack(kind, at, record, place, step))
      return
    end
  end
end

-- Put a checkpoint, which comes as it is stored, and the event of a step that this epoch has not saved before.
local function checkpoint(run, before, step, key, packed, skipped)
  local is_step = key == ''
  if is_step and before then
    keep_record(run, step, before)
  end
  put(run, 'c' .. step .. '\0' .. key, packed)
  if is_step and not (before and select(6, decode(before)) == run.epoch) then
    event(run, skipped and 'step.skipped' or 'step.completed', nil, step)
  end
end

-- Nothing but the checkpoint is written, and the fence is asked once for all items of a run that come together.
local function save_item(id, epoch, ...)
  local run = items[id]
  if not run or run.epoch ~= epoch then
    run = held(id, epoch)
    if not run then
      return false
    end
    items[id] = run
  end
  checkpoint(run, nil, ...)
  return true
end

-- `packed` is a checkpoint as it is stored: see prelude.lua.
on.SaveCheckpoint = function(id, epoch, step, key, packed, skipped)
  if key ~= '' then
    return save_item(id, epoch, step, key, packed)
  end
  local run, found = held(id, epoch, 'c' .. step .. '\0')
  if not run then
    return false
  end
  checkpoint(run, found[2], step, key, packed, skipped)
  put_fence(run)
  write(run)
  return true
end

on.SaveProgress = function(id, epoch, progress)
  if not held(id, epoch) then
    return false
  end
  call('HSET', RUN .. id, 'p', progress)
  to_show[id] = WANTED or nil
  return true
end

on.LogLine = function(id, epoch, level, step, message, fields)
  if not held(id, epoch) then
    return false
  end
  local log = H .. 'log:' .. id
  if call('LLEN', log) < LOG_LIMIT then
    call('RPUSH', log, pack(now, level, step, message, fields))
  end
  return true
end

-- What every attempt leaves behind: its lease, its progress and its last checkpoint, if there is one. `before` are the fence,
-- progress, error, that checkpoint and what never changes, as they are stored.
local function leave_off(run, before, progress, step, key, packed, skipped)
  run.progress, run.lasts = progress, 0
  if before[2] or before[3] then
    call('HDEL', RUN .. run.id, 'p', 'e')
  end
  if progress ~= '{}' then
    put(run, 'p', progress)
  end
  if step then
    checkpoint(run, before[4], step, key, packed, skipped)
  end
  set_free(run)
end

-- The commonest ending touches no more of a run than its fence. `document` is how the worker begins the state document, if
-- he knows all steps: see document.lua. He does if there are as many events, beside those of the beginning, as he has `known`.
local function succeed(run, before, result, progress, step, key, packed, skipped, known, document, tokens, cost)
  local events, _ = run.last, nil
  _, run.tenant, run.pipeline, run.lane = cmsgpack.unpack_limit(before[5], 3)
  leave_off(run, before, progress, step, key, packed, skipped)
  local all_known = known == run.last - 2
  if result then
    put(run, 'o', result)
  end
  run.state, run.finished = SUCCEEDED, now
  ended[#ended + 1] = run.id
  event(run, 'run.completed')
  tally(run, RUNNING, SUCCEEDED)
  if all_known then
    write_document(run, document, tokens, cost)
  else
    _, _, _, _, run.key, _, _, _, run.created, run.inherited = decode(before[5])
    show_now(run, events, key == '' and step, packed, skipped)
  end
  put_fence(run)
  write(run)
end

local function give_back(run, before, outcome, failure, reason, delay, progress, deferred, step, key, packed, skipped)
  local events = run.last
  leave_off(run, before, progress, step, key, packed, skipped)
  end_attempt(run, outcome, failure, reason, delay, deferred)
  tally(run, RUNNING, run.state)
  show_now(run, events, key == '' and step, packed, skipped)
  save(run)
end

-- A result that is the value of the last checkpoint comes as = and its step. `step`, `key`, `packed`, `skipped` are the
-- last checkpoint, if there is one; the rest is for the document of a run that succeeds.
on.Settle = function(id, epoch, outcome, result, failure, reason, delay, progress, deferred, step, key, packed, skipped,
    ...)
  local run, found = held(id, epoch, 'p', 'e', step and 'c' .. step .. '\0' .. key or '-', 's')
  if not run then
    return false
  end
  if outcome == 'succeeded' then
    succeed(run, found, result, progress, step, key, packed, skipped, ...)
  else
    local rest = call('HGET', RUN .. id, 'r')
    give_back(as_run(id, found[5], found[1], rest), found, outcome, failure, reason, delay, progress, deferred, step,
      key, packed, skipped)
  end
  loud = true
  return true
end
