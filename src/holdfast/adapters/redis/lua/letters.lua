-- Dead letters: one hash each, m = source, reason, attributes (JSON), tenant, created, run, closed, resolution;
-- b = the original bytes. Indexes by creation: all, open ones, and both per tenant.

local function index_letter(id, tenant, created)
  call('ZADD', LETTERS .. 'all', created, id)
  call('ZADD', LETTERS .. 'all:' .. tenant, created, id)
end

local function open_letter(id, tenant, created)
  call('ZADD', LETTERS .. 'open', created, id)
  call('ZADD', LETTERS .. 'open:' .. tenant, created, id)
end

local function unlist_letter(id, tenant)
  call('ZREM', LETTERS .. 'open', id)
  call('ZREM', LETTERS .. 'open:' .. tenant, id)
end

-- Close a letter. Its tenant and run, or nothing when there is none or it was closed before.
local function close_letter(id, resolution)
  local found = call('HGET', LETTER .. id, 'm')
  if not found then
    return nil
  end
  local source, reason, attributes, tenant, created, run, closed = decode(found)
  if closed then
    return nil
  end
  call('HSET', LETTER .. id, 'm', pack(source, reason, attributes, tenant, created, run, now, resolution))
  unlist_letter(id, tenant)
  return tenant, run
end

local function forget_letter(id, tenant)
  unlist_letter(id, tenant)
  call('ZREM', LETTERS .. 'all', id)
  call('ZREM', LETTERS .. 'all:' .. tenant, id)
  call('DEL', LETTER .. id)
end

-- Keep a failed run as a dead letter: once, however often it is resumed and fails again.
local function bury_run(run, failure)
  local id = 'run:' .. run.id
  local name, message = 'Unknown', ''
  if failure then
    local found = cjson.decode(failure)
    name, message = found.name, found.message
  end
  local attributes = format('{"pipeline":%s,"attempts":"%d"}', cjson.encode(run.pipeline), run.attempts)
  local created = now
  local before = call('HGET', LETTER .. id, 'm')
  if before then
    local _, _, _, _, at = decode(before)
    created = at
  else
    call('HSET', LETTER .. id, 'b', call('HGET', RUN .. run.id, 'i'))
    index_letter(id, run.tenant, created)
  end
  call('HSET', LETTER .. id, 'm',
    pack('run', name .. ': ' .. message, attributes, run.tenant, created, run.id, nil, nil))
  open_letter(id, run.tenant, created)
end

-- id, source, reason, which of the bodies in ARGV, attributes (JSON), tenant. Answers whether it is new.
on.Bury = function(c)
  local id, source, reason, body, attributes, tenant = c[1], c[2], c[3], ARGV[3 + c[4]], c[5], c[6]
  if call('HSETNX', LETTER .. id, 'm', pack(source, reason, attributes, tenant, now, nil, nil, nil)) == 0 then
    return false
  end
  call('HSET', LETTER .. id, 'b', body)
  index_letter(id, tenant, now)
  open_letter(id, tenant, now)
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
  local run = id and load(id)
  if run and run.holds then
    run.holds = nil
    call('ZREM', BLOCKED .. run.lane, run.id)
    save(run)
  end
  note(c.actor, 'dlq.discard', c.id, c.reason)
  loud = true
  return true
end
