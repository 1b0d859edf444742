-- What every script that applies commands begins with: the numbers of the store, and what is written in the end.

local meta = call('HMGET', KEYS[1], 'wall', 'mono', 'later', 'seq', 'position', 'floor', 'held', 'hidden')
read_clock(meta[1], meta[2], meta[3])
local seq, position = tonumber(meta[4] or 0), tonumber(meta[5] or 0)
local last_seq, last_position = seq, position

-- Epochs are above all that an earlier life of the server can have given out: see adopt.lua.
local FLOOR = tonumber(meta[6] or 0)

local on = {} -- what to do for each command, by its name
local read = 4 -- arguments that are read
local loud = false -- whether there is something that others may wait for: true, or 'news' if it is no work

local function take_in() end -- what has come before the commands: inbox.lua

-- What the caller is told: two arrays, the answers and what was claimed, of which nothing is known here.
local function told(answers)
  return '\146' .. pack(answers) .. '\144'
end

local function argument()
  read = read + 1
  return ARGV[read]
end

local function raised(epoch)
  return math.max(epoch, FLOOR) + 1
end

-- Called when all commands are applied, and also after one that failed: numbers given out stay given out.
local function finish()
  if moved then
    call('HSET', KEYS[1], 'wall', now, 'mono', mono, 'later', later)
  end
  if seq ~= last_seq or position ~= last_position then
    call('HSET', KEYS[1], 'seq', seq, 'position', position)
    last_seq, last_position = seq, position
  end
  if loud then
    call('PUBLISH', H .. 'bell', loud == 'news' and ARGV[2] .. ' news' or ARGV[2])
  end
end
