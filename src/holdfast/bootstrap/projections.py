"""Which projections a process has, and where each of them goes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from typing import Any

from holdfast.bootstrap import apps
from holdfast.bootstrap.factories import make_bus, make_documents
from holdfast.bootstrap.options import Options
from holdfast.engine.claim_check import ClaimCheckPublisher
from holdfast.engine.document_writing import DocumentTarget
from holdfast.engine.publishing import MessageTarget
from holdfast.engine.runtime import Runtime
from holdfast.errors import ConfigurationError
from holdfast.model.cloudevent import EVENTS, events_projection
from holdfast.model.dead_letter_copies import dead_letter_copies
from holdfast.model.pipeline import Pipeline
from holdfast.model.projection import (
    DocumentProjection,
    MessageProjection,
    Projection,
    RunSnapshot,
    declared,
)
from holdfast.ports.bus import Bus, Message, Publisher
from holdfast.ports.documents import Documents

log = logging.getLogger("holdfast.projections")


def projections_of(
    options: Options, pipelines: Iterable[Pipeline[Any]]
) -> Mapping[str, Projection]:
    """All that an app declares, by name: the events, what its pipelines and its options say."""
    named = dict.fromkeys(options.projections)
    with_copies = {receive.topic: receive for receive in options.receive if receive.copies}
    return declared(
        [
            events_projection(options.events_topic),
            *(projection for pipeline in pipelines for projection in pipeline.projections),
            *(app_projection(p) if isinstance(p, str) else p for p in named),
            *(dead_letter_copies(receive) for receive in with_copies.values()),
        ]
    )


def app_projection(name: str) -> Projection:
    """The projection of an app. Raises ConfigurationError if no app has one of that name."""
    known: list[str] = []
    for app in apps.installed():
        if name in app.projections:
            return apps.load_part(app, app.projections[name])
        known += app.projections
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known) or 'none'}"
    raise ConfigurationError(f"no app has a projection {name!r}; {hint}")


def state_document(snapshot: RunSnapshot) -> bytes:
    """A run as the projection `state_documents` writes it."""
    return app_projection("state_documents").function(snapshot)[0].body


Target = MessageTarget | DocumentTarget


@dataclass(slots=True)
class Targets:
    """The projections that this process can run, and what they write to."""

    by_name: dict[str, Target]
    opened: list[BusOnDemand | Documents]
    nowhere: list[Projection] = field(default_factory=list)
    """Those that have nowhere to go, so that they do not run here."""

    @property
    def documents(self) -> list[DocumentTarget]:
        return [target for target in self.by_name.values() if isinstance(target, DocumentTarget)]

    def warn_of_nowhere(self) -> None:
        """Events need no bus; what somebody has declared does."""
        for projection in self.nowhere:
            if projection.name != EVENTS and not projection.quiet:
                is_document = isinstance(projection, DocumentProjection)
                log.warning(
                    "projection %s does not run here: %s is not set",
                    projection.name,
                    "documents" if is_document else "bus",
                )

    async def close(self) -> None:
        async with AsyncExitStack() as closing:  # one that raises leaves no other open
            for adapter in self.opened:
                closing.push_async_callback(adapter.close)


class BusOnDemand:
    """A projection's own bus, opened by its first message: one that is away harms no other."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._is_open = False

    @property
    def max_body(self) -> int | None:
        return self._bus.max_body

    async def publish(self, topic: str, message: Message) -> None:
        if not self._is_open:
            await self._bus.open()
            self._is_open = True
        await self._bus.publish(topic, message)

    async def close(self) -> None:
        if self._is_open:
            self._is_open = False
            await self._bus.close()


def targets_of(
    projections: Mapping[str, Projection],
    options: Options,
    runtime: Runtime,
    pipelines: Mapping[str, Pipeline[Any]],
    bus: Publisher | None,
) -> Targets:
    """Give every projection somewhere to go."""
    documents = options.make_documents()
    targets = Targets({}, [documents] if documents is not None else [])
    made: dict[str, Any] = {}

    def open_url(url: str, projection: Projection) -> Any:
        """One adapter for each URL, made when the first asks for it."""
        if url not in made:
            made[url] = _adapter(projection, url, options)
            targets.opened.append(made[url])
        return made[url]

    for name, projection in projections.items():
        default = documents if isinstance(projection, DocumentProjection) else bus
        to: Any = projection.to() if callable(projection.to) else projection.to
        to = open_url(to, projection) if isinstance(to, str) else default if to is None else to
        if to is None:
            targets.nowhere.append(projection)
        elif isinstance(projection, DocumentProjection):
            targets.by_name[name] = DocumentTarget(
                projection, to, runtime, pipelines, partial(open_url, projection=projection)
            )
        elif isinstance(projection, MessageProjection):
            publisher = ClaimCheckPublisher(to, runtime.claim_checks)
            targets.by_name[name] = MessageTarget(projection, publisher, runtime)
    return targets


def _adapter(projection: Projection, url: str, options: Options) -> Any:
    if isinstance(projection, DocumentProjection):
        adapter = make_documents(url, options.clock)
    else:
        bus = make_bus(url)
        adapter = BusOnDemand(bus) if bus is not None else None
    if adapter is None:
        raise ConfigurationError(f"projection {projection.name!r}: to={url!r} names nothing")
    return adapter
