-- Writing under the fence of an attempt, up to its end.
-- Commands with a fence answer true, or false when it refused them; then nothing was written.

local LOG_LIMIT = 10000
local end_attempt -- how an attempt ends that did not succeed: failing.lua

-- A run if the holder of this epoch may still write to it, as far as its fence tells, and further fields of it.
local function held(id, epoch, ...)
  if pending[id] then
    save(pending[id])
  end
  local found = call('HMGET', RUN .. id, 'f', ...)
  local run = found[1] and fenced_run(id, found[1])
  if run and run.state == RUNNING and run.epoch == epoch and run.lasts > mono then
    return run, found
  end
  return nil
end

-- A step's checkpoint is about to go or to be replaced: let the event that refers to its record keep it.
local function keep_record(run, step, before)
  local record = select(5, decode(before))
  for number = run.last, 1, -1 do
    local kind, at, data, place, of = decode(call('HGET', RUN .. run.id, 'e' .. number))
    if of == step and not data then
      call('HSET', RUN .. run.id, 'e' .. number, pack(kind, at, record, place))
      return
    end
  end
end

-- Put a checkpoint, and the event of a step that this epoch has not saved before.
local function checkpoint(run, c, before)
  local is_step = c[4] == ''
  if is_step and before then
    keep_record(run, c[3], before)
  end
  put(run, 'c' .. c[3] .. '\0' .. c[4], pack(c[5], c[6], c[7], c[8], c[9], c[2]))
  if is_step and not (before and select(6, decode(before)) == c[2]) then
    event(run, c[10] and 'step.skipped' or 'step.completed', nil, c[3])
  end
end

-- run, epoch, step, key, value, checksum, schema, fingerprint, record, skipped
on.SaveCheckpoint = function(c)
  local is_step = c[4] == ''
  local run, found = held(c[1], c[2], is_step and 'c' .. c[3] .. '\0' or '-')
  if not run then
    return false
  end
  checkpoint(run, c, found[2])
  if is_step then
    show(run, c, found[2])
    put_fence(run)
  end
  write(run)
  return true
end

-- run, epoch, progress
on.SaveProgress = function(c)
  local run = held(c[1], c[2])
  if not run then
    return false
  end
  run.progress = c[3]
  put(run, 'p', c[3])
  show(run)
  put_fence(run)
  write(run)
  return true
end

-- run, epoch, level, step, message, fields
on.LogLine = function(c)
  if not held(c[1], c[2]) then
    return false
  end
  local log = H .. 'log:' .. c[1]
  if call('LLEN', log) < LOG_LIMIT then
    call('RPUSH', log, pack(now, c[3], c[4], c[5], c[6]))
  end
  return true
end

-- The commonest ending touches no more of a run than its fence. A result that is the value of the last checkpoint is
-- not stored twice.
local function succeed(run, result, last)
  if last and last[4] == '' and last[5] == result then
    put(run, 'o', '=' .. last[3])
  elseif result then
    put(run, 'o', result)
  end
  run.state, run.finished = SUCCEEDED, now
  ended[#ended + 1] = run.id
  event(run, 'run.completed')
end

-- run, epoch, outcome, result, error, reason, delay, progress, last, deferred
on.Settle = function(c)
  local last, success = c[9], c[3] == 'succeeded'
  local run, found = held(c[1], c[2], 's', 'r', 'p', 'e', last and 'c' .. last[3] .. '\0' .. last[4] or '-')
  if not run then
    return false
  end
  read_spec(run, found[2])
  run.progress, run.lasts = c[8], 0
  if found[4] or found[5] then
    call('HDEL', RUN .. run.id, 'p', 'e')
  end
  if c[8] ~= '{}' then
    put(run, 'p', c[8])
  end
  if last then
    checkpoint(run, last, found[6])
  end
  set_free(run)
  tally(run, RUNNING, -1)
  if success then
    succeed(run, c[4], last)
  else
    read_rest(run, found[3])
    end_attempt(run, c)
  end
  tally(run, run.state, 1)
  show(run, last and last[4] == '' and last or nil, found[6])
  if success then
    put_fence(run)
    write(run)
  else
    save(run)
  end
  loud = true
  return true
end
