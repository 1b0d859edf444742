"""A batch of commands as the arguments of a script, and its one answer as the answers of the
commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from holdfast.adapters.redis.notebook import Notebook, owner
from holdfast.adapters.redis.wire import Argument
from holdfast.model import commands as c
from holdfast.model.commands import STALE, Command, Reply
from holdfast.model.event import Event


class Arguments(list[Argument]):
    """What a script is given, and what the last of its plain successes has in common with those
    that follow."""

    plain: tuple[Any, ...] = ()


Write = Callable[[Any, Notebook, Arguments], None]

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder().decode
_json = msgspec.json.Encoder().encode

_ACQUIRE, _RELEASE, _BURY = map(_pack, ("Acquire", "ReleaseLock", "Bury"))
_SAVE, _SETTLE, _PROGRESS = map(_pack, ("SaveCheckpoint", "Settle", "SaveProgress"))
_SUCCEED, _LIKEWISE = map(_pack, ("Succeed", "Likewise"))
_NO_CHECKPOINT = (None, None, None)


def encode(commands: Sequence[Command], notebook: Notebook) -> list[Argument]:
    """Each is its name and then its fields, one after another: an array without its first byte; or
    a map of them. What the script only hands on follows in arguments of its own."""
    arguments = Arguments()
    for command in commands:
        WRITE[type(command)](command, notebook, arguments)
    return arguments


def decode(commands: Sequence[Command], answer: bytes, notebook: Notebook) -> list[Reply]:
    answers, claims = _unpack(answer)
    replies: list[Reply] = []
    for command, said in zip(commands, answers, strict=True):
        kind = type(command)
        if kind is c.Claim:
            number, at = said
            replies.append([_claimed(row, at, notebook) for row in claims[number - 1]])
        else:
            replies.append(READ[kind](command, said))
            if kind is c.Renew:
                notebook.forget(replies[-1])
    return replies


def _claimed(row: list[Any], at: float, notebook: Notebook) -> c.Claimed:
    """A row as `claiming.lua` makes it."""
    fixed, run, input, progress, limit, again, epoch, attempt = row
    tenant, pipeline, lane, _, key, _, _, _, created, inherited = fixed
    resumed = again or inherited is True
    if not resumed:
        notebook.begin(run, epoch, owner(tenant, pipeline, lane), key, tenant, created, at)
    return c.Claimed(run, tenant, pipeline, lane, epoch, attempt, limit, input, progress, resumed)


def _writer(kind: type) -> Write:
    name = _pack(kind.__name__)
    start = 1 if kind.__struct_config__.array_like else 0  # type: ignore[attr-defined]
    return lambda command, _, arguments: arguments.append(name + _pack(command)[start:])


def _save(command: c.SaveCheckpoint, notebook: Notebook, arguments: Arguments) -> None:
    notebook.note(command)
    arguments.append(
        _SAVE + _pack((command.run, command.epoch, command.step, command.key, command.skipped))[1:]
    )
    arguments.append(_stored(command))


def _progress(command: c.SaveProgress, notebook: Notebook, arguments: Arguments) -> None:
    notebook.show(command)
    arguments.append(_PROGRESS + _pack(command)[1:])


def _settle(command: c.Settle, notebook: Notebook, arguments: Arguments) -> None:
    last, told = command.last, notebook.close(command)
    if told and told.is_plain and last and not last.key and command.result is not None:
        arguments.append(
            _succeed(
                command,
                (told.owner, _result(command), last.step, last.skipped, told.steps),
                arguments,
            )
        )
    else:
        outcome = (
            command.outcome,
            _result(command),
            command.error,
            command.reason,
            command.delay,
            command.progress,
        )
        step = (last.step, last.key, last.skipped) if last else _NO_CHECKPOINT
        known = told.steps if told else None
        arguments.append(
            _SETTLE
            + _pack((command.run, command.epoch, *outcome, command.deferred, *step, known))[1:]
        )
    if last:
        arguments.append(_stored(last))
    if told:
        arguments.append(told.document)


def _succeed(command: c.Settle, common: tuple[Any, ...], arguments: Arguments) -> bytes:
    """What most runs of a batch have in common is said once."""
    if common == arguments.plain:
        return _LIKEWISE + _pack((command.run, command.epoch))[1:]
    arguments.plain = common
    return _SUCCEED + _pack((*common, command.run, command.epoch))[1:]


def _result(command: c.Settle) -> str | None:
    """What is the value of the last checkpoint need not be stored twice."""
    last = command.last
    return (
        f"={last.step}"
        if last and not last.key and last.value == command.result
        else command.result
    )


def _stored(command: c.SaveCheckpoint) -> bytes:
    """A checkpoint as the script stores it, without looking into it."""
    fields = (
        command.value,
        command.checksum,
        command.schema,
        command.fingerprint,
        command.record,
        command.epoch,
    )
    return _pack(fields)[1:]


def _acquire(command: c.Acquire, _: Notebook, arguments: Arguments) -> None:
    arguments.append(
        _ACQUIRE + _pack((command.name, command.token, command.owner, command.ttl))[1:]
    )


def _release(command: c.ReleaseLock, _: Notebook, arguments: Arguments) -> None:
    arguments.append(_RELEASE + _pack((command.name, command.token))[1:])


def _letter(command: c.Bury, _: Notebook, arguments: Arguments) -> None:
    attributes = _json(command.attributes).decode()
    arguments.append(
        _BURY + _pack((command.id, command.source, command.reason, attributes, command.tenant))[1:]
    )
    arguments.append(command.body)  # it need not be text


# --- what the script says, as the port says it ---


def _fenced(command: Any, said: bool) -> Any:
    return None if said else STALE


def _as_said(command: Any, said: Any) -> Any:
    return said


def _nothing(command: Any, said: Any) -> None:
    return None


def _submitted(command: c.Submit, said: Any) -> c.Submitted:
    return c.Submitted(command.id, True, "queued") if said is True else c.Submitted(*said)


def _quarantined(command: c.Quarantine, said: Any) -> Any:
    return STALE if said is False else said


def _refused(command: Any, said: Any) -> c.Refused | None:
    return None if said is True else c.Refused(said[0] or None, said[1] or None)


def _acquired(command: c.Acquire, said: Any) -> c.Acquired | c.Held:
    return c.Acquired(said) if isinstance(said, int) else c.Held(said[0], float(said[1]), said[2])


def _pairs(command: Any, said: Any) -> list[tuple[Any, Any]]:
    return [(one, other) for one, other in said]


def _events(command: c.ReadOutbox, said: Any) -> list[Event]:
    return msgspec.convert([_named(row) for row in said], list[Event])


def _named(row: list[Any]) -> dict[str, Any]:
    return dict(zip(Event.__struct_fields__, row, strict=True))


READ: dict[type, Callable[[Any, Any], Reply]] = {
    c.Submit: _submitted,
    c.Renew: _pairs,
    c.SaveCheckpoint: _fenced,
    c.Quarantine: _quarantined,
    c.SaveProgress: _fenced,
    c.LogLine: _fenced,
    c.Settle: _fenced,
    c.Cancel: _refused,
    c.PauseRun: _refused,
    c.Resume: _refused,
    c.Sweep: _pairs,
    c.Prune: _pairs,
    c.DefineLane: _as_said,
    c.Acquire: _acquired,
    c.RenewLocks: _pairs,
    c.ReleaseLock: _as_said,
    c.ForceRelease: _as_said,
    c.Bury: _as_said,
    c.MarkRedriven: _as_said,
    c.Discard: _as_said,
    c.ReadOutbox: _events,
    c.ConfirmOutbox: _nothing,
}

WRITE: dict[type, Write] = {kind: _writer(kind) for kind in (c.Claim, *READ)} | {
    c.SaveCheckpoint: _save,
    c.SaveProgress: _progress,
    c.Settle: _settle,
    c.Acquire: _acquire,
    c.ReleaseLock: _release,
    c.Bury: _letter,
}
