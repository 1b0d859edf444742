"""The steps that this process saves, noted until their run is over: their part of its state document is then made here.

The server could look them up, and does for runs that others have worked on before. But it has one thread for everybody
and spent a third of it on that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter

import msgspec
from msgspec import Struct

from holdfast.model.analytics import StepAnalytics, analytics
from holdfast.model.run import StepRecord
from holdfast.ports.commands import Claim, Claimed, Command, Renew, Reply, SaveCheckpoint, Settle

MOST = 10_000
"""Runs in the notebook."""

LARGE = 4096
"""Characters of a value that is not worth keeping, nor sending twice."""

_record = msgspec.json.Decoder(StepRecord).decode
_json = msgspec.json.Encoder().encode


class Summary(Struct, array_like=True):
    """What a document says of a run's steps: how many there are, two objects of JSON, and what they consumed."""

    steps: int
    analytics: bytes
    results: bytes
    tokens: int
    cost: float


class Notebook:
    """Has the steps of runs that began in this process, and are not over. What it does not know is no loss."""

    def __init__(self) -> None:
        self._steps: dict[tuple[str, int], dict[str, SaveCheckpoint]] = {}

    def __len__(self) -> int:
        return len(self._steps)

    def hear(self, commands: Sequence[Command], replies: Sequence[Reply]) -> None:
        """Of runs that were claimed or lost."""
        for command, reply in zip(commands, replies, strict=True):
            if type(command) is Claim:
                self._begin(reply)
            elif type(command) is Renew:
                for run, epoch in reply:
                    self.forget(run, epoch)

    def _begin(self, claimed: Iterable[Claimed]) -> None:
        for each in claimed:
            if not each.resumed:
                self._steps[each.run, each.epoch] = {}
        while len(self._steps) > MOST:
            self._steps.pop(next(iter(self._steps)), None)

    def note(self, saved: SaveCheckpoint) -> None:
        if saved.key:
            return
        if len(saved.value) > LARGE:
            self.forget(saved.run, saved.epoch)
        elif (steps := self._steps.get((saved.run, saved.epoch))) is not None:
            steps[saved.step] = saved

    def forget(self, run: str, epoch: int) -> None:
        self._steps.pop((run, epoch), None)

    def close(self, settled: Settle) -> Summary | None:
        """Forget a run, and sum it up if it has succeeded and all is known of it."""
        if settled.last is not None:
            self.note(settled.last)
        steps = self._steps.pop((settled.run, settled.epoch), None)
        if steps is None or settled.outcome != "succeeded" or settled.progress != "{}":
            return None
        try:
            return sum_up(steps)
        except msgspec.DecodeError:  # a record of another making: the server shows what it finds in it
            return None


def sum_up(steps: dict[str, SaveCheckpoint]) -> Summary:
    told: list[tuple[float, StepAnalytics]] = []
    results: dict[str, msgspec.Raw | str] = {}
    tokens, cost = 0, 0.0
    for step, saved in steps.items():
        record = _record(saved.record)
        told.append((record.started or 0.0, analytics(step, record)))
        tokens, cost = tokens + record.usage.total_tokens, cost + record.usage.cost
        if not saved.skipped:  # a value that is too large to be here is shown as the name of where it is
            results[step] = saved.value if saved.value.startswith("@") else msgspec.Raw(saved.value.encode())
    told.sort(key=itemgetter(0))
    return Summary(len(steps), _json({each.step_name: each for _, each in told}), _json(results), tokens, cost)
