-- The outbox: the stream of all events, from the first that no relay has confirmed.

-- Answers rows of run, seq, type, at, data, tenant, pipeline, position.
on.ReadOutbox = function(c)
  local rows, whose = {}, {}
  local found = call('XRANGE', EVENTS, format('%d-0', confirmed + 1), '+', 'COUNT', max(1, c.limit))
  for i, entry in ipairs(found) do
    local id, number, kind, at, data = decode(entry[2][2])
    local run = whose[id]
    if not run then
      run = {}
      read_spec(run, call('HGET', RUN .. id, 's'))
      whose[id] = run
    end
    local place = tonumber(string.match(entry[1], '^%d+'))
    rows[i] = {id, number, kind, at, data, run.tenant, run.pipeline, place}
  end
  return rows
end

on.ConfirmOutbox = function(c)
  confirmed = max(confirmed, c.position)
  return true
end
