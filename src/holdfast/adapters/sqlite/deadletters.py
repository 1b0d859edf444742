"""Dead letters, and the outbox that a relay follows."""

from __future__ import annotations

from holdfast.adapters.sqlite.transaction import Transaction, decode, encode, write_audit
from holdfast.model.commands import Bury, ConfirmOutbox, Discard, MarkRedriven, ReadOutbox
from holdfast.model.event import Event


def bury(tx: Transaction, command: Bury) -> bool:
    cursor = tx.execute(
        "INSERT OR IGNORE INTO dead_letters (id, source, reason, body, attributes, tenant, "
        "created) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            command.id,
            command.source,
            command.reason,
            command.body,
            encode(command.attributes).decode(),
            command.tenant,
            tx.now,
        ),
    )
    return cursor.rowcount == 1


def bury_run(tx: Transaction, run: str) -> None:
    """Keep a failed run as a dead letter: once, however often it is resumed and fails again."""
    tenant, pipeline, attempts, body, error = tx.one(
        "SELECT tenant, pipeline, attempts, input, error FROM runs WHERE id = ?", run
    )
    found = decode(error) if error else {"name": "Unknown", "message": ""}
    tx.execute(
        "INSERT INTO dead_letters (id, source, reason, body, attributes, tenant, run, created) "
        "VALUES (?, 'run', ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (id) DO UPDATE SET reason = excluded.reason, attributes = "
        "excluded.attributes, "
        "closed = NULL, resolution = NULL",
        (
            f"run:{run}",
            f"{found['name']}: {found['message']}",
            body.encode(),
            encode({"pipeline": pipeline, "attempts": str(attempts)}).decode(),
            tenant,
            run,
            tx.now,
        ),
    )


def close(tx: Transaction, id: str, resolution: str) -> bool:
    cursor = tx.execute(
        "UPDATE dead_letters SET closed = ?, resolution = ? WHERE id = ? AND closed IS NULL",
        (tx.now, resolution, id),
    )
    return cursor.rowcount == 1


def mark_redriven(tx: Transaction, command: MarkRedriven) -> bool:
    marked = close(tx, command.id, "redriven")
    if marked:
        write_audit(tx, command.actor, "dlq.redrive", command.id, "")
    return marked


def discard(tx: Transaction, command: Discard) -> bool:
    if not close(tx, command.id, "discarded"):
        return False
    tx.execute(
        "UPDATE runs SET holds_lane = 0 WHERE id = (SELECT run FROM dead_letters WHERE id = ?)",
        (command.id,),
    )
    write_audit(tx, command.actor, "dlq.discard", command.id, command.reason)
    return True


_OUTBOX = """
SELECT e.run, e.seq, e.type, e.at, e.data, r.tenant, r.pipeline, e.position
FROM events e JOIN runs r ON r.id = e.run
WHERE e.position > coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'outbox_confirmed'), 0)
ORDER BY e.position LIMIT ?
"""


def read_outbox(tx: Transaction, command: ReadOutbox) -> list[Event]:
    return [Event(*row) for row in tx.execute(_OUTBOX, (command.limit,))]


def confirm_outbox(tx: Transaction, command: ConfirmOutbox) -> None:
    tx.execute(
        "INSERT INTO meta (name, value) VALUES ('outbox_confirmed', ?1) ON CONFLICT (name) DO "
        "UPDATE "
        "SET value = excluded.value WHERE CAST(value AS INTEGER) < CAST(excluded.value AS INTEGER)",
        (str(command.position),),
    )
