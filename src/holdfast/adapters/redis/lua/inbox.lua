-- The inbox: plain submits that come alone are put down here, without a script, and taken in by the next script that runs.
--
-- It is a stream, which also notes when each of them came: <prefix>holdfast:inbox, entries m = a Submit as in ARGV[5…],
-- and for a test t = wall time. They are accepted as if they had come then: before everything that came later.
--
-- There is none until a Submit has come by a script, nor while the store takes part in a move: whoever finds none comes
-- by a script, too, and is told why if need be.

local INBOX = H .. 'inbox'
local accept, is_open = on.Submit, false

function take_in()
  if call('XLEN', INBOX) == 0 then
    return
  end
  local present, was_loud = now, loud
  for _, entry in ipairs(call('XRANGE', INBOX, '-', '+')) do
    now = tonumber(entry[2][4]) or tonumber(string.match(entry[1], '^%d+')) / 1000
    accept(select(2, decode(entry[2][2])))
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
