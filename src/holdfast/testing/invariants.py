"""What must be true of a store after any story: the contract, as a check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.model.commands import Claim, Command, SaveCheckpoint, Settle
from holdfast.model.event import EVENTS_TOPIC, STATE_AFTER, Event, EventType, history_gaps
from holdfast.model.run import TRANSITIONS, RunState
from holdfast.ports.bus import Message
from holdfast.ports.store import RunFilter, Store

ENDINGS = {
    EventType.COMPLETED: "succeeded",
    EventType.FAILED: "failed",
    EventType.CANCELLED: "cancelled",
}


class Observer:
    """Watches executions and durable results, and remembers what must never happen."""

    def __init__(self) -> None:
        self.executed: list[tuple[str, str, str]] = []
        self.durable: set[tuple[str, str, str]] = set()
        self.epochs: dict[str, int] = {}
        self.violations: list[str] = []
        self.started: list[str] = []
        """Runs in the order in which they were first executed."""

    def on_execute(self, run: str, step: str, key: str) -> None:
        item = (run, step, key)
        self.executed.append(item)
        if run not in self.started:
            self.started.append(run)
        if item in self.durable:
            self.violations.append(
                f"I3: {step}[{key}] of run {run} was executed again after its checkpoint was "
                "durable"
            )

    def observe(self, commands: Sequence[Command], replies: Sequence[Any]) -> None:
        """Note what the store really accepted."""
        for command, reply in zip(commands, replies, strict=True):
            if isinstance(command, Claim):
                self.epochs.update({claimed.run: claimed.epoch for claimed in reply})
            elif isinstance(command, SaveCheckpoint | Settle) and reply is None:
                self._accepted(command)

    def _accepted(self, command: SaveCheckpoint | Settle) -> None:
        if command.epoch < self.epochs.get(command.run, 0):
            self.violations.append(
                f"I1: epoch {command.epoch} wrote to run {command.run} although "
                f"{self.epochs[command.run]} has it"
            )
        saved = command.last if isinstance(command, Settle) else command
        if saved is not None:
            self.durable.add((saved.run, saved.step, saved.key))


async def check_history(store: Store, run: str) -> list[str]:
    """I9, I10: numbered without gaps, along declared transitions, nothing after the end."""
    history = await store.history(run)
    stored = await store.run(run)
    problems = [f"I10: history of {run} lacks number {gap}" for gap in history_gaps(history)]
    problems += _transitions(run, history)
    last = next((STATE_AFTER[e.type] for e in reversed(history) if e.type in STATE_AFTER), None)
    if stored is not None and last != stored.state:
        problems.append(f"I11: run {run} is {stored.state}, its history says {last}")
    return problems


def _transitions(run: str, history: list[Event]) -> list[str]:
    problems: list[str] = []
    state: RunState | None = None
    for event in history:
        after = STATE_AFTER.get(event.type)
        if after is None:
            if state is not RunState.RUNNING:
                problems.append(f"I10: {event.type} of {run} while it was {state}")
            continue
        if state is None and event.type != EventType.QUEUED:
            problems.append(f"I10: history of {run} begins with {event.type}")
        if state is not None and RunState(after) not in TRANSITIONS[state]:
            problems.append(f"I9/I10: {run} went from {state} to {after}")
        state = RunState(after)
    return problems


async def check_store(store: Store) -> list[str]:
    """Every run's history, one dead letter per failed run, no lease left on anything that is
    over."""
    problems: list[str] = []
    for run in await store.runs(RunFilter(), limit=10_000):
        problems += await check_history(store, run.id)
    letters = [letter.id for letter in await store.dead_letters(open_only=False, limit=10_000)]
    problems += [
        f"I12: dead letter {id} appears twice" for id in set(letters) if letters.count(id) > 1
    ]
    return problems


def check_published(published: Sequence[tuple[str, Message]], events: Sequence[Event]) -> list[str]:
    """I4, I11: every committed event was published, no other, and every copy of it is the same.
    Every other message is the same in every copy, too."""
    copies: dict[str, Message] = {}
    problems: list[str] = []
    for _, message in published:
        if copies.setdefault(message.id, message) != message:
            problems.append(f"I4: two copies of message {message.id} differ")
    of_events = [message for topic, message in published if topic == EVENTS_TOPIC]
    sent = {message.attributes["ce-id"] for message in of_events}
    committed = {event.id for event in events}
    problems += [f"I11: event {id} was committed and never published" for id in committed - sent]
    problems += [f"I11: event {id} was published and never committed" for id in sent - committed]
    return problems
