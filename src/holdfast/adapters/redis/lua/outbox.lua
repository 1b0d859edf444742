-- The outbox: what a relay has yet to send, in the order of commit.

-- Which runs these numbers of acceptance belong to: asked for once each.
local function finder()
  local ids = {}
  return function(number)
    if ids[number] == nil then
      local entry = call('XRANGE', H .. 'runs', format('%d-0', number), '+', 'COUNT', 1)[1]
      local group = entry and decode(entry[2][2]) or {}
      local last = entry and tonumber(string.match(entry[1], '^%d+')) or 0
      ids[number] = group[#group - (last - number)] or false
    end
    return ids[number]
  end
end

local function event_row(id, run_number, number, known)
  local found = call('HMGET', RUN .. id, 's', 'e' .. number, 'f')
  if not found[1] or unpack_fence(FENCE, found[3]) ~= run_number then
    return nil -- it is gone, only its group is left
  end
  local tenant, pipeline = decode(found[1])
  local kind, at, data, place = event_of(id, found[2], found[3], known)
  return {id, number, kind, at, data, tenant, pipeline, place}
end

-- Answers rows of run, seq, type, at, data, tenant, pipeline, position.
on.ReadOutbox = function(c)
  local confirmed = tonumber(call('HGET', KEYS[1], 'confirmed') or 0)
  local rows, id_of = {}, finder()
  local function take(pairs_of, last)
    for i = 1, #pairs_of, 2 do
      local place = last - (#pairs_of - i - 1) / 2
      local id = place > confirmed and #rows < c.limit and id_of(pairs_of[i])
      rows[#rows + 1] = id and event_row(id, pairs_of[i], pairs_of[i + 1], place) or nil
    end
  end
  writes.outbox()
  writes.accepted()
  local from = format('%d-0', confirmed + 1)
  while #rows < c.limit do
    local entries = call('XRANGE', H .. 'outbox', from, '+', 'COUNT', 10)
    for _, entry in ipairs(entries) do
      take(decode(entry[2][2]), tonumber(string.match(entry[1], '^%d+')))
      from = '(' .. entry[1]
    end
    if #entries < 10 then
      break
    end
  end
  return rows
end

on.ConfirmOutbox = function(c)
  local confirmed = math.max(c.position, tonumber(call('HGET', KEYS[1], 'confirmed') or 0))
  call('HSET', KEYS[1], 'confirmed', confirmed)
  call('XTRIM', H .. 'outbox', 'MINID', format('%d-0', confirmed + 1))
  return true
end
