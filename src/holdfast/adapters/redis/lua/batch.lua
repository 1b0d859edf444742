-- Applies a batch of commands, in the order given, in one transaction.
--
-- KEYS[1]  <prefix>holdfast:meta
-- ARGV[1]  the prefix
-- ARGV[2]  MessagePack: name of a command, the command, name, command, … Those that are sent often are arrays, the
--          others maps; their fields are those of ports/commands.py
-- ARGV[3]  who sends it: told to those who listen at <prefix>holdfast:bell when there may be something to do
-- ARGV[4]  1 when state documents are wanted
-- ARGV[5…] bodies of dead letters: bytes that are not text
--
-- Returns MessagePack: one answer for each command, described where the command is. A command that fails (never by
-- being refused, which is an answer) ends the batch with its error; what was applied before it stays. A store that takes
-- part in a move (mover.lua) applies nothing: the error HELD says why.

if meta[7] then
  return redis.error_reply('HELD ' .. meta[7])
end

local commands = decode(ARGV[2])
local answers = {}
local broken

for i = 1, #commands, 2 do
  local ok, answer = pcall(on[commands[i]], commands[i + 1])
  if not ok then
    broken = type(answer) == 'table' and answer.err or answer
    break
  end
  answers[#answers + 1] = answer
end

finish()
if broken then
  return redis.error_reply(broken)
end
return pack(answers)
