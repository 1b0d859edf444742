"""Projections: what leaves the store for other systems, derived from committed events.

*Messages* are pure functions of a committed event and of what can't change after it, so that every
copy has the same id and the same bytes. *Documents* are functions of a run as it is now; a document
carries the version of what it was made from and is written only over a lower one.

Both are declared by a pipeline (`@pipeline.publishes`, `@pipeline.documents`), or for all pipelines
as a value of its own. Each has a name, and under that name a lock and a cursor in the store."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from inspect import iscoroutinefunction
from typing import Any

from msgspec import Struct, field

from holdfast.errors import DefinitionError
from holdfast.model.checkpoint import Checkpoint
from holdfast.model.codec import plain_json
from holdfast.model.event import Event, EventType
from holdfast.model.run import Run

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")


# --- messages -------------------------------------------------------------------------------------


class CommittedEvent(Struct, frozen=True):
    """A committed event, with what was submitted and, for `run.completed`, the result. Nothing in
    it changes after the event: neither may anything that is made of it."""

    id: str
    """`{run}:{seq}`."""
    type: str
    seq: int
    at: float
    """Seconds since the epoch, by the store's clock."""
    data: dict[str, Any]
    """The event's own facts: `attempt`, `error`, `execution_time_ms`, …"""
    text: str
    """The same as it is stored, as JSON."""
    before: str | None
    """The state that the run left, if the event changed it; None for a new run."""
    after: str | None
    """The state that the run entered, if the event changed it."""
    run: str
    """The run's id; for `message.dead_lettered` that of the dead letter."""
    tenant: str
    pipeline: str
    key: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    """What came with the request or the message."""
    input: Any = None
    """JSON, decoded."""
    result: Any = None
    """JSON, decoded: the result of a run that succeeded, at `run.completed`."""
    body: bytes | None = None
    """The original bytes of a message that became a dead letter."""

    @property
    def subject(self) -> str:
        """What other systems call the run: its key, or its id where it has none."""
        return self.key or self.run

    @property
    def time(self) -> datetime:
        return datetime.fromtimestamp(self.at, UTC)


class Outgoing(Struct, frozen=True):
    """A message to be published. A `body` that is neither bytes nor text is written as JSON.

    The relay gives it its id: the projection's name, the event's id, and its place among the
    messages of that event."""

    topic: str
    body: Any
    attributes: Mapping[str, str] = field(default_factory=dict)
    ordering_key: str = ""
    """Messages with the same key are delivered in order, where the bus can do that."""
    on_published: Callable[[], None] | None = None
    """Called once the bus has it, for example to log that."""


Messages = Outgoing | Iterable[Outgoing] | None
"""What a message projection's function may return."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """What both kinds have in common."""

    name: str
    function: Callable[[Any], Any]
    pipeline: str | None = None
    """Whose runs it is about; None: those of all pipelines."""
    to: Any = None
    """Where it goes instead of the app's own bus or documents: a URL, an adapter, or a function
    without parameters that gives one, or None."""
    quiet: bool = False
    """Whether nothing is said where it has nowhere to go."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not NAME.fullmatch(self.name):
            raise DefinitionError(
                f"projection name {self.name!r:.200} is not usable: 1 to 128 letters, digits, '.', "
                "'-' or '_'"
            )
        if not callable(self.function) or iscoroutinefunction(self.function):
            raise DefinitionError(
                f"projection {self.name!r}: its function is a plain `def`, called with what has "
                "happened; it waits for nothing"
            )

    def concerns(self, event: Event) -> bool:
        return self.pipeline is None or event.pipeline == self.pipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageProjection(Projection):
    """From a committed event to messages. The function is called again after a crash and must
    return the same: it looks at nothing but its event."""

    function: Callable[[CommittedEvent], Messages]
    events: Collection[str] = frozenset()
    """The types of events that it is about; none: all of its pipeline."""
    history: bool = True
    """Whether events that were there before it was first registered are sent, too."""
    loads_run: bool = True
    """Whether the function looks at more than the event itself: input, key, labels, result."""

    def __post_init__(self) -> None:
        Projection.__post_init__(self)
        events = (self.events,) if isinstance(self.events, str) else self.events
        object.__setattr__(self, "events", frozenset(events))
        for unknown in frozenset(events) - set(EventType):
            close = get_close_matches(unknown, map(str, EventType), n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(EventType)}"
            raise DefinitionError(f"projection {self.name!r}: there is no event {unknown!r}{hint}")

    def concerns(self, event: Event) -> bool:
        """Messages that became dead letters belong to no pipeline: a projection that wants them
        names them, or is about all events of all pipelines."""
        if self.events and event.type not in self.events:
            return False
        if self.events and event.type == EventType.MESSAGE_DEAD_LETTERED:
            return True
        return Projection.concerns(self, event)

    def messages(self, event: CommittedEvent) -> list[tuple[str, Outgoing]]:
        """What is to be published for an event, each with its id."""
        outgoing = _as_list(self.function(event), Outgoing, self.name)
        return [
            (message_id(self.name, event.id, index), item) for index, item in enumerate(outgoing)
        ]


def message_id(projection: str, event: str, index: int) -> str:
    return f"{projection}:{event}" + (f"/{index}" if index else "")


def body_bytes(body: Any) -> bytes:
    """The bytes of an `Outgoing` or a `Document`."""
    if isinstance(body, bytes):
        return body
    return (body if isinstance(body, str) else plain_json(body)).encode()


# --- documents ------------------------------------------------------------------------------------


class RunSnapshot(Struct, frozen=True):
    """A run as it is now, with everything that belongs to one moment of it."""

    run: Run
    history: Sequence[Event]
    steps: Sequence[str]
    """The names of the pipeline's steps in order, where that is known."""
    input: Any
    """JSON, decoded."""
    result: Any
    """JSON, decoded; None unless the run has succeeded."""
    now: float
    """When it was read, in seconds since the epoch."""
    checkpoints: Sequence[Checkpoint] = ()
    """The stored results of its steps, if the projection asks for them (`results=True`)."""

    @property
    def subject(self) -> str:
        """What other systems call the run: its key, or its id where it has none."""
        return self.run.key or self.run.id


class ArtifactBody(Struct, frozen=True):
    """The bytes of an artifact, as they are or through a function, which gets a thread of its
    own."""

    artifact: str
    """Its key in the blob store."""
    convert: Callable[[bytes], bytes] | None = None


class Document(Struct, frozen=True):
    """A document as it should be. A `body` that is neither bytes, text nor an artifact is written
    as JSON."""

    key: str
    body: Any
    ttl: float | None = None
    """Seconds after which it is gone; None: it stays until it is removed."""
    to: Any = None
    """Where it goes instead of where its projection goes: a URL, or an adapter."""


class Removal(Struct, frozen=True):
    """There should be no document under this key."""

    key: str
    to: Any = None
    """Where, if not where its projection goes."""


DocumentChanges = Document | Removal | Iterable[Document | Removal] | None
"""What a document projection's function may return."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentProjection(Projection):
    """From a run as it is now to documents that other systems read."""

    function: Callable[[RunSnapshot], DocumentChanges]
    results: bool = False
    """Whether the function looks at the results of steps: they are read each time they change."""
    on_progress: bool = True
    """Whether the worker that has a run refreshes its documents between events. Not for buckets:
    they take one write a second for each object."""

    def concerns(self, event: Event) -> bool:
        is_of_run = event.type != EventType.MESSAGE_DEAD_LETTERED
        return is_of_run and Projection.concerns(self, event)

    def documents(self, snapshot: RunSnapshot) -> list[Document | Removal]:
        return _as_list(self.function(snapshot), Document | Removal, self.name)


def document_version(generation: int, run: Run, refresh: int = 0) -> str:
    """What a document was made from, as a text that compares as it should: a rebuild is newer than
    all before, then a run accepted later, then a later event, then a later look at its progress."""
    return f"{generation:08d}.{run.seq:016d}.{run.events:010d}.{refresh:010d}"


def _as_list(returned: Any, kind: Any, projection: str) -> list[Any]:
    items = [] if returned is None else [returned] if isinstance(returned, kind) else list(returned)
    for item in items:
        if not isinstance(item, kind):
            raise DefinitionError(
                f"projection {projection!r} returned a {type(item).__name__}: return "
                f"{getattr(kind, '__name__', kind)} values, or None"
            )
    return items


# --- declaring ------------------------------------------------------------------------------------


def declared(projections: Iterable[Projection]) -> dict[str, Projection]:
    """Projections by name. Two of one name would share a cursor."""
    by_name: dict[str, Projection] = {}
    for projection in projections:
        if by_name.setdefault(projection.name, projection) is not projection:
            raise DefinitionError(
                f"two projections are called {projection.name!r}: give one another name"
            )
    return by_name
