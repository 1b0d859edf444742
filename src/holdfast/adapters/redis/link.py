"""The connections of one event loop: made when they are needed, made again when they are lost."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import closing
from typing import Any

from holdfast.adapters.redis import server
from holdfast.adapters.redis.address import Address
from holdfast.adapters.redis.scripts import Script
from holdfast.adapters.redis.wire import Argument, ReplyError, Wire, ask, ask_all, connect

_MOVED = re.compile(r"^MOVED \d+ (?P<host>.*):(?P<port>\d+)$")


Greeting = Callable[["Link", Wire], Awaitable[None]]


async def _no_greeting(link: Link, wire: Wire) -> None:
    """Nothing to say."""


class Link:
    """Belongs to one event loop, and is closed with it."""

    def __init__(
        self,
        address: Address,
        scripts: Sequence[Script],
        greet: Greeting,
        *,
        ended: Callable[[Link], None],
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.address = address
        self._scripts = scripts
        self._greet = greet
        self._ended = ended
        self._wires: list[Wire | None] = [None] * address.pool
        self._connecting: list[asyncio.Task[Wire] | None] = [None] * address.pool
        self._next = 0
        self._end: AsyncGenerator[None, None] | None = None
        self._closed = False

    async def _until_the_loop_ends(self) -> AsyncGenerator[None, None]:
        """A loop that is shut down closes the generators begun in it: this is how we hear of it."""
        try:
            yield
        finally:
            self.close()

    def close(self) -> None:
        self._closed = True
        for wire in self._wires:
            if wire is not None:
                wire.close()
        self._ended(self)

    # --- talking ---

    async def command_wire(self) -> Wire:
        return await self._wire(0)

    async def read_wire(self) -> Wire:
        """One that no batch waits in front of, where there is one."""
        others = self.address.pool - 1
        self._next = self._next % others + 1 if others else 0
        return await self._wire(self._next)

    async def run(
        self,
        wire: Wire,
        script: Script,
        key: str,
        *arguments: Argument,
        notify: Sequence[Argument] | None = None,
    ) -> Any:
        """Call a script, and then perhaps a command that notifies others, whose answer does not
        matter. A script that the server has forgotten was not executed, so it is sent and called
        again."""
        call = ("EVALSHA", script.sha, 1, key, *arguments)
        commands = [call] if notify is None else [call, notify]
        reply = (await wire.send_all(commands))[0]
        if isinstance(reply, ReplyError) and str(reply).startswith("NOSCRIPT"):
            await ask(wire, "SCRIPT", "LOAD", script.text)
            reply = (await wire.send_all(commands))[0]
        if isinstance(reply, ReplyError):
            raise self.leave_if_moved(reply)
        return reply

    async def ask_all(self, wire: Wire, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        """Send commands that leave together; the first error is raised."""
        try:
            return await ask_all(wire, commands)
        except ReplyError as error:
            raise self.leave_if_moved(error) from error

    def leave_if_moved(self, error: ReplyError) -> ReplyError:
        """Give up all connections to a server that the store has left: a master that has become a
        replica refuses writes, but goes on answering reads, with what it knows."""
        if server.has_moved(error):
            for wire in self._wires:
                if wire is not None:
                    wire.close()
        return error

    # --- connecting ---

    async def _wire(self, index: int) -> Wire:
        wire = self._wires[index]
        if wire is not None and not wire.closed:
            return wire
        task = self._connecting[index]
        if task is None or task.done():
            task = self._connecting[index] = asyncio.create_task(self._connect(index))
        return await asyncio.shield(
            task
        )  # who gives up does not disturb those who wait for the same

    async def _connect(self, index: int) -> Wire:
        if self._end is None:
            self._end = self._until_the_loop_ends()
            await anext(self._end)
        wire = await find_master(self.address)
        try:
            await self._load_scripts(wire)
            await self._greet(self, wire)
            if self._closed:
                raise ConnectionError("it was closed meanwhile")
        except BaseException:
            wire.close()
            raise
        self._wires[index] = wire
        return wire

    async def _load_scripts(self, wire: Wire) -> None:
        """Only those that the server does not know: what is loaded goes to its log and its
        replicas, too."""
        known = await ask(wire, "SCRIPT", "EXISTS", *[script.sha for script in self._scripts])
        missing = [
            script.text
            for script, is_known in zip(self._scripts, known, strict=True)
            if not is_known
        ]
        await ask_all(wire, [("SCRIPT", "LOAD", text) for text in missing])


class Links:
    """The links of all event loops that use one store or bus."""

    def __init__(
        self, address: Address, scripts: Sequence[Script], greet: Greeting = _no_greeting
    ) -> None:
        self._address = address
        self._scripts = scripts
        self._greet = greet
        self._links: dict[asyncio.AbstractEventLoop, Link] = {}
        self._guard = threading.Lock()

    def here(self) -> Link:
        """The link of the running loop."""
        loop = asyncio.get_running_loop()
        with self._guard:
            link = self._links.get(loop)
            if link is None:
                link = self._links[loop] = Link(
                    self._address, self._scripts, self._greet, ended=self._forget
                )
            return link

    def close(self) -> None:
        with self._guard:
            links = list(self._links.values())
        for link in links:
            if link.loop is asyncio.get_running_loop():
                link.close()
            elif not link.loop.is_closed():
                link.loop.call_soon_threadsafe(link.close)

    def __len__(self) -> int:
        return len(self._links)

    def _forget(self, link: Link) -> None:
        with self._guard:
            if self._links.get(link.loop) is link:
                del self._links[link.loop]


def meta_key(address: Address) -> str:
    return f"{address.prefix}holdfast:meta"


async def find_master(address: Address, pushed: Callable[[Any], None] | None = None) -> Wire:
    """A connection to the first of the hosts that is a master and has our slot, if it is part of a
    cluster."""
    failure: Exception | None = None
    for host, port in address.hosts:
        try:
            wire = await _connect_to_master(address, host, port, pushed)
            try:
                moved = await _moved_to(wire, address, host)
            except BaseException:  # whoever gives up leaves no connection behind
                wire.close()
                raise
            if moved is None:
                return wire
            wire.close()
            return await _connect_to_master(address, *moved, pushed)
        except (OSError, ReplyError) as error:
            failure = error
    assert failure is not None
    raise failure


async def examine(address: Address) -> bool:
    """Look at the server before anything is written to it. Raises what `server.examine` raises, as
    our errors."""
    with server.explained(address, opening=True), closing(await find_master(address)) as wire:
        return await server.examine(wire, address)


async def _moved_to(wire: Wire, address: Address, host: str) -> tuple[str, int] | None:
    """The node of the cluster that has our keys, unless it is this one."""
    reply = await wire.send("HGET", meta_key(address), "schema")
    moved = _MOVED.match(str(reply)) if isinstance(reply, ReplyError) else None
    return (moved["host"] or host, int(moved["port"])) if moved else None


async def _connect_to_master(
    address: Address, host: str, port: int, pushed: Callable[[Any], None] | None
) -> Wire:
    wire = await connect(
        host, port, address.timeout, address.tls_context(), pushed, address.connect_timeout
    )
    try:
        if address.credentials:
            await ask(wire, "AUTH", *address.credentials)
        if address.database:
            await ask(wire, "SELECT", address.database)
        role = server.parse_info(await ask(wire, "INFO", "replication"))["role"]
        if role != "master":
            raise ConnectionError(f"{host}:{port} is a replica, not a master")
    except BaseException:
        wire.close()
        raise
    return wire
