"""Locks: an owner, a time, and an epoch that rises at every acquisition."""

from __future__ import annotations

from holdfast.adapters.sqlite.transaction import Transaction, write_audit
from holdfast.model.commands import Acquire, Acquired, ForceRelease, Held, ReleaseLock, RenewLocks

HELD = "token IS NOT NULL AND lease_until > :mono AND lease_until <= :mono + lease_ttl"


def acquire(tx: Transaction, command: Acquire) -> Acquired | Held:
    row = tx.execute(
        f"SELECT epoch, token, owner, lease_until FROM locks WHERE name = :name AND {HELD}",
        {"name": command.name, "mono": tx.mono},
    ).fetchone()
    if row and row[1] != command.token:
        return Held(row[2], row[3] - tx.mono, row[0])
    until = tx.mono + command.ttl
    if row:
        tx.execute(
            "UPDATE locks SET lease_until = max(lease_until, ?), lease_ttl = max(lease_ttl, ?) "
            "WHERE name = ?",
            (until, command.ttl, command.name),
        )
        return Acquired(row[0])
    tx.execute(
        "INSERT INTO locks (name, epoch, token, owner, acquired, lease_until, lease_ttl) "
        "VALUES (?1, 1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (name) DO UPDATE SET epoch = epoch + 1, "
        "token = ?2, owner = ?3, acquired = ?4, lease_until = ?5, lease_ttl = ?6",
        (command.name, command.token, command.owner, tx.now, until, command.ttl),
    )
    return Acquired(tx.value("SELECT epoch FROM locks WHERE name = ?", command.name))


def renew_locks(tx: Transaction, command: RenewLocks) -> list[tuple[str, str]]:
    sql = (
        "UPDATE locks SET lease_until = max(lease_until, :until), lease_ttl = max(lease_ttl, :ttl) "
        f"WHERE name = :name AND token = :token AND {HELD}"
    )
    lost: list[tuple[str, str]] = []
    for name, token in command.held:
        values = {
            "until": tx.mono + command.ttl,
            "ttl": command.ttl,
            "name": name,
            "token": token,
            "mono": tx.mono,
        }
        if tx.execute(sql, values).rowcount == 0:
            lost.append((name, token))
    return lost


_FREE = "UPDATE locks SET token = NULL, owner = NULL, acquired = NULL, lease_until = NULL"


def release_lock(tx: Transaction, command: ReleaseLock) -> bool:
    cursor = tx.execute(
        f"{_FREE} WHERE name = :name AND token = :token AND {HELD}",
        {"name": command.name, "token": command.token, "mono": tx.mono},
    )
    return cursor.rowcount == 1


def force_release(tx: Transaction, command: ForceRelease) -> bool:
    cursor = tx.execute(
        f"{_FREE}, epoch = epoch + 1 WHERE name = :name AND {HELD}",
        {"name": command.name, "mono": tx.mono},
    )
    if cursor.rowcount == 1:
        write_audit(tx, command.actor, "lock.force_release", command.name, command.reason)
    return cursor.rowcount == 1
