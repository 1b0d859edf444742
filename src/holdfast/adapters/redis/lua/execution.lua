-- Writing under the fence of an attempt, up to its end.
-- Commands with a fence answer true, or false when it refused them; then nothing was written.

local LOG_LIMIT = 10000
local end_attempt -- how an attempt ends that did not succeed: failing.lua

-- Fields of a run, its fence first, if the holder of this epoch may still write to it.
local function held(id, epoch, ...)
  flush(id)
  local found = call('HMGET', RUN .. id, 'f', ...)
  if not found[1] then
    return nil
  end
  local _, state, current, lasts = unpack_fence(FENCE, found[1])
  return state == RUNNING and current == epoch and lasts > mono and found or nil
end

-- Answers the pairs of run and epoch that are lost.
on.Renew = function(c)
  local lost, lasts = {}, mono + c.ttl
  write_freed()
  for _, pair in ipairs(c.held) do
    local found = held(pair[1], pair[2])
    local run = found and fenced_run(pair[1], found[1])
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
    local found = held(id, epoch)
    if not found then
      return false
    end
    run = fenced_run(id, found[1])
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
  local found = held(id, epoch, 'c' .. step .. '\0')
  if not found then
    return false
  end
  local run = fenced_run(id, found[1])
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

-- The commonest ending touches no more of a run than its fence.
local function succeed(run, result)
  if result then
    put(run, 'o', result)
  end
  run.state, run.finished = SUCCEEDED, now
  ended[#ended + 1] = run.id
  event(run, 'run.completed')
end

-- A result that is the value of the last checkpoint comes as = and its step. `step`, `key`, `packed`, `skipped` are the
-- last checkpoint, if there is one. The rest is what the document says of the steps, if the worker knows, and of how many:
-- see document.lua. He knows all of them if there are as many events, beside those of the beginning.
on.Settle = function(id, epoch, outcome, result, failure, reason, delay, progress, deferred, step, key, packed, skipped,
    known, ...)
  local found = held(id, epoch, 's', 'r', 'p', 'e', step and 'c' .. step .. '\0' .. key or '-')
  if not found then
    return false
  end
  local run = as_run(id, found[2], found[1], found[3])
  run.progress, run.lasts = progress, 0
  if found[4] or found[5] then
    call('HDEL', RUN .. id, 'p', 'e')
  end
  if progress ~= '{}' then
    put(run, 'p', progress)
  end
  local events = run.last
  if step then
    checkpoint(run, found[6], step, key, packed, skipped)
  end
  local all_known = known == run.last - 2
  set_free(run)
  if outcome == 'succeeded' then
    succeed(run, result)
  else
    end_attempt(run, outcome, failure, reason, delay, deferred)
  end
  tally(run, RUNNING, run.state)
  if all_known then
    write_document(run, ...)
  else
    show_now(run, events, key == '' and step, packed, skipped)
  end
  if run.state == SUCCEEDED then
    put_fence(run)
    write(run)
  else
    save(run)
  end
  loud = true
  return true
end
