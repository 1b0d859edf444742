-- Writes that the commands of a batch have in common: collected, and made in few calls.

local call = redis.call
local added, removed, by_name, sums = {}, {}, {}, {}

local function collect(list, command, key, first, second)
  local name = command .. key
  local arguments = by_name[name]
  if not arguments then
    arguments = {command, key}
    by_name[name] = arguments
    list[#list + 1] = arguments
  end
  local count = #arguments
  arguments[count + 1], arguments[count + 2] = first, second
end

local writes = {}

-- Put a member into a sorted set.
function writes.add(key, score, member)
  collect(added, 'ZADD', key, score, member)
end

-- Take a member out of a sorted set. Within a batch a member is put in before it is taken out.
function writes.remove(key, member)
  collect(removed, 'ZREM', key, member)
end

-- Add to a number in a hash. A field that comes to nothing goes.
function writes.sum(key, field, by)
  local fields = sums[key]
  if not fields then
    fields = {}
    sums[key] = fields
  end
  fields[field] = (fields[field] or 0) + by
end

local function make(list)
  for _, arguments in ipairs(list) do
    call(unpack(arguments))
  end
end

-- Make all writes: at the end, or before somebody looks.
function writes.flush()
  make(added)
  make(removed)
  for key, fields in pairs(sums) do
    for field, by in pairs(fields) do
      if by ~= 0 and call('HINCRBY', key, field, by) == 0 then
        call('HDEL', key, field)
      end
    end
  end
  added, removed, by_name, sums = {}, {}, {}, {}
end

return writes
