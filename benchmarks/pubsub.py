"""Messages per second from Pub/Sub: through our bus, and through a bare loop of pull and
acknowledge with the same client.

    python -m benchmarks.pubsub                   # on Google's emulator: about a minute
    python -m benchmarks.pubsub --messages 2000 --rounds 3

Each round publishes the messages first and measures how long it takes to acknowledge them all. The
ways take turns, and the figure is the median. `intake` is the whole way: each message is a durable
run in SQLite before it is acknowledged."""

from __future__ import annotations

import asyncio
import json
import logging
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

import click

from holdfast import Holdfast, Pipeline
from holdfast.adapters.pubsub.bus import PubSubBus
from holdfast.adapters.pubsub.client import Client
from holdfast.model.receive import Receive
from holdfast.ports.bus import Delivery
from holdfast.ports.store import RunFilter
from holdfast.testing.servers.emulators import PubSubEmulator

AT_ONCE = 100
"""Messages that are pulled at once, by every way."""
TOPIC, GROUP = "orders", "workers"

jobs = Pipeline("jobs", input=dict)


@jobs.step
async def work(request: dict) -> int:
    return request["number"]


async def prepare(bus: PubSubBus, count: int) -> None:
    """A subscription with so many messages of 1 KB each."""
    deliveries = bus.subscribe(TOPIC, GROUP)
    await deliveries.begun()
    await deliveries.aclose()
    publisher, path = bus.client.here().publisher, bus.address.topic(TOPIC)
    for start in range(0, count, 500):
        bodies = [
            json.dumps({"number": number, "text": "x" * 1000}).encode()
            for number in range(start, min(start + 500, count))
        ]
        messages = [{"data": body} for body in bodies]
        await bus.client.call(publisher.publish, topic=path, messages=messages)


async def bare(url: str, count: int) -> None:
    """What a user would write: one request after the other."""
    client = Client(PubSubBus(url).address)
    subscriber, path = client.here().subscriber, client.address.subscription(GROUP)
    while count > 0:
        pulled = await subscriber.pull(subscription=path, max_messages=AT_ONCE, timeout=10)
        ids = [received.ack_id for received in pulled.received_messages]
        if ids:
            await subscriber.acknowledge(subscription=path, ack_ids=ids)
        count -= len(ids)
    await client.close()


async def through_bus(url: str, count: int) -> None:
    """As a receiver uses it: a task for each delivery."""
    bus = PubSubBus(url)
    await bus.open()
    deliveries = bus.subscribe(TOPIC, GROUP, most=AT_ONCE)
    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            delivery: Delivery = await anext(deliveries)
            group.create_task(delivery.ack())
    await bus.close()


async def intake(url: str, count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = f"sqlite:///{Path(folder) / 'runs.db'}"
        async with Holdfast(store, [jobs], bus=url, worker=False) as app:
            await app.receive(Receive(TOPIC, "jobs", GROUP, max_messages=AT_ONCE))
            change = 0
            while (await app.store.count(RunFilter())).get("queued", 0) < count:
                change = await app.store.wait(change, 1.0)


WAYS: dict[str, Callable[[str, int], Awaitable[None]]] = {
    "bare pull and acknowledge": bare,
    "holdfast's bus": through_bus,
    "intake: durable runs in SQLite": intake,
}


async def measure(host: str, way: str, count: int, number: int) -> float:
    """Messages per second."""
    url = f"pubsub://bench-{number}-{list(WAYS).index(way)}?emulator={host}"
    bus = PubSubBus(url)
    await bus.open()
    await prepare(bus, count)
    await bus.close()
    began = time.perf_counter()
    await WAYS[way](url, count)
    return count / (time.perf_counter() - began)


@click.command()
@click.option("--messages", default=5000, show_default=True)
@click.option("--rounds", default=5, show_default=True)
def main(messages: int, rounds: int) -> None:
    logging.getLogger("holdfast").setLevel(logging.ERROR)
    emulator = PubSubEmulator()
    emulator.start()
    figures: dict[str, list[float]] = {way: [] for way in WAYS}
    try:
        for number in range(1000, 1000 + rounds):
            for way in WAYS:
                figures[way].append(asyncio.run(measure(emulator.host, way, messages, number)))
    finally:
        emulator.end()
    base = median(figures["bare pull and acknowledge"])
    print(f"{messages} messages of 1 KB, {AT_ONCE} at once, median of {rounds} rounds")
    for way, values in figures.items():
        rate = median(values)
        print(
            f"{way:<32} {rate:8,.0f}/s  ({min(values):,.0f} to {max(values):,.0f})"
            f"  {rate / base:5.2f} of the bare loop"
        )


if __name__ == "__main__":
    main()
