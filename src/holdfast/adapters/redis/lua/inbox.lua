-- The inbox: plain submits that come alone are put down here, without a script, and taken in by the next script that runs.
--
-- It is a stream, which also notes when each of them came: <prefix>holdfast:inbox, entries m = a Submit as in ARGV[5…],
-- and for a test t = wall time. They are accepted as if they had come then: before everything that came later.
--
-- Idle workers wait at it, and whoever does is given an entry in the very commit that puts it down: they are the consumers
-- of its group `idle`, each named after the worker, a space and the length of its lease. Who is given an entry has claimed
-- its run, under an epoch made of the entry's id, which nobody else can have. Taking it in writes that down.
--
-- There is none until a Submit has come by a script, nor while the store takes part in a move: whoever finds none comes
-- by a script, too, and is told why if need be.

local INBOX = H .. 'inbox'
local accept, is_open = on.Submit, false
local begin_given -- claiming.lua

-- Entries that were given to somebody, by their id: the consumer and the milliseconds since then.
local function given_out()
  local found, given, ids = redis.pcall('XPENDING', INBOX, 'idle', '-', '+', 1000), {}, {}
  for i, entry in ipairs(found) do -- none, if nobody has ever waited
    given[entry[1]], ids[i] = {entry[2], entry[3]}, entry[1]
  end
  if ids[1] then
    call('XACK', INBOX, 'idle', unpack(ids))
  end
  return given
end

-- Accept what an entry says, and begin with it if it was given to somebody.
local function accept_entry(id, to, _, run, ...)
  if accept(run, ...) == true and to then
    begin_given(pending[run], id, to[1], to[2])
  end
end

function take_in()
  if call('XLEN', INBOX) == 0 then
    return
  end
  local present, was_loud, given = now, loud, given_out()
  for _, entry in ipairs(call('XRANGE', INBOX, '-', '+')) do
    now = tonumber(entry[2][4]) or tonumber(string.match(entry[1], '^%d+')) / 1000
    accept_entry(entry[1], given[entry[1]], decode(entry[2][2]))
  end
  call('XTRIM', INBOX, 'MAXLEN', 0)
  now, loud = present, was_loud -- those who listen were told when it came
end

local function open_inbox()
  if call('EXISTS', INBOX) == 0 then
    call('XADD', INBOX, '*', 'm', '')
    call('XTRIM', INBOX, 'MAXLEN', 0)
  end
  is_open = true
end

on.Submit = function(...)
  if not is_open then
    open_inbox()
  end
  return accept(...)
end
