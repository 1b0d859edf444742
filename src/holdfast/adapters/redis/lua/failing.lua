-- How an attempt ends that did not succeed. Who calls these counts the run anew and saves it.

-- Back to the queue, at once or after a delay.
local function requeue(run, kind, data, delay)
  run.state, run.reason = QUEUED, nil
  if delay and delay > 0 then
    run.available, run.due = now + delay, later + delay
  else
    run.available = nil
  end
  line_up(run)
  event(run, kind, data)
end

local function pause(run, data, reason)
  run.state, run.reason, run.available = PAUSED, reason, nil
  call('ZADD', H .. 'state:paused', run.seq, run.id)
  event(run, 'run.paused', data)
end

-- The run ends as failed: one terminal event, and one dead letter unless its lane just goes on.
local function fail(run, failure)
  run.failure = failure
  run.state, run.finished, run.reason, run.available = FAILED, now, nil, nil
  call('ZADD', H .. 'state:failed', run.seq, run.id)
  call('ZADD', H .. 'failed', now, run.id)
  if failure then
    put(run, 'e', failure)
  end
  event(run, 'run.failed', '{"error":' .. (failure or 'null') .. '}')
  local order, head = order_of(run.lane)
  if order == 'fifo' and head == 'block' then
    run.holds = true
    call('ZADD', H .. 'blocked:' .. run.lane, run.seq, run.id)
  end
  if order ~= 'fifo' or head ~= 'skip' then
    bury_run(run, failure)
  end
end

local function retry(run, failure, delay)
  requeue(run, 'run.retrying', format('{"delay":%.17g,"error":%s}', delay, failure or 'null'), delay)
end

-- After a hand-over, a pause or a deferred retry the attempt does not count.
function end_attempt(run, outcome, failure, reason, delay, deferred)
  if outcome == 'failed' or (outcome == 'retry' and not deferred and run.attempts >= run.limit) then
    return fail(run, failure)
  end
  if outcome ~= 'retry' or deferred then
    run.attempts = run.attempts - 1
  end
  if failure then
    run.failure = failure
    put(run, 'e', failure)
  end
  if outcome == 'retry' then
    return retry(run, failure, delay)
  end
  if outcome == 'paused' then
    return pause(run, '{"reason":' .. cjson.encode(reason or cjson.null) .. '}', reason)
  end
  requeue(run, 'run.handed_over')
end

-- Answers how many checkpoints of the step are in quarantine, or false. A repeated
-- command finds nothing left to take out and only learns the number again.
on.Quarantine = function(c)
  local held_run, found = held(c.run, c.epoch, 's', 'r', 'c' .. c.step .. '\0' .. c.key, 'p')
  if not held_run then
    return false
  end
  if found[4] then
    local run = as_run(c.run, found[2], found[1], found[3])
    run.progress = found[5]
    if c.key == '' then
      keep_record(run, c.step, found[4])
    end
    call('HDEL', RUN .. c.run, 'c' .. c.step .. '\0' .. c.key)
    call('RPUSH', H .. 'quarantine:' .. c.run, pack(c.step, c.key, c.reason, (decode(found[4])), now))
    call('INCR', PREFIX .. 'pipeline_validation_failure:' .. c.run .. ':' .. c.step)
    run.bad = run.bad + 1
    event(run, 'checkpoint.quarantined', cjson.encode({step = c.step, key = c.key, reason = c.reason}))
    documents.show(run)
    save(run)
  end
  local count = 0
  for _, entry in ipairs(call('LRANGE', H .. 'quarantine:' .. c.run, 0, -1)) do
    if decode(entry) == c.step then
      count = count + 1
    end
  end
  return count
end
