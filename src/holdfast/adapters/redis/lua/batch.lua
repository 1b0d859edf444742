-- Applies a batch of native commands, in the order given, in one transaction.
--
-- KEYS[1]  <prefix>holdfast:meta
-- ARGV[1]  the prefix
-- ARGV[2]  what is said to those who listen at <prefix>holdfast:notify, or nothing
-- ARGV[3]  1 if also a store that takes part in a move is to be changed
-- ARGV[4…] the commands: MessagePack, the name of a command and then its fields one after another
--
-- Returns MessagePack: an array with one answer for each command, described where the command is. A
-- command that fails by itself (never by being refused, which is an answer) is answered with
-- {failed = its error}, and the others are applied. One that fails because of the server ends the
-- batch with that error; what was applied before it stays. A store that takes part in a move
-- applies nothing: the error HELD says why.

local MODULES = {
  Submit = 'submit', Claim = 'claim', Renew = 'attempts', SaveCheckpoint = 'attempts',
  SaveProgress = 'attempts', LogLine = 'attempts', Settle = 'attempts', Acquire = 'locks',
  RenewLocks = 'locks', ReleaseLock = 'locks', Decide = 'decisions', Adopt = 'decisions',
}

local keys, meta, writes = require('keys'), require('meta'), require('writes')

if meta.held and ARGV[3] ~= '1' then
  return redis.error_reply('HELD ' .. meta.held)
end

local answers = {}

local function apply(name, ...)
  return require(MODULES[name])[name](...)
end

-- Errors of the server: commands that come later would fail as well.
local SERVER = {'OOM ', 'READONLY', 'MISCONF', 'NOREPLICAS', 'CLUSTERDOWN', 'LOADING'}

local function is_of_server(message)
  for _, word in ipairs(SERVER) do
    if message:find(word, 1, true) then
      return true
    end
  end
  return false
end

local function apply_all()
  for i = 4, #ARGV - require('clock').arguments do
    local ok, answer = pcall(apply, cmsgpack.unpack(ARGV[i]))
    if not ok then
      local message = tostring(type(answer) == 'table' and answer.err or answer)
      if is_of_server(message) then
        error(message, 0)
      end
      answer = {failed = message}
    end
    answers[i - 3] = answer
  end
end

local ok, failure = pcall(apply_all)
writes.flush()
meta.keep()
if not ok then
  return redis.error_reply(type(failure) == 'table' and failure.err or failure)
end
if ARGV[2] ~= '' then
  redis.call('PUBLISH', keys.H .. 'notify', ARGV[2])
end
return cmsgpack.pack(answers)
