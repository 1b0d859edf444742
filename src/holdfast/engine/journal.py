"""What is known of a run during one attempt: what earlier attempts left, and what this one adds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from holdfast.model.checkpoint import Checkpoint, checksum, digest
from holdfast.model.commands import SaveCheckpoint
from holdfast.model.keys import is_item
from holdfast.model.run import Progress, StepRecord, StepStatus
from holdfast.model.usage import Usage

UNFINISHED = (StepStatus.IN_PROGRESS, StepStatus.FAILED)

_encode = msgspec.json.Encoder().encode
_decode_record = msgspec.json.Decoder(StepRecord).decode
_decode_progress = msgspec.json.Decoder(Progress).decode


SKIPPED = "skipped"
"""The checksum and schema of a skipped step's result."""
NOTHING = checksum("null")


class Result(Struct, frozen=True):
    """The result of a step or item: as stored, and as others see it."""

    stored: str
    checksum: str
    """What the fingerprints of steps that depend on it are made of."""
    value: Any

    @property
    def stored_checksum(self) -> str:
        """What it must hash to when it is read back; that of a skipped step is nothing."""
        return NOTHING if self.checksum == SKIPPED else self.checksum


class Journal:
    """Checkpoints, results, records and usage of one run. It writes nothing to the store.

    `Execution` loads it and adds the steps' results. A `StepCall` adds its fingerprint, its record
    and perhaps the last checkpoint, an `ItemCall` its checkpoint. The `Gate` takes out what was
    quarantined."""

    __slots__ = (
        "_counted",
        "_finished_before",
        "_records",
        "_uncounted",
        "_wasted",
        "fingerprints",
        "input",
        "input_checksum",
        "last",
        "results",
        "stored",
    )

    def __init__(self) -> None:
        self.input: Any = None
        self.input_checksum = ""
        self.stored: dict[tuple[str, str], Checkpoint] = {}
        """By step and key: what an attempt may reuse."""
        self.results: dict[str, Result] = {}
        self.fingerprints: dict[str, str] = {}
        """Of the steps that have started."""
        self.last: SaveCheckpoint | None = None
        """The checkpoint of the final step, which commits with the outcome."""
        self._records: dict[str, StepRecord] = {}
        self._finished_before: dict[str, StepRecord] = {}
        self._wasted = Usage()
        self._counted: set[tuple[str, str]] = set()
        """Items of earlier attempts whose usage is in the record of their step."""
        self._uncounted: dict[str, Usage] = {}
        """What stored items cost that their step, begun anew, has not met again yet."""

    # --- loading ----------------------------------------------------------------------------------

    def load_checkpoints(self, checkpoints: Iterable[Checkpoint]) -> list[Checkpoint]:
        """Take in what is stored. The answer is what can't be: its record is unreadable."""
        records: dict[tuple[str, str], StepRecord] = {}
        unreadable: list[Checkpoint] = []
        for checkpoint in checkpoints:
            try:
                records[checkpoint.step, checkpoint.key] = _decode_record(checkpoint.record)
            except msgspec.MsgspecError:
                unreadable.append(checkpoint)
            else:
                self.stored[checkpoint.step, checkpoint.key] = checkpoint
        for (step, key), record in records.items():
            if not key:
                self._finished_before[step] = record
            elif (step, "") not in self.stored:
                self._uncounted[step] = self._uncounted.get(step, Usage()) + record.usage
        return unreadable

    def load_progress(self, progress: str) -> bool:
        """Carry over what an earlier attempt counted: tries of unfinished steps, and money that
        left no result. After the checkpoints. Whether it could be read."""
        if progress == "{}":
            return True
        try:
            before = _decode_progress(progress)
        except msgspec.MsgspecError:
            return False
        self._wasted = before.wasted
        for name, record in before.steps.items():
            checkpoint = self.stored.get((name, ""))
            if checkpoint is not None and checkpoint.epoch <= record.epoch:
                continue
            self._wasted = self._wasted + (record.usage - self._stored_usage(name, record.epoch))
            if checkpoint is None and record.status is StepStatus.IN_PROGRESS:
                self._records[name] = StepRecord(name, StepStatus.PENDING, attempts=record.attempts)
        return True

    # --- steps and items --------------------------------------------------------------------------

    def tries_before(self, step: str) -> int:
        """How often earlier attempts tried a step that they did not finish."""
        record = self._records.get(step)
        return record.attempts if record is not None else 0

    def begin(self, record: StepRecord) -> None:
        """A step is about to be executed; its record is filled in as it goes on."""
        self._records[record.step] = record

    def items_of(self, step: str) -> list[Checkpoint]:
        """The stored items of a step's own map, for those who stream them. Not what other code or
        inputs left under the same name."""
        fingerprint = self.fingerprints[step]
        return [
            checkpoint
            for (name, key), checkpoint in self.stored.items()
            if name == step and is_item(key) and _source(checkpoint) in (None, fingerprint)
        ]

    def items_digest(self, step: str) -> str:
        """The same as long as its stored items are."""
        items = sorted((item.key, item.checksum) for item in self.items_of(step))
        return digest(*[part for item in items for part in item])

    def has_items_of(self, checkpoint: Checkpoint) -> bool:
        """Whether the items of a step are still those that its stored result was made with: one may
        have been put aside, or replaced by other code."""
        expected = _decode_record(checkpoint.record).items
        return expected is None or expected == self.items_digest(checkpoint.step)

    def add_item(self, saved: SaveCheckpoint) -> None:
        """An item of this attempt is stored."""
        self.stored[saved.step, saved.key] = Checkpoint(
            saved.step,
            saved.key,
            saved.value,
            saved.checksum,
            saved.schema,
            saved.fingerprint,
            saved.record,
            saved.epoch,
        )

    def reuse_item(self, checkpoint: Checkpoint, record: StepRecord, epoch: int) -> None:
        """What an earlier attempt paid for an item belongs to the usage of its step, once."""
        item = (checkpoint.step, checkpoint.key)
        if checkpoint.epoch == epoch or item in self._counted:
            return
        self._counted.add(item)
        usage = recorded_usage(checkpoint)
        record.usage = record.usage + usage
        if checkpoint.step in self._uncounted:
            self._uncounted[checkpoint.step] = self._uncounted[checkpoint.step] - usage

    def remove(self, step: str, key: str) -> None:
        """A stored result can't be used: what it cost is wasted."""
        checkpoint = self.stored.pop((step, key), None)
        if not key:
            self._finished_before.pop(step, None)
        if checkpoint is not None:
            items = Usage() if key else self._stored_usage(step, checkpoint.epoch)
            self._wasted = self._wasted + (recorded_usage(checkpoint) - items)

    # --- what people see --------------------------------------------------------------------------

    def step_records(self) -> dict[str, StepRecord]:
        """What is known about each step that has begun: from its checkpoint, or from this
        attempt."""
        return {**self._finished_before, **self._records}

    @property
    def spent(self) -> Usage:
        """What the run has consumed so far, in all its attempts."""
        known = [record.usage for record in self.step_records().values()]
        return sum([*known, *self._uncounted.values()], self._wasted)

    def progress_text(self) -> str:
        """The unfinished part, as JSON of `Progress`."""
        steps = {
            name: record for name, record in self._records.items() if record.status in UNFINISHED
        }
        if not steps and not self._wasted:
            return "{}"
        return _encode(Progress(steps, self._wasted)).decode()

    def _stored_usage(self, step: str, epoch: int) -> Usage:
        """What items consumed that were stored by attempts up to this one."""
        usage = Usage()
        for (name, key), checkpoint in self.stored.items():
            if name == step and key and checkpoint.epoch <= epoch:
                usage = usage + recorded_usage(checkpoint)
        return usage


def recorded_usage(checkpoint: Checkpoint) -> Usage:
    """What a stored result consumed."""
    return _decode_record(checkpoint.record).usage if '"usage"' in checkpoint.record else Usage()


def _source(item: Checkpoint) -> str | None:
    return _decode_record(item.record).source if '"source"' in item.record else None


def original_key(item: Checkpoint) -> str:
    """The key of an item as its user knows it."""
    if '"key"' not in item.record:
        return item.key
    return _decode_record(item.record).key or item.key
