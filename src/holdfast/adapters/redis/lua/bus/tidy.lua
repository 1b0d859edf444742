-- Forgets what no group needs any more: messages that all groups have received and ended, and
-- members that have left.
--
-- KEYS[1]  <prefix>holdfast:topic:<topic>, the stream
-- ARGV[1]  after how many milliseconds of silence a member without messages has left
--
-- Returns how many messages were forgotten.

local stream = KEYS[1]

local function fields(flat)
  local named = {}
  for i = 1, #flat, 2 do
    named[flat[i]] = flat[i + 1]
  end
  return named
end

-- An entry id so that texts are in the order of ids.
local function sortable(id)
  return string.format('%20s-%20s', string.match(id, '^(%d+)-(%d+)$'))
end

local needed -- from here on somebody needs the messages
for _, flat in ipairs(redis.call('XINFO', 'GROUPS', stream)) do
  local group = fields(flat)
  local first = redis.call('XPENDING', stream, group.name, '-', '+', 1)[1]
  local from = first and first[1] or group['last-delivered-id']
  if not needed or sortable(from) < sortable(needed) then
    needed = from
  end
  for _, member in ipairs(redis.call('XINFO', 'CONSUMERS', stream, group.name)) do
    member = fields(member)
    if member.pending == 0 and member.idle > tonumber(ARGV[1]) then
      redis.call('XGROUP', 'DELCONSUMER', stream, group.name, member.name)
    end
  end
end
return needed and redis.call('XTRIM', stream, 'MINID', needed) or 0
