"""What leaves the simulated pipelines, and what must be true of it after any story."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast import (
    CommittedEvent,
    Document,
    DocumentProjection,
    MessageProjection,
    Outgoing,
    Pipeline,
    Removal,
    RunSnapshot,
    Transient,
)
from holdfast.adapters.records import StoreRecords
from holdfast.engine import cursors
from holdfast.model.event import Event
from holdfast.model.projection import Projection
from holdfast.model.run import Run, RunState
from holdfast.ports.bus import Message
from holdfast.ports.store import Store

CHANGES, RESULTS, DEAD_END, STATES = "changes", "chain.results", "dead-end", "states"


class DeadEnd:
    """An endpoint that never answers."""

    async def publish(self, topic: str, message: Message) -> None:
        raise Transient("nobody answers")


def declare_projections(pipelines: Sequence[Pipeline[Any]]) -> None:
    """Results of the first pipeline, changes of the second."""
    chain, fan, *_ = pipelines

    @chain.publishes(events=["run.completed", "run.failed"])
    def results(event: CommittedEvent) -> Outgoing:
        body = {"job": event.subject, "input": event.input, "output": event.result}
        return Outgoing(RESULTS, {**body, "data": event.data}, ordering_key=event.subject)

    @fan.publishes(name=CHANGES)
    def changes(event: CommittedEvent) -> list[Outgoing]:
        states = [event.before, event.after]
        return [Outgoing(CHANGES, state) for state in states] if event.after else []


def state(snapshot: RunSnapshot) -> list[Document | Removal]:
    run = snapshot.run
    counts = [record.done for record in run.progress.steps.values()]
    body = {"run": run.id, "number": run.events, "state": run.state, "done": counts}
    lock = f"lock/{run.id}"
    return [
        Document(f"state/{run.id}", {**body, "result": snapshot.result}),
        Document(lock, {"number": run.events}) if run.state is RunState.RUNNING else Removal(lock),
    ]


def for_all_pipelines() -> list[Projection]:
    """A dead endpoint, and documents."""
    return [
        MessageProjection(
            name=DEAD_END, function=lambda event: Outgoing("nowhere", event.data), to=DeadEnd()
        ),
        DocumentProjection(name=STATES, function=state, results=True),
    ]


class Reader:
    """Another system that looks at every document whenever it changes."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.now: dict[str, Any] = {}
        self._numbers: dict[str, int] = {}

    def observe(self, key: str, body: bytes | None) -> None:
        document = self.now[key] = None if body is None else msgspec.json.decode(body)
        number = self._numbers.get(key, 0) if document is None else document["number"]
        if number < self._numbers.get(key, 0):
            self.problems.append(f"document {key} went back to event {number}")
        self._numbers[key] = number

    def check(self, runs: Sequence[Run]) -> list[str]:
        problems = list(self.problems)
        for run in runs:
            document = self.now.get(f"state/{run.id}")
            if document is None or (document["state"], document["number"]) != (
                run.state,
                run.events,
            ):
                problems.append(f"document of run {run.id} shows {document}: it is {run.state}")
            if run.state is not RunState.RUNNING and self.now.get(f"lock/{run.id}") is not None:
                problems.append(f"run {run.id} is {run.state} and its lock is shown")
        return problems


def check_messages(published: Sequence[tuple[str, Message]], events: Sequence[Event]) -> list[str]:
    """Every message that an event stands for was published, under its id, and no other. That every
    copy is the same is checked with the events."""
    sent = {message.id for topic, message in published if topic in (RESULTS, CHANGES)}
    due: set[str] = set()
    for event in events:
        if event.pipeline == "chain" and event.type in ("run.completed", "run.failed"):
            due.add(f"{RESULTS}:{event.id}")
        if event.pipeline == "fan" and event.type.startswith("run."):
            due |= {f"{CHANGES}:{event.id}", f"{CHANGES}:{event.id}/1"}
    problems = [f"message {id} is due and was never published" for id in due - sent]
    return problems + [f"message {id} was published and is not due" for id in sent - due]


async def check_dead_end(store: Store) -> list[str]:
    """A dead endpoint stays where it is, and says so."""
    cursor = await cursors.load(StoreRecords(store), DEAD_END)
    if cursor is None or cursor.position > 0:
        return [f"a dead endpoint went on: {cursor}"]
    is_waiting = bool(await store.outbox(0, limit=1))
    return [f"nobody says that an endpoint is dead: {cursor}"] * (
        is_waiting and not cursor.state.failing
    )
