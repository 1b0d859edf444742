"""The store on Redis or Valkey: a batch of native commands is one call of one script. What is rare
is decided here, on facts that are read before."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import astuple

from holdfast.adapters import decisions, isolation
from holdfast.adapters.arranging import Group
from holdfast.adapters.compatibility import FORMAT
from holdfast.adapters.decisions import LoadedFacts, Needs, Unit
from holdfast.adapters.notifier import Notifier, announced, announcement, wake_after
from holdfast.adapters.redis import address as addresses
from holdfast.adapters.redis import batch, changes, facts, lists, reads, server
from holdfast.adapters.redis.codec import Times, decode
from holdfast.adapters.redis.link import Link, Links, examine, meta_key
from holdfast.adapters.redis.listener import Listener
from holdfast.adapters.redis.scripts import scripts
from holdfast.adapters.redis.wire import Argument, ReplyError, Wire, ask
from holdfast.errors import StoreUnavailable
from holdfast.model.clock import Clock
from holdfast.model.commands import Command, Prune, R, Wake
from holdfast.model.ids import new_token
from holdfast.ports.mover import refuse_marked
from holdfast.ports.store import Features

PIECE = 1000
"""Commands of one call: a larger batch is several calls, so that others get their turn. Each is
atomic in itself."""


class RedisStore(reads.Reads):
    """A `Store` on a server. Time is the server's, unless a test brings its own clock."""

    features = Features("redis", durable=True, shared=True, batches_in_flight=3)

    def __init__(self, url: str, *, test_clock: Clock | None = None) -> None:
        self.address = addresses.parse(url)
        self._scripts = scripts("clock_of_test" if test_clock else "clock")
        self._test_clock = test_clock
        self._name = new_token()[:12]
        self._notifier = Notifier()
        self._listener = Listener(self.address, "notify", self._received)
        self._links = Links(self.address, astuple(self._scripts), self._greet)
        self._meta = meta_key(self.address)
        self._met = ""
        self._open = False

    # --- life ---

    async def open(self) -> None:
        if self._open:
            return
        durable = await examine(self.address)
        self._open = True
        try:
            await self._link().command_wire()
            await self._refuse_marked()
        except (OSError, ReplyError) as error:
            await self.close()
            raise server.explain(error, self.address, opening=True) from error
        except BaseException:
            await self.close()
            raise
        self.features = msgspec.structs.replace(self.features, durable=durable)

    async def close(self) -> None:
        self._open = False
        await self._listener.stop()
        self._links.close()

    async def _greet(self, link: Link, wire: Wire) -> None:
        """Let the store know which server it is on, before anything else is sent."""
        info = server.parse_info(await ask(wire, "INFO", "replication"))
        server_id, met = info["master_replid"], self._met
        ours = (server.SCHEMA, server.OLDEST_USABLE_SCHEMA, FORMAT)
        arguments = (self._meta, self.address.prefix, server_id, met, *ours)
        stored = await link.run(wire, self._scripts.greet, *arguments)
        server.refuse_other_schema(stored, self.address)
        self._met = server_id

    async def _refuse_marked(self) -> None:
        [text] = await self._ask([("HGET", "meta", "mark")])
        refuse_marked(reads.mark(text), str(self.address))

    def _link(self) -> Link:
        if not self._open:
            raise StoreUnavailable(f"the store {self.address} is closed")
        return self._links.here()

    def _received(self, message: bytes) -> None:
        """Somebody has changed something; what we do ourselves was notified already."""
        name, wake = announced(message.decode())
        if name != self._name:
            self._notifier.notify(wake)

    async def wait(self, since: int, timeout: float, *, wake: Wake = Wake.WAITERS) -> int:
        if self._open:
            self._listener.listen()  # only now: who never waits need not be told either
        return await self._notifier.wait(since, timeout, wake=wake)

    # --- commands ---

    async def apply(self, commands: Sequence[Command[R]]) -> list[R]:
        if len(commands) > PIECE:
            return await self._apply_pieces(commands)
        return await isolation.apply(commands, self._apply)

    async def _apply(self, commands: Sequence[Command[Any]]) -> list[Any]:
        replies = await decisions.apply(self, commands, batch.kind_of)
        self._notifier.notify(wake_after(commands, replies))
        return replies

    async def _apply_pieces(self, commands: Sequence[Command[Any]]) -> list[Any]:
        pieces = [commands[start : start + PIECE] for start in range(0, len(commands), PIECE)]
        replies = await asyncio.gather(*[self.apply(piece) for piece in pieces])
        return [reply for some in replies for reply in some]

    async def apply_native(self, groups: Sequence[Group[str]]) -> list[Any]:
        commands = [command for group in groups for command in group.commands]
        wake = max(command.wake for command in commands)
        return batch.replies(commands, await self._call(batch.encode(commands), wake))

    async def _call(
        self, encoded: Sequence[bytes], wake: Wake, *, force: bool = False
    ) -> list[Any]:
        """The answers of a batch. `force` for a mover, which also writes to a store that is
        held."""
        link = self._link()
        arguments = (self.address.prefix, int(force), *encoded, *self._time())
        with server.explained(self.address):
            wire = await link.command_wire()
            answer = await link.run(
                wire, self._scripts.batch, self._meta, *arguments, notify=self._notification(wake)
            )
            try:
                return batch.answers(answer)
            except ReplyError as error:
                raise link.leave_if_moved(error) from error

    def _notification(self, wake: Wake) -> Sequence[Argument] | None:
        """What wakes other processes. Behind the script rather than in it: the server writes first
        to those whose answer was made last, and a worker has more to do than who has submitted."""
        if not wake:
            return None
        return ("PUBLISH", self._key("notify"), announcement(self._name, wake))

    def _time(self) -> tuple[Argument, ...]:
        clock = self._test_clock
        return (repr(clock.now()), repr(clock.monotonic())) if clock else ()

    # --- decisions made here ---

    async def load(self, needs: Needs) -> LoadedFacts:
        return await facts.load(self._ask, self._times, needs)

    async def commit(
        self, loaded: LoadedFacts, units: Sequence[Unit], wake: Wake
    ) -> Sequence[bool]:
        encoded = [changes.encode(unit, loaded) for unit in units]
        return batch.raise_failures(await self._call(encoded, wake))

    async def ended_leases(self, limit: int) -> Sequence[str]:
        return await lists.ended_leases(self._ask, limit, (await self._times()).mono)

    async def expired(self, prune: Prune) -> Sequence[str]:
        return await lists.expired(self._ask, prune, (await self._times()).wall)

    # --- talking to the server ---

    async def _ask(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        link = self._link()
        with server.explained(self.address):
            return await link.ask_all(await link.read_wire(), self._keyed(commands))

    def _keyed(self, commands: Sequence[Sequence[Argument]]) -> list[Sequence[Argument]]:
        return [(name, self._key(str(key)), *rest) for name, key, *rest in commands]

    def _key(self, name: str) -> str:
        return f"{self.address.prefix}holdfast:{name}"

    async def _times(self) -> Times:
        link = self._link()
        arguments = (self._meta, self.address.prefix, *self._time())
        with server.explained(self.address):
            answer = await link.run(await link.read_wire(), self._scripts.now, *arguments)
        return Times(*map(float, decode(answer)))
