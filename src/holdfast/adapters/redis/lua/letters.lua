-- Dead letters: m = source, reason, attributes (JSON), tenant, created, run, closed, resolution; b = original bytes.

local function list_letter(kind, id, tenant, created)
  call('ZADD', H .. 'letters:' .. kind, created, id)
  call('ZADD', H .. 'letters:' .. kind .. ':' .. tenant, created, id)
end

local function unlist_letter(kind, id, tenant)
  call('ZREM', H .. 'letters:' .. kind, id)
  call('ZREM', H .. 'letters:' .. kind .. ':' .. tenant, id)
end

local function note(actor, action, target, reason)
  call('LPUSH', H .. 'audit', pack(now, actor, action, target, reason))
end

-- Close a letter. Its tenant and run, or nothing when there is none or it was closed before.
local function close_letter(id, resolution)
  local found = call('HGET', H .. 'letter:' .. id, 'm')
  if not found then
    return nil
  end
  local source, reason, attributes, tenant, created, run, closed = decode(found)
  if closed then
    return nil
  end
  call('HSET', H .. 'letter:' .. id, 'm', pack(source, reason, attributes, tenant, created, run, now, resolution))
  unlist_letter('open', id, tenant)
  return tenant, run
end

local function forget_letter(id, tenant)
  unlist_letter('open', id, tenant)
  unlist_letter('all', id, tenant)
  call('DEL', H .. 'letter:' .. id)
end

-- Keep a failed run as a dead letter: once, however often it is resumed and fails again.
local function bury_run(run, failure)
  local id = 'run:' .. run.id
  local found = failure and cjson.decode(failure) or {name = 'Unknown', message = ''}
  local attributes = '{"pipeline":' .. cjson.encode(run.pipeline) .. ',"attempts":"' .. run.attempts .. '"}'
  local created = now
  local before = call('HGET', H .. 'letter:' .. id, 'm')
  if before then
    created = select(5, decode(before))
  else
    call('HSET', H .. 'letter:' .. id, 'b', call('HGET', RUN .. run.id, 'i'))
    list_letter('all', id, run.tenant, created)
  end
  call('HSET', H .. 'letter:' .. id, 'm',
    pack('run', found.name .. ': ' .. found.message, attributes, run.tenant, created, run.id, nil, nil))
  list_letter('open', id, run.tenant, created)
end

-- `attributes` are JSON. Answers whether it is new.
on.Bury = function(id, source, reason, attributes, tenant)
  local body = argument()
  if call('HSETNX', H .. 'letter:' .. id, 'm', pack(source, reason, attributes, tenant, now, nil, nil, nil)) == 0 then
    return false
  end
  call('HSET', H .. 'letter:' .. id, 'b', body)
  list_letter('all', id, tenant, now)
  list_letter('open', id, tenant, now)
  return true
end

on.MarkRedriven = function(c)
  if not close_letter(c.id, 'redriven') then
    return false
  end
  note(c.actor, 'dlq.redrive', c.id, '')
  return true
end

on.Discard = function(c)
  local tenant, id = close_letter(c.id, 'discarded')
  if not tenant then
    return false
  end
  local run = id and find(id)
  if run and run.holds then
    run.holds = nil
    call('ZREM', H .. 'blocked:' .. run.lane, id)
    save(run)
  end
  note(c.actor, 'dlq.discard', c.id, c.reason)
  loud = true
  return true
end
