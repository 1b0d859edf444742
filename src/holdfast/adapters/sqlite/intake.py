"""Accepting runs."""

from __future__ import annotations

from holdfast.adapters.sqlite.transaction import Transaction, pack
from holdfast.model.event import EventType
from holdfast.ports.commands import Submit, Submitted

_INSERT = """
INSERT OR IGNORE INTO runs (id, tenant, pipeline, lane, input, fingerprint, key, is_unique, priority, available,
                            attempt_limit, parent, inherited, created)
SELECT j.value->>0, j.value->>1, j.value->>2, j.value->>3, j.value->>4, j.value->>5, j.value->>6, j.value->>7,
       j.value->>8, iif(j.value->>9 > 0, ?2 + (j.value->>9), NULL), j.value->>10, j.value->>11,
       json_array_length(j.value, '$[12]') > 0, ?2
FROM json_each(?1) j WHERE true ORDER BY j.key
"""

_QUEUED = f"""
INSERT OR IGNORE INTO events (run, seq, type, at, data)
SELECT r.id, 1, '{EventType.QUEUED}', ?2, '{{}}' FROM json_each(?1) j JOIN runs r ON r.id = j.value->>0 ORDER BY j.key
"""  # noqa: S608

_EXISTING = """
SELECT id, state, fingerprint FROM runs WHERE tenant = ?2 AND key = ?3
UNION ALL
SELECT id, state, fingerprint FROM runs
WHERE ?5 AND is_unique AND tenant = ?2 AND pipeline = ?4 AND state IN ('queued', 'running', 'paused') AND id <> ?1
LIMIT 1
"""

_INHERIT = """
INSERT OR IGNORE INTO checkpoints (run, step, key, value, checksum, schema, fingerprint, record, epoch)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)
"""


def submit(tx: Transaction, commands: list[Submit]) -> list[Submitted]:
    batch = pack(commands)
    inserted = tx.execute(_INSERT, (batch, tx.now)).rowcount
    tx.execute(_QUEUED, (batch, tx.now))
    _inherit(tx, commands)
    if inserted == len(commands):
        return [Submitted(c.id, True, "queued") for c in commands]
    return [_answer(tx, c) for c in commands]


def _inherit(tx: Transaction, commands: list[Submit]) -> None:
    for command in commands:
        if command.checkpoints and tx.value("SELECT 1 FROM runs WHERE id = ?", command.id):
            rows = [
                (command.id, c.step, c.key, c.value, c.checksum, c.schema, c.fingerprint, c.record)
                for c in command.checkpoints
            ]
            tx.connection.executemany(_INHERIT, rows)


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
