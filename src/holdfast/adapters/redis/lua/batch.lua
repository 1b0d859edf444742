-- Applies a batch of native commands, in the order given, in one transaction.
--
-- KEYS[1]  <prefix>holdfast:meta
-- ARGV[1]  the prefix
-- ARGV[2]  1 if also a store that takes part in a move is to be changed
-- ARGV[3…] the commands: MessagePack, a module, its function and its arguments one after another
--
-- Returns MessagePack: an array with one answer for each command, described where the command is. A
-- command that fails (never by being refused, which is an answer) is answered with
-- {failed = its error}, and the others are applied. A store that takes part in a move applies
-- nothing: the error HELD says why.

local meta, writes = require('meta'), require('writes')

if meta.held and ARGV[2] ~= '1' then
  return redis.error_reply('HELD ' .. meta.held)
end

local function apply(module, name, ...)
  return require(module)[name](...)
end

local answers = {}
for i = 3, #ARGV - require('clock').arguments do
  local ok, answer = pcall(apply, cmsgpack.unpack(ARGV[i]))
  if not ok then
    answer = {failed = type(answer) == 'table' and answer.err or answer}
  end
  answers[i - 2] = answer
end
writes.flush()
meta.save()
return cmsgpack.pack(answers)
