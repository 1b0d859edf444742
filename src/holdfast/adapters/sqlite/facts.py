"""The facts of one transaction: loaded when they are asked for, and kept up to date with what its
decisions change."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from holdfast.adapters.sqlite import searches
from holdfast.adapters.sqlite.statements import SMALL_COLUMNS, as_array, decode, pack, select_runs
from holdfast.adapters.sqlite.writes import Writes
from holdfast.model.checkpoint import Checkpoint
from holdfast.model.commands import Claim, Command, Prune, SaveCheckpoint, Settle, Submit
from holdfast.model.lane import Lane
from holdfast.model.machine import changes as ch
from holdfast.model.machine.facts import (
    LetterFacts,
    LockFacts,
    Now,
    RecordFacts,
    RunFacts,
    WaitingTenant,
)

_RUNS = f"SELECT {as_array(SMALL_COLUMNS)} FROM json_each(?) j JOIN runs r ON r.id = j.value"
_RUNS_WITH_KEYS = (
    f"SELECT {as_array(SMALL_COLUMNS)} FROM json_each(?) j "
    "JOIN runs r ON r.tenant = j.value->>0 AND r.key = j.value->>1"
)
_SLOT = (
    f"SELECT {as_array(SMALL_COLUMNS)} FROM runs r WHERE r.tenant = ? AND r.pipeline = ? "
    "AND r.\"unique\" AND r.state IN ('queued', 'running', 'paused')"
)
_STEPS = """
SELECT json_group_array(json_array(c.run, c.step, c.epoch)) FROM json_each(?) j
JOIN checkpoints c ON c.run = j.value->>0 AND c.step = j.value->>1 AND c.key = ''
"""


class SqliteFacts:
    """`Facts` of a transaction that nobody else can write in: what was loaded stays true.

    The checkpoints that it answers have no values: decisions look at their epochs."""

    def __init__(self, db: sqlite3.Connection, now: Now) -> None:
        self._db = db
        self._now = now
        self._writes = Writes(db, now)
        self._runs: dict[str, RunFacts | None] = {}
        self._keys: dict[tuple[str, str], str | None] = {}
        self._checkpoints: dict[tuple[str, str, str], Checkpoint | None] = {}
        self._log_lines: dict[str, int] = {}
        self._lanes: dict[str, Lane] | None = None
        self._locks: dict[str, LockFacts | None] = {}
        self._letters: dict[str, LetterFacts | None] = {}
        self._records: dict[str, RecordFacts | None] = {}

    # --- loading ---

    def prefetch(self, commands: Iterable[Command[Any]]) -> None:
        """Load what a batch names, with a statement for each kind of fact."""
        commands = list(commands)
        subjects = {subject for command in commands for subject in command.subjects or ()}
        self._load_runs([name for kind, name in subjects if kind == "run"])
        keys = [
            (command.tenant, command.key)
            for command in commands
            if type(command) is Submit and command.key is not None
        ]
        if keys:
            self._load_keys(keys)
        saved = [step for command in commands if (step := _completed_step(command))]
        if saved:
            self._load_steps(saved)

    def _load_runs(self, ids: Sequence[str]) -> None:
        self._runs.update(dict.fromkeys(ids))
        for run in select_runs(self._db, _RUNS, (pack(ids),)) if ids else ():
            self._runs[run.id] = run

    def _load_keys(self, keys: Sequence[tuple[str, str]]) -> None:
        self._keys.update(dict.fromkeys(keys))
        for run in select_runs(self._db, _RUNS_WITH_KEYS, (pack(keys),)):
            assert run.key is not None
            self._keys[run.tenant, run.key] = run.id
            self._runs.setdefault(run.id, run)

    def _load_steps(self, saved: Sequence[tuple[str, str]]) -> None:
        self._checkpoints.update({(run, step, ""): None for run, step in saved})
        rows = self._db.execute(_STEPS, (pack(saved),)).fetchone()[0]
        for run, step, epoch in decode(rows):
            self._checkpoints[run, step, ""] = _checkpoint(step, "", epoch)

    # --- facts ---

    def run(self, id: str) -> RunFacts | None:
        if id not in self._runs:
            self._load_runs([id])
        return self._runs[id]

    def run_with_key(self, tenant: str, key: str) -> RunFacts | None:
        if (tenant, key) not in self._keys:
            self._load_keys([(tenant, key)])
        id = self._keys[tenant, key]
        return self.run(id) if id is not None else None

    def slot_holder(self, tenant: str, pipeline: str) -> RunFacts | None:
        self._writes.flush()
        runs = select_runs(self._db, _SLOT, (tenant, pipeline))
        return runs[0] if runs else None

    def checkpoint(self, run: str, step: str, key: str) -> Checkpoint | None:
        checkpoint = (run, step, key)
        if checkpoint not in self._checkpoints:
            sql = "SELECT epoch FROM checkpoints WHERE run = ? AND step = ? AND key = ?"
            row = self._db.execute(sql, checkpoint).fetchone()
            self._checkpoints[checkpoint] = _checkpoint(step, key, row[0]) if row else None
        return self._checkpoints[checkpoint]

    def quarantined(self, run: str, step: str) -> int:
        self._writes.flush()
        sql = "SELECT count(*) FROM quarantine WHERE run = ? AND step = ?"
        return self._db.execute(sql, (run, step)).fetchone()[0]

    def log_lines(self, run: str) -> int:
        if run not in self._log_lines:
            sql = "SELECT count(*) FROM logs WHERE run = ?"
            self._log_lines[run] = self._db.execute(sql, (run,)).fetchone()[0]
        return self._log_lines[run]

    def lane(self, name: str) -> Lane | None:
        if self._lanes is None:
            rows = self._db.execute('SELECT name, "order", head FROM lanes')
            self._lanes = {row[0]: Lane(*row) for row in rows}
        return self._lanes.get(name)

    def lock(self, name: str) -> LockFacts | None:
        if name not in self._locks:
            sql = (
                "SELECT name, epoch, token, owner, acquired, lease_until, lease_ttl "
                "FROM locks WHERE name = ?"
            )
            row = self._db.execute(sql, (name,)).fetchone()
            self._locks[name] = LockFacts(*row) if row else None
        return self._locks[name]

    def letter(self, id: str) -> LetterFacts | None:
        if id not in self._letters:
            sql = "SELECT id, run, closed FROM dead_letters WHERE id = ?"
            row = self._db.execute(sql, (id,)).fetchone()
            self._letters[id] = LetterFacts(*row) if row else None
        return self._letters[id]

    def record(self, key: str) -> RecordFacts | None:
        if key not in self._records:
            sql = (
                "SELECT key, value, version, updated, lease_until, lease_ttl "
                "FROM records WHERE key = ?"
            )
            row = self._db.execute(sql, (key,)).fetchone()
            self._records[key] = RecordFacts(*row) if row else None
        return self._records[key]

    # --- searches: they have to see what was changed before ---

    def waiting(self, claim: Claim, now: Now) -> Sequence[WaitingTenant]:
        self._writes.flush()
        waiting = searches.waiting(self._db, claim, now)
        for tenant in waiting:
            self._loaded(tenant.runs)
        return waiting

    def room(self, tenant: str) -> int | None:
        self._writes.flush()
        return searches.room(self._db, tenant)

    def fifo_head(self, lane: str) -> RunFacts | None:
        self._writes.flush()
        runs = self._loaded(searches.fifo_head(self._db, lane))
        return runs[0] if runs else None

    def ended_leases(self, limit: int, now: Now) -> Sequence[RunFacts]:
        self._writes.flush()
        return self._loaded(searches.ended_leases(self._db, limit, now))

    def expired(self, prune: Prune, now: Now) -> Sequence[RunFacts]:
        self._writes.flush()
        return self._loaded(searches.expired(self._db, prune, now))

    def _loaded(self, runs: Sequence[RunFacts]) -> Sequence[RunFacts]:
        self._runs.update({run.id: run for run in runs})
        return runs

    # --- changes ---

    def write(self, change: ch.Change) -> None:
        remember = REMEMBER.get(type(change))
        if remember is not None:
            remember(self, change)
        self._writes.add(change, self._runs)

    def flush(self) -> None:
        self._writes.flush()

    def _add_run(self, change: ch.AddRun) -> None:
        run = change.run
        self._runs[run.id] = run
        if run.key is not None:
            self._keys[run.tenant, run.key] = run.id
        for copied in change.checkpoints:
            self._checkpoints[run.id, copied.step, copied.key] = replace(copied, epoch=0)

    def _change_run(self, change: ch.ChangeRun) -> None:
        run = self._runs[change.run]
        assert run is not None
        for name, value in change.fields.items():
            setattr(run, name, value)

    def _add_event(self, change: ch.AddEvent) -> None:
        run = self._runs[change.run]
        assert run is not None
        run.events += 1

    def _remove_run(self, change: ch.RemoveRun) -> None:
        self._runs[change.run] = None
        self._keys.clear()
        self._letters.clear()

    def _put_checkpoint(self, change: ch.PutCheckpoint) -> None:
        saved = change.checkpoint
        self._checkpoints[change.run, saved.step, saved.key] = saved

    def _move_to_quarantine(self, change: ch.MoveToQuarantine) -> None:
        self._checkpoints[change.run, change.step, change.key] = None

    def _add_log_line(self, change: ch.AddLogLine) -> None:
        self._log_lines[change.run] += 1

    def _open_letter(self, change: ch.OpenLetter) -> None:
        self._letters[change.id] = LetterFacts(change.id, change.run)

    def _close_letter(self, change: ch.CloseLetter) -> None:
        letter = self._letters[change.id]
        assert letter is not None
        self._letters[change.id] = replace(letter, closed=self._now.wall)

    def _put_lock(self, change: ch.PutLock) -> None:
        self._locks[change.lock.name] = change.lock

    def _put_lane(self, change: ch.PutLane) -> None:
        self._lanes = None

    def _write_record(self, change: ch.WriteRecord) -> None:
        self._records[change.record.key] = change.record

    def _remove_record(self, change: ch.RemoveRecord) -> None:
        self._records[change.key] = None


REMEMBER: dict[type, Callable[[SqliteFacts, Any], None]] = {
    ch.AddRun: SqliteFacts._add_run,
    ch.ChangeRun: SqliteFacts._change_run,
    ch.RemoveRun: SqliteFacts._remove_run,
    ch.AddEvent: SqliteFacts._add_event,
    ch.PutCheckpoint: SqliteFacts._put_checkpoint,
    ch.MoveToQuarantine: SqliteFacts._move_to_quarantine,
    ch.AddLogLine: SqliteFacts._add_log_line,
    ch.OpenLetter: SqliteFacts._open_letter,
    ch.CloseLetter: SqliteFacts._close_letter,
    ch.PutLock: SqliteFacts._put_lock,
    ch.PutLane: SqliteFacts._put_lane,
    ch.WriteRecord: SqliteFacts._write_record,
    ch.RemoveRecord: SqliteFacts._remove_record,
}
"""Changes that later decisions of the same transaction may look at."""


def _completed_step(command: Command[Any]) -> tuple[str, str] | None:
    """The run and step whose checkpoint a command may repeat."""
    saved = command.last if type(command) is Settle else command
    return (saved.run, saved.step) if type(saved) is SaveCheckpoint and not saved.key else None


def _checkpoint(step: str, key: str, epoch: int) -> Checkpoint:
    return Checkpoint(step, key, "", "", "", "", epoch=epoch)
