"""Locks: held by one token at a time, numbered by an epoch that only rises."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.model.commands import Acquire, ForceRelease, ReleaseLock, RenewLocks
from holdfast.model.machine.changes import AddAudit, Change, Decision, PutLock
from holdfast.model.machine.facts import Facts, LockFacts, Now
from holdfast.model.replies import Acquired, Held


def acquire(command: Acquire, facts: Facts, now: Now) -> Decision:
    lock = facts.lock(command.name) or LockFacts(command.name)
    until = now.mono + command.ttl
    if not lock.is_held(now):
        taken = LockFacts(
            command.name,
            lock.epoch + 1,
            command.token,
            command.owner,
            now.wall,
            until,
            command.ttl,
        )
        return Decision(Acquired(taken.epoch), [PutLock(taken)])
    assert lock.lease_until is not None
    if lock.token != command.token:
        return Decision(Held(lock.owner, lock.lease_until - now.mono, lock.epoch))
    # The answer was lost and is asked for again: its owner counts the ttl from this request.
    return Decision(Acquired(lock.epoch), [_extended(lock, command.ttl, now)])


def _extended(lock: LockFacts, ttl: float, now: Now) -> PutLock:
    until = max(lock.lease_until or 0.0, now.mono + ttl)
    return PutLock(replace(lock, lease_until=until, lease_ttl=max(lock.lease_ttl, ttl)))


def _freed(lock: LockFacts, epoch: int) -> PutLock:
    return PutLock(LockFacts(lock.name, epoch))


def renew_locks(command: RenewLocks, facts: Facts, now: Now) -> Decision:
    lost: list[tuple[str, str]] = []
    changes: list[Change] = []
    for name, token in command.held:
        lock = facts.lock(name)
        if lock is not None and lock.is_held(now) and lock.token == token:
            changes.append(_extended(lock, command.ttl, now))
        else:
            lost.append((name, token))
    return Decision(lost, changes)


def release_lock(command: ReleaseLock, facts: Facts, now: Now) -> Decision:
    lock = facts.lock(command.name)
    if lock is None or not lock.is_held(now) or lock.token != command.token:
        return Decision(False)
    return Decision(True, [_freed(lock, lock.epoch)])


def force_release(command: ForceRelease, facts: Facts, now: Now) -> Decision:
    lock = facts.lock(command.name)
    if lock is None or not lock.is_held(now):
        return Decision(False)
    audit = AddAudit(command.actor, "lock.force_release", command.name, command.reason)
    return Decision(True, [_freed(lock, lock.epoch + 1), audit])
