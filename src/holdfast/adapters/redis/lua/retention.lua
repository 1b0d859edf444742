-- Deleting finished runs with all that belongs to them, a bounded number at a time.

local SCANNED = 200 -- entries of `ended` that one command looks at

local function last_position(run)
  local last = call('HMGET', RUN .. run.id, 'e' .. run.last, 'e' .. run.last - 1)
  return last[1] and select(4, decode(last[1])) or select(4, decode(last[2])) + 1
end

-- Whether a relay has yet to send its events, or a lane waits for it: others must not overtake it.
local function still_needed(run, confirmed)
  return run.holds or (confirmed > 0 and confirmed < last_position(run))
end

-- The next entry of `ended` behind a place, if it is old enough: the time and the runs that ended then.
local function next_ended(from, keep)
  local entry = call('XRANGE', H .. 'ended', from, '+', 'COUNT', 1)[1]
  local ids = entry and decode(entry[2][2])
  if ids and ids[1] <= now - keep then
    return entry[1], ids
  end
  return nil
end

-- Runs that failed long enough ago, and those that ended otherwise with the entries of the stream that name them.
local function expired(c)
  local found, entries = {}, {}
  for _, id in ipairs(call('ZRANGEBYSCORE', H .. 'failed', '-inf', now - c.keep_failed, 'LIMIT', 0, 2 * c.limit)) do
    found[#found + 1] = find(id)
  end
  local place, ids = next_ended('-', c.keep)
  while place and #found < 2 * c.limit and #entries < SCANNED do
    entries[#entries + 1] = {place, ids}
    for i = 2, #ids do
      local run = find(ids[i])
      if run and run.finished == ids[1] then -- not one that was given the same id later
        found[#found + 1] = run
      end
    end
    place, ids = next_ended('(' .. place, c.keep)
  end
  return found, entries
end

local function forget_values(run)
  for _, entry in ipairs(call('LRANGE', H .. 'quarantine:' .. run.id, 0, -1)) do
    call('DEL', PREFIX .. 'pipeline_validation_failure:' .. run.id .. ':' .. (decode(entry)))
  end
  call('UNLINK', RUN .. run.id, H .. 'log:' .. run.id, H .. 'quarantine:' .. run.id,
    PREFIX .. 'pipeline_state:' .. run.id)
end

local function forget(run)
  tally(run, run.state, nil)
  if run.state ~= SUCCEEDED then
    call('ZREM', H .. 'state:' .. NAMES[run.state], run.id)
    call('ZREM', H .. 'failed', run.id)
  end
  if run.key then
    call('HDEL', H .. 'keys', run.tenant .. '\0' .. run.key)
  end
  local slot = run.tenant .. '\0' .. run.pipeline
  if run.unique and call('HGET', H .. 'slots', slot) == run.id then
    call('HDEL', H .. 'slots', slot)
  end
  forget_letter('run:' .. run.id, run.tenant)
  forget_values(run)
end

-- Delete an entry of a stream when none of the runs that it names is left.
local function drop_entry(key, entry, ids, from, step)
  for i = from, #ids, step do
    if call('EXISTS', RUN .. ids[i]) == 1 then
      return
    end
  end
  call('XDEL', key, entry)
end

-- The streams name runs in groups: an entry goes with the last of its runs.
local function tidy(gone, entries)
  for _, each in ipairs(entries) do
    drop_entry(H .. 'ended', each[1], each[2], 2, 1)
  end
  local seen = {}
  for _, run in ipairs(gone) do
    for key, shape in pairs({[H .. 'runs'] = {1, 1}, [H .. 'tenant:' .. run.tenant] = {2, 2}}) do
      local entry = call('XRANGE', key, format('%d-0', run.seq), '+', 'COUNT', 1)[1]
      if entry and not seen[key .. entry[1]] then
        seen[key .. entry[1]] = true
        drop_entry(key, entry[1], decode(entry[2][2]), shape[1], shape[2])
      end
    end
  end
end

-- What the outbox says of runs that are gone is of no use: it begins with the oldest run that is left.
local function trim_outbox()
  local entry = call('XRANGE', H .. 'runs', '-', '+', 'COUNT', 1)[1]
  for _, id in ipairs(entry and decode(entry[2][2]) or {}) do
    local first = call('HGET', RUN .. id, 'e1')
    if first then
      call('XTRIM', H .. 'outbox', 'MINID', format('%d-0', (select(4, decode(first)))))
      return
    end
  end
end

local function by_end(a, b)
  if a.finished ~= b.finished then
    return a.finished < b.finished
  end
  return a.seq < b.seq
end

-- Answers run, tenant of each.
on.Prune = function(c)
  c.limit = math.min(c.limit, AT_ONCE)
  local confirmed = tonumber(call('HGET', KEYS[1], 'confirmed') or 0)
  writes.ended()
  documents.write_all()
  local found, entries = expired(c)
  local gone, answer = {}, {}
  table.sort(found, by_end)
  for _, run in ipairs(found) do
    if #gone >= c.limit then
      break
    end
    if not still_needed(run, confirmed) then
      forget(run)
      gone[#gone + 1] = run
      answer[#answer + 1] = {run.id, run.tenant}
    end
  end
  tidy(gone, entries)
  trim_outbox()
  return answer
end
