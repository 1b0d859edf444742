"""What one event loop asks the server: batches and reads, over its own connections."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from holdfast.adapters import decisions
from holdfast.adapters.arranging import Group
from holdfast.adapters.decisions import LoadedFacts, Needs, Unit
from holdfast.adapters.notifier import announcement
from holdfast.adapters.postgres import batch, changes, facts
from holdfast.adapters.postgres.address import Address
from holdfast.adapters.postgres.connection import Parameters, ServerError
from holdfast.adapters.postgres.database import ServerInfo, explain
from holdfast.adapters.postgres.notifications import Throttle
from holdfast.adapters.postgres.pool import UNIQUE_VIOLATION
from holdfast.adapters.postgres.text import parameter
from holdfast.model.clock import Clock
from holdfast.model.commands import Command, Prune, R, Wake

TRIES = 5
"""How often a batch is sent that the server took back because others were at the same rows."""

_ids = msgspec.json.Decoder(list[str]).decode


class StatementRunner(Protocol):
    async def call(self, sql: bytes, parameters: Parameters = ()) -> bytes:
        """Execute one statement, which answers one value, in a transaction."""
        ...

    async def close(self) -> None: ...


class Client:
    """Belongs to the event loop that it is first used in. `name` is what its notifications carry.

    With a `clock` that is not None the present is what that clock says, else what the server's
    does."""

    def __init__(
        self,
        address: Address,
        pool: StatementRunner,
        statements: dict[str, bytes],
        server: ServerInfo,
        name: str,
        clock: Clock | None,
    ) -> None:
        self._address = address
        self._pool = pool
        self._statements = statements
        self._clock = clock
        self._throttles = {
            wake: Throttle(announcement(name, wake), self.notify)
            for wake in (Wake.WAITERS, Wake.WORKERS)
        }
        self._to_holders = announcement(name, Wake.HOLDERS)
        self._common: dict[str, Any] = {"wait": str(round(address.timeout * 800))}
        if server.must_ask_for_sync:
            self._common["sync"] = True

    async def close(self) -> None:
        for throttle in self._throttles.values():
            throttle.stop()
        await self._pool.close()

    # --- commands ---------------------------------------------------------------------------------

    async def apply(self, commands: Sequence[Command[R]]) -> list[R]:
        return await decisions.apply(self, commands, batch.kind_of)

    async def apply_native(self, groups: Sequence[Group[str]]) -> list[Any]:
        commands = [command for group in groups for command in group.commands]
        wake = max(command.wake for command in commands)
        try:
            answer = await self._call(batch.envelope(groups), wake)
        except ServerError as error:
            if error.sqlstate != UNIQUE_VIOLATION:
                raise
            # A checkpoint is there already, as after a lost answer: rare enough to decide it here.
            return await decisions.apply(self, commands, batch.kind_without_repeats)
        replies: list[Any] = []
        for group, raw in zip(groups, batch.unpack(answer), strict=True):
            replies += batch.replies(group, raw)
        return replies

    async def _call(self, envelope: dict[str, Any], wake: Wake) -> bytes:
        """One batch. It is sent again if the server took it back for somebody else's sake."""
        envelope |= self._common
        if self._clock is not None:
            envelope |= {"wall": self._clock.now(), "mono": self._clock.monotonic()}
        if message := self._message(wake):
            envelope["notify"] = message
        arguments = [batch.sealed(envelope)]
        tries = 0
        while True:
            try:
                return await self._pool.call(self._statements["apply"], arguments)
            except ServerError as error:
                tries += 1
                if error.sqlstate == UNIQUE_VIOLATION:
                    raise
                if tries == TRIES:
                    raise explain(error, self._address.shown) from None
            await asyncio.sleep(random.uniform(0, 0.005) * 2**tries)

    def _message(self, wake: Wake) -> str | None:
        """What the batch says to other processes. Holders are never kept waiting: what takes a
        lease away is rare."""
        if wake is Wake.HOLDERS:
            return self._to_holders
        return None if wake is Wake.NOBODY else self._throttles[wake].next()

    # --- decisions made here ----------------------------------------------------------------------

    async def load(self, needs: Needs) -> LoadedFacts:
        answer = await self.read("facts", self.mono(), facts.question(needs))
        return facts.loaded(answer, self.wall())

    async def commit(
        self, loaded: LoadedFacts, units: Sequence[Unit], wake: Wake
    ) -> Sequence[bool]:
        try:
            answer = await self._call(changes.envelope(loaded, units), wake)
        except ServerError as error:
            if error.sqlstate != UNIQUE_VIOLATION:
                raise
            if len(units) == 1:
                return [False]
            # One of them came too late, and the server does not say which.
            return [(await self.commit(loaded, [unit], wake))[0] for unit in units]
        [written] = batch.unpack(answer)
        return msgspec.json.decode(written, type=list[bool])

    async def ended_leases(self, limit: int) -> Sequence[str]:
        return _ids(await self.read("ended_leases", self.mono(), limit))

    async def expired(self, prune: Prune) -> Sequence[str]:
        sent = -1 if prune.sent is None else prune.sent
        limits = (prune.keep, prune.keep_failed, sent, prune.limit)
        return _ids(await self.read("expired", self.wall(), *limits))

    # --- reads ------------------------------------------------------------------------------------

    async def read(self, name: str, *values: Any) -> bytes:
        return await self._pool.call(self._statements[name], [parameter(value) for value in values])

    async def notify(self, message: str) -> None:
        await self.read("notify", message)

    def wall(self) -> float | None:
        """The present of the clock that a test moves, for people; None for the server's own."""
        return None if self._clock is None else self._clock.now()

    def mono(self) -> float | None:
        """The same, for leases and delays."""
        return None if self._clock is None else self._clock.monotonic()
