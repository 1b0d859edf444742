"""Both stages in one process, over a bus, and everything that they tell other systems."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.bucket_servers import fresh_gcs, shared_gcs

from holdfast import Holdfast
from holdfast.adapters.inprocess.bus import InProcessBus
from holdfast.apps.transcription import metadata, transcription
from holdfast.apps.transcription.job_documents import transcription_jobs
from holdfast.apps.transcription.media.fetching import FetchLimits
from holdfast.apps.transcription.media.source import MediaSources
from holdfast.apps.transcription.media.youtube import API
from holdfast.apps.transcription.messages import EVENTS
from holdfast.apps.transcription.model.transcript import Turn
from holdfast.apps.transcription.transcriber import Speech, Transcribers
from holdfast.apps.transcription.transcribers import AppTranscribers
from holdfast.model.receive import Receive
from holdfast.ports.bus import Message
from holdfast.ports.store import RunFilter

MAX_LOOKS, INTERVAL = 4000, 0.02
"""How often something is looked at before it counts as missing, and the seconds in between."""
WORK, EVENT_TOPIC = "work", "job-events"
FIRST = Receive(WORK, "metadata", "metadata-worker-subscription", "NOT attributes:worker-type")
SECOND = Receive(
    WORK,
    "transcription",
    "transcription-worker-subscription",
    'attributes.worker-type = "transcription"',
)


class FakeTranscriber:
    """Says how long each segment is."""

    name = "fake"
    max_seconds = 8.0
    in_flight = 2

    def __init__(self) -> None:
        self.calls: list[float] = []
        self.error: Exception | None = None

    def check(self, language: str) -> None: ...

    async def transcribe(self, speech: Speech, ctx: Any) -> list[Turn]:
        self.calls.append(speech.start)
        if self.error is not None:
            raise self.error
        text = f"about {round(speech.seconds)} seconds"
        return [Turn(speech.start, speech.start + speech.seconds, text)]


class OneTranscriber:
    """`Transcribers` with one of our own."""

    def __init__(self, transcriber: Any) -> None:
        self.transcriber = transcriber

    def named(self, name: str) -> Any:
        return self.transcriber


class Harness:
    """What was published and written while a story played."""

    def __init__(
        self,
        *,
        transcriber: Any = None,
        folder: str = "/",
        hosts: tuple[str, ...] = (),
        youtube_api: str = API,
        stages: Iterable[Receive] = (FIRST, SECOND),
        bus: Any = None,
        store: str = "memory:",
    ) -> None:
        self.bucket = fresh_gcs()
        self.bus = bus or InProcessBus()
        self.stages = tuple(stages)
        self.events: list[Message] = []
        self.runs: list[Any] = []
        self.letters: list[Any] = []
        stored = {"metadata": metadata, "transcription": transcription}
        self.app = Holdfast(
            store,
            pipelines=[stored[stage.pipeline] for stage in self.stages],
            blobs=self.bucket,
            bus=self.bus,
            projections=[EVENTS, transcription_jobs(self.bucket)],
            documents=self.bucket,
            provide={
                MediaSources: MediaSources(FetchLimits(hosts), folder, youtube_api),
                Transcribers: OneTranscriber(transcriber) if transcriber else AppTranscribers(),
            },
        )

    def process(self, *messages: Message, until: str = "jobs/Completed/") -> Harness:
        """Publish messages, and wait until there is an object of that prefix and all is told."""

        async def story() -> None:
            await self.bus.open()
            deliveries = self.bus.subscribe(EVENT_TOPIC, "test")
            await deliveries.begun()
            reading = asyncio.create_task(self._read(deliveries))
            async with self.app as app:
                for stage in self.stages:
                    await app.receive(stage)
                for message in messages:
                    await self.bus.publish(WORK, message)
                await self.until_there(until)
                await self._until_told(app)
                self.runs = await app.store.runs(RunFilter())
                self.letters = await app.store.dead_letters()
            reading.cancel()

        asyncio.run(story())
        return self

    async def _read(self, deliveries: Any) -> None:
        async for delivery in deliveries:
            self.events.append(delivery.message)
            await delivery.ack()

    async def _until_told(self, app: Holdfast) -> None:
        from holdfast.engine import cursors

        last = (await app.store.outbox(0, limit=10_000))[-1].position
        for _ in range(MAX_LOOKS):
            registered = await cursors.registered(app.runtime.records)
            if all(cursor.position >= last for cursor in registered):
                return
            await asyncio.sleep(INTERVAL)
        raise AssertionError("not everything was told in time")

    async def until_there(self, prefix: str) -> None:
        for _ in range(MAX_LOOKS):
            if any(name.startswith(prefix) for name in self.objects):
                return
            await asyncio.sleep(INTERVAL)
        raise AssertionError(f"there is no {prefix}: {sorted(self.objects)}")

    @property
    def objects(self) -> dict[str, bytes]:
        """What others find in the bucket."""
        name = self.bucket.removeprefix("gs://").partition("?")[0]
        prefixes = ("jobs/", "transcripts/", "events/", "idempotency/")
        objects = shared_gcs().objects(name)
        return {key: stored.data for key, stored in objects.items() if key.startswith(prefixes)}

    def json(self, prefix: str) -> Any:
        [data] = [data for key, data in self.objects.items() if key.startswith(prefix)]
        return json.loads(data)

    def bodies(self, kind: str) -> list[dict[str, Any]]:
        unique = {m.id: m for m in self.events if m.attributes["event-type"] == kind}
        return [json.loads(message.body) for message in unique.values()]


def work(media: Path | str, id: str = "job_7", message: str = "m-1", **fields: Any) -> Message:
    source = {"url": media} if isinstance(media, str) else {"path": str(media)}
    body = {"id": id, "requestId": "req_1", "media": source, **fields}
    return Message(message, json.dumps(body).encode(), {})
