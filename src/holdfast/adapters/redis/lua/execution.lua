-- Writing under the fence of an attempt, up to its end.
-- Commands with a fence answer true, or false when it refused them; then nothing was written.

local LOG_LIMIT = 10000
local end_attempt -- how an attempt ends that did not succeed: failing.lua

-- What a fence tells if the holder of this epoch may still write to its run: seq, lasts, last, started, bad. A run that is
-- held has not finished.
local function let_through(fence, epoch)
  if not fence then
    return nil
  end
  local seq, state, current, lasts, last, started, _, bad = unpack_fence(FENCE, fence)
  if state ~= RUNNING or current ~= epoch or lasts <= mono then
    return nil
  end
  return seq, lasts, last, started, bad
end

-- As much of a run as its fence tells, if the holder of this epoch may still write to it.
local function as_held(id, epoch, fence)
  local seq, lasts, last, started, bad = let_through(fence, epoch)
  return seq and {
    id = id, seq = seq, state = RUNNING, epoch = epoch, lasts = lasts, last = last, started = started,
    finished = 0, bad = bad,
    written = {nil, nil, nil, nil, nil, nil, nil, nil, nil, nil},
  } or nil
end

-- The same, and fields of it, its fence first.
local function held(id, epoch, ...)
  flush(id)
  local found = call('HMGET', RUN .. id, 'f', ...)
  return as_held(id, epoch, found[1]), found
end

-- Answers the pairs of run and epoch that are lost.
on.Renew = function(c)
  local lost, lasts = {}, mono + c.ttl
  writes.freed()
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

-- Put the checkpoint of a step that has one already.
local function replace(run, before, step, packed, skipped)
  checkpoint(run, before, step, '', packed, skipped)
  put_fence(run)
  write(run)
  return true
end

-- Then comes the checkpoint, packed as it is stored: see prelude.lua. Most steps have had none before.
on.SaveCheckpoint = function(id, epoch, step, key, skipped)
  local packed = argument()
  if key ~= '' then
    return save_item(id, epoch, step, key, packed)
  end
  flush(id)
  local name, field = RUN .. id, 'c' .. step .. '\0'
  local found = call('HMGET', name, 'f', field)
  local seq, lasts, last, started, bad = let_through(found[1], epoch)
  if not seq then
    return false
  end
  if found[2] then
    return replace(as_held(id, epoch, found[1]), found[2], step, packed, skipped)
  end
  local number, event = event_of_run(seq, last + 1, skipped and 'step.skipped' or 'step.completed', nil, step)
  call('HSET', name, field, packed, number, event, 'f',
    pack_fence(FENCE, seq, RUNNING, epoch, lasts, last + 1, started, 0, bad))
  return true
end

-- From now on people see who has the run, until `lasts`.
local function show_lock(run, rest)
  local worker = select(5, decode(rest))
  call('SET', PREFIX .. 'pipeline_lock:' .. run.id, format('%s#%d', worker, run.epoch), 'PX',
    format('%d', math.max(1, (run.lasts - mono) * 1000)))
end

on.SaveProgress = function(id, epoch, progress)
  local run, found = held(id, epoch, 'r')
  if not run then
    return false
  end
  show_lock(run, found[2])
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
  set_free(run.id, run.lane, before[2])
end

-- `document` is the state document as the worker has made it, if he knows all steps. He does if there are as many events,
-- beside those of the beginning, as he has `known`.
local function succeed(run, before, result, progress, step, key, packed, skipped, known, document)
  local events, _ = run.last, nil
  run.tenant, run.pipeline, run.lane, _, run.key, _, _, _, run.created, run.inherited = decode(before[5])
  leave_off(run, before, progress, step, key, packed, skipped)
  local all_known = known == run.last - 2
  if result then
    put(run, 'o', result)
  end
  run.state, run.finished = SUCCEEDED, now
  ended[#ended + 1] = run.id
  event(run, 'run.completed')
  tally(run, RUNNING, SUCCEEDED)
  if all_known and run.bad == 0 then
    documents.write(run.id, document)
  else
    documents.show_now(run, events, key == '' and step, packed, skipped)
  end
  put_fence(run)
  write(run)
end

-- What the commonest endings of a batch have in common, as the last of them that said so has it.
local plain

-- The commonest ending: a first attempt of which the worker knows all steps, the last one comes with it, and nothing was to be
-- shown before. So there is no progress and no error yet, nor a checkpoint of that step. As with claims, no table is made, and
-- that the run was completed is told by its fence: see prelude.lua. Whether it was one.
local function succeed_plainly(id, epoch, packed, document)
  local name = RUN .. id
  local seq, _, last, started, bad = let_through(call('HGET', name, 'f'), epoch)
  if not seq or plain.known ~= last - 1 or bad > 0 then
    return false
  end
  local field, event = event_of_run(seq, last + 1, plain.kind, nil, plain.step)
  announce(seq, last + 2)
  call('HSET', name, plain.field, packed, 'o', plain.result, field, event, 'f',
    pack_fence(FENCE, seq, SUCCEEDED, epoch, 0, last + 2, started, now, 0))
  set_free(id, plain.lane)
  ended[#ended + 1] = id
  tally_of(plain.tenant, plain.pipeline, plain.lane, RUNNING, SUCCEEDED)
  documents.write(id, document)
  loud = loud or 'news'
  return true
end

local function give_back(run, before, outcome, failure, reason, delay, progress, deferred, step, key, packed, skipped)
  local events = run.last
  leave_off(run, before, progress, step, key, packed, skipped)
  end_attempt(run, outcome, failure, reason, delay, deferred)
  tally(run, RUNNING, run.state)
  documents.show_now(run, events, key == '' and step, packed, skipped)
  save(run)
end

local function settle(id, epoch, outcome, result, failure, reason, delay, progress, deferred, step, key, skipped, known,
  packed, document)
  local run, found = held(id, epoch, 'p', 'e', step and 'c' .. step .. '\0' .. key or '-', 's')
  if not run then
    return false
  end
  if outcome == 'succeeded' then
    succeed(run, found, result, progress, step, key, packed, skipped, known, document)
    loud = loud or 'news'
  else
    local rest = call('HGET', RUN .. id, 'r')
    give_back(as_run(id, found[5], found[1], rest), found, outcome, failure, reason, delay, progress, deferred, step,
      key, packed, skipped)
    loud = true
  end
  return true
end

-- A result that is the value of the last checkpoint comes as = and its step. `step`, `key`, `skipped` are the last checkpoint,
-- if there is one; `known` is how many steps the worker knows of a run that succeeds. Then come that checkpoint, packed, and
-- the document.
on.Settle = function(id, epoch, outcome, result, failure, reason, delay, progress, deferred, step, key, skipped, known)
  local packed, document = step and argument(), known and argument()
  return settle(id, epoch, outcome, result, failure, reason, delay, progress, deferred, step, key, skipped, known, packed,
    document)
end

-- A Settle as `succeed_plainly` has it, from a worker who has shown nothing of the run yet, and with nothing but its own in
-- it: the rest is as in the last `Succeed` of the batch.
on.Likewise = function(id, epoch)
  local packed, document = argument(), argument()
  flush(id)
  return succeed_plainly(id, epoch, packed, document)
    or settle(id, epoch, 'succeeded', plain.result, nil, nil, 0, '{}', false, plain.step, '', plain.skipped, plain.known,
      packed, document)
end

-- The same, complete. `owner` is the tenant, pipeline and lane.
on.Succeed = function(owner, result, step, skipped, known, ...)
  local tenant, pipeline, lane = string.match(owner, '^(%Z*)%z(%Z*)%z(%Z*)$')
  plain = {
    tenant = tenant, pipeline = pipeline, lane = lane, result = result, step = step, skipped = skipped, known = known,
    kind = skipped and 'step.skipped' or 'step.completed', field = 'c' .. step .. '\0',
  }
  return on.Likewise(...)
end
