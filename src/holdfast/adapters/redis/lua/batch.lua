-- Applies a batch of commands, in the order given, in one transaction.
--
-- KEYS[1]  <prefix>holdfast:meta
-- ARGV[1]  the prefix
-- ARGV[2]  who sends it: told to those who listen at <prefix>holdfast:bell when there may be something to do, with the
--          word `news` behind it if runs have succeeded and that is all
-- ARGV[3]  1 when state documents are wanted
-- ARGV[4]  the number of commands
-- ARGV[5…] the commands: MessagePack, the name of a command and then its fields, those of model/commands.py: one after
--          another for commands that are sent often, one map of them for the others. What is only handed on (a packed
--          checkpoint, a document, a body) follows in arguments of its own. The commonest Settle comes as Succeed, and
--          as Likewise when most of it is as in the one before
--
-- Returns MessagePack, two arrays: one answer for each command, described where the command is, and what the Claims among
-- them were given. A command that fails (never by being refused, which is an answer) ends the batch with its error; what was
-- applied before it stays. A store that takes part in a move (holding.lua) applies nothing: the error HELD says why.

if meta[7] then
  return redis.error_reply('HELD ' .. meta[7])
end

local answers = {}

local function apply(name, ...)
  return on[name](...)
end

local function apply_all()
  take_in()
  for i = 1, tonumber(ARGV[4]) do
    answers[i] = apply(decode(argument()))
  end
end

local ok, failure = pcall(apply_all)
finish()
if not ok then
  return redis.error_reply(type(failure) == 'table' and failure.err or failure)
end
return told(answers)
