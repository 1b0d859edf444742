"""Accepting runs."""

from __future__ import annotations

from typing import Any

from holdfast.adapters.sqlite.transaction import Transaction, append_numbered, insert_rows, pack
from holdfast.model.commands import Submit, Submitted
from holdfast.model.event import EventType

QUEUED = str(EventType.QUEUED)

_INSERT = (
    "INSERT OR IGNORE INTO runs (id, tenant, pipeline, lane, input, fingerprint, key, is_unique, "
    "priority, available, "
    "due, delay, attempt_limit, parent, inherited, created) VALUES "
)

_TAKEN = """
SELECT 1 FROM json_each(?) j WHERE EXISTS (SELECT 1 FROM runs WHERE id = j.value->>0)
    OR (j.value->>2 IS NOT NULL AND EXISTS (SELECT 1 FROM runs WHERE tenant = j.value->>1 AND key = j.value->>2))
LIMIT 1
"""

_EXISTING = """
SELECT id, state, fingerprint FROM runs WHERE tenant = ?2 AND key = ?3
UNION ALL
SELECT id, state, fingerprint FROM runs
WHERE ?5 AND is_unique AND tenant = ?2 AND pipeline = ?4 AND state IN ('queued', 'running', 'paused') AND id <> ?1
LIMIT 1
"""

_INHERIT = "INSERT INTO checkpoints (run, step, key, value, checksum, schema, fingerprint, record, epoch) VALUES "


def submit(tx: Transaction, commands: list[Submit]) -> list[Submitted]:
    if not _any_taken(tx, commands):
        insert_rows(tx, _INSERT, [_row(tx, command) for command in commands])
        append_numbered(tx, [(c.id, 1, QUEUED, tx.now, "{}") for c in commands])
        for command in commands:
            _inherit(tx, command)
        return [Submitted(c.id, True, "queued") for c in commands]
    return [_submit_one(tx, command) for command in commands]


def _any_taken(tx: Transaction, commands: list[Submit]) -> bool:
    """Whether one of them might meet another run: the same id, or a key or unique slot that has to
    be looked up."""
    if any(command.unique for command in commands):
        return True
    keys = [(command.tenant, command.key) for command in commands if command.key is not None]
    if len(set(keys)) < len(keys) or len({command.id for command in commands}) < len(commands):
        return True
    return bool(tx.value(_TAKEN, pack([(c.id, c.tenant, c.key) for c in commands])))


def _row(tx: Transaction, c: Submit) -> tuple[Any, ...]:
    available = tx.now + c.delay if c.delay > 0 else None
    return (
        c.id, c.tenant, c.pipeline, c.lane, c.input, c.fingerprint, c.key, c.unique, c.priority, available,
        tx.mono + c.delay, c.delay, c.max_attempts, c.parent, bool(c.checkpoints), tx.now,
    )  # fmt: skip


def _submit_one(tx: Transaction, command: Submit) -> Submitted:
    if insert_rows(tx, _INSERT, [_row(tx, command)]):
        append_numbered(tx, [(command.id, 1, QUEUED, tx.now, "{}")])
        _inherit(tx, command)
        return Submitted(command.id, True, "queued")
    return _answer(tx, command)


def _inherit(tx: Transaction, command: Submit) -> None:
    rows = [
        (command.id, c.step, c.key, c.value, c.checksum, c.schema, c.fingerprint, c.record, 0)
        for c in command.checkpoints
    ]
    insert_rows(tx, _INHERIT, rows)


def _answer(tx: Transaction, command: Submit) -> Submitted:
    state = tx.value("SELECT state FROM runs WHERE id = ?", command.id)
    if state is not None:
        return Submitted(command.id, True, state)
    run, state, fingerprint = tx.one(
        _EXISTING, command.id, command.tenant, command.key, command.pipeline, command.unique
    )
    same_key = command.key is not None and tx.value(
        "SELECT 1 FROM runs WHERE id = ? AND key = ?", run, command.key
    )
    return Submitted(run, False, state, bool(same_key) and fingerprint != command.fingerprint)
