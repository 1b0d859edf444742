"""What one event loop asks the server: batches and reads, over its own connections."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from holdfast.adapters.postgres.address import Address
from holdfast.adapters.postgres.batch import Batch, Lone
from holdfast.adapters.postgres.connection import ServerError
from holdfast.adapters.postgres.database import Server, explain
from holdfast.adapters.postgres.pool import Pool
from holdfast.adapters.postgres.text import parameter
from holdfast.errors import StoreUnavailable
from holdfast.model.clock import Clock
from holdfast.model.commands import Reply

TRIES = 5
"""How often a batch is sent that the server took back because others were at the same rows."""

QUIET = 0.02
"""A client wakes others at most so often, in seconds: a notification makes commits wait for one
another."""

NEWS = "news"
"""What is said behind a client's name if runs have succeeded and that is all: workers need not look
for more."""


class Client:
    """Belongs to the event loop that it is first used in. `name` is what its notifications carry.

    With a `clock` that is not None the present is what that clock says, else what the server's
    does."""

    def __init__(
        self,
        address: Address,
        size: int,
        statements: dict[str, bytes],
        server: Server,
        name: str,
        clock: Clock | None,
    ) -> None:
        self._address = address
        self._statements = statements
        self._clock = clock
        self._work, self._news = Ringer(self, name), Ringer(self, f"{name} {NEWS}")
        self.pool = Pool(address, size, prepares=server.is_direct)
        self._envelope: dict[str, Any] = {"wait": str(round(address.timeout * 800))}
        if server.must_ask_for_sync:
            self._envelope["sync"] = True

    async def apply(self, batch: Batch | Lone) -> list[Reply]:
        envelope = dict(self._envelope)
        if self._clock is not None:
            envelope |= {"wall": self._clock.now(), "mono": self._clock.monotonic()}
        if batch.loud:
            ringer = self._news if batch.only_news else self._work
            if ring := ringer.ring(sure=batch.sure):
                envelope["ring"] = ring
        statement, parameters = batch.call(envelope, prepared=self.pool.prepares)
        tries = 0
        while True:
            try:
                return batch.replies(
                    await self.pool.call(self._statements[statement], parameters, prepare=True)
                )
            except (
                ServerError
            ) as error:  # somebody else was in the way, and certainly nothing was written
                tries += 1
                if tries == TRIES:
                    raise explain(error, self._address.shown) from None
            await asyncio.sleep(random.uniform(0, 0.005) * 2**tries)

    async def read(self, name: str, *values: Any) -> bytes:
        return await self.pool.call(self._statements[name], [parameter(value) for value in values])

    async def close(self) -> None:
        for ringer in (self._work, self._news):
            ringer.stop()
        await self.pool.close()

    def present(self) -> float | None:
        """The present of the clock that a test moves; None for the server's own."""
        return None if self._clock is None else self._clock.monotonic()


class Ringer:
    """Decides which batches wake other processes with a message: the first, and then one per
    `QUIET` seconds.

    What no batch has said after twice that time is said on its own.
    """

    def __init__(self, client: Client, message: str) -> None:
        self._client = client
        self._message = message
        self._rang = 0.0
        self._later: asyncio.TimerHandle | None = None
        self._saying: asyncio.Task[None] | None = None

    def ring(self, *, sure: bool) -> str | None:
        """What to say if the batch that leaves now is to ring; one that is not sure to do so rings
        for itself alone."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        if now - self._rang >= QUIET:
            if sure:
                self._rang = now
                if self._later is not None:
                    self._later.cancel()
                    self._later = None
            return self._message
        if self._later is None:
            self._later = loop.call_at(self._rang + 2 * QUIET, self._say)
        return None

    def _say(self) -> None:
        self._later = None
        self._rang = asyncio.get_running_loop().time()
        self._saying = asyncio.create_task(self._notify())

    async def _notify(self) -> None:
        try:
            await self._client.read("ring", self._message)
        except (StoreUnavailable, ServerError):
            pass  # the others will look by themselves

    def stop(self) -> None:
        if self._later is not None:
            self._later.cancel()
