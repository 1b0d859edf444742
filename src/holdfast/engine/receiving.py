"""All that one process receives from its bus."""

from __future__ import annotations

import asyncio
import math
from typing import Any

from holdfast.engine.receiver import Receiver
from holdfast.engine.runtime import Runtime
from holdfast.engine.supervision import end
from holdfast.engine.unmatched import Unmatched, keep_registered, register
from holdfast.model.pipeline import Pipeline
from holdfast.model.receive import Receive
from holdfast.ports.bus import Bus


class Receiving:
    """Starts receivers, and for topics with filters what looks after the rest; stops them all
    before a worker hands over its runs."""

    def __init__(self, runtime: Runtime, bus: Bus) -> None:
        self._runtime = runtime
        self._bus = bus
        self._tasks: list[asyncio.Task[Any]] = []
        self._unmatched: set[str] = set()
        self._receivers: list[Receiver] = []

    @property
    def quiet_for(self) -> float:
        """Seconds since a message arrived; endless if nothing is received."""
        now = asyncio.get_running_loop().time()
        return now - max((receiver.heard for receiver in self._receivers), default=-math.inf)

    async def start(self, receive: Receive, pipeline: Pipeline[Any], tenant: str) -> None:
        """What is published after this has returned is received."""
        receive.check()
        receiver = Receiver(self._runtime, self._bus, receive, pipeline, tenant=tenant)
        self._receivers.append(receiver)
        await self.know(receive)
        await self._start(f"the receiver of {receive.topic}", receiver)
        if receive.filter and receive.unmatched == "bury" and receive.topic not in self._unmatched:
            self._unmatched.add(receive.topic)
            unmatched = Unmatched(self._runtime, self._bus, receive.topic, receive.tenant or tenant)
            await self._start(f"what nobody wants of {receive.topic}", unmatched)

    async def know(self, receive: Receive) -> None:
        """Of what is received here or elsewhere, for as long as this receives."""
        await register(self._runtime, receive)
        keep = self._runtime.supervisor.start(
            f"the registration of {receive.topic}", lambda: keep_registered(self._runtime, receive)
        )
        self._tasks.append(keep)

    async def _start(self, name: str, receiver: Receiver | Unmatched) -> None:
        subscribed = iter([await receiver.subscribe()])  # begun again, it subscribes by itself
        self._tasks.append(
            self._runtime.supervisor.start(name, lambda: receiver.run(next(subscribed, None)))
        )

    async def stop(self) -> None:
        await end(self._tasks)
        self._tasks.clear()
        self._receivers.clear()
        self._unmatched.clear()
