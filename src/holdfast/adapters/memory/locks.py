"""Locks: held by one token at a time, numbered by an epoch that only rises."""

from __future__ import annotations

from holdfast.adapters.memory.state import Lock, State
from holdfast.model.commands import Acquire, Acquired, ForceRelease, Held, ReleaseLock, RenewLocks


def acquire(state: State, command: Acquire) -> Acquired | Held:
    until = state.clock.monotonic() + command.ttl
    holder = state.lock_holder(command.name)
    if holder is None:
        return Acquired(_take(state, command, until))
    if holder.token != command.token:
        return Held(holder.owner, holder.until - state.clock.monotonic(), holder.epoch)
    # The answer was lost and is asked for again: its owner counts the ttl from this request, and so
    # do we.
    holder.until = max(holder.until, until)
    return Acquired(holder.epoch)


def _take(state: State, command: Acquire, until: float) -> int:
    lock = state.locks.setdefault(command.name, Lock(command.name))
    lock.epoch += 1
    lock.token, lock.owner = command.token, command.owner
    lock.acquired, lock.until = state.clock.now(), until
    state.touch()
    return lock.epoch


def renew_locks(state: State, command: RenewLocks) -> list[tuple[str, str]]:
    until = state.clock.monotonic() + command.ttl
    lost: list[tuple[str, str]] = []
    for name, token in command.held:
        holder = state.lock_holder(name)
        if holder and holder.token == token:
            holder.until = max(holder.until, until)
        else:
            lost.append((name, token))
    return lost


def release_lock(state: State, command: ReleaseLock) -> bool:
    holder = state.lock_holder(command.name)
    if holder is None or holder.token != command.token:
        return False
    holder.token = None
    state.touch()
    return True


def force_release(state: State, command: ForceRelease) -> bool:
    holder = state.lock_holder(command.name)
    if holder is None:
        return False
    holder.epoch += 1
    holder.token = None
    state.note(command.actor, "lock.force_release", command.name, command.reason)
    return True
