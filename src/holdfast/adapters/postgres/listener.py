"""Hearing other processes: notifications on a connection of their own, or polling where they can't
arrive.

A pooler in transaction mode takes LISTEN and never delivers anything, so the listener notifies
itself once before it believes that notifications arrive. `listen=host:port` in the URL leads past a pooler;
`listen=off` polls from the start. What is polled is one number, the last position of the outbox:
whatever gives others something to do takes one."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

import psycopg

from holdfast.adapters.postgres.address import Address
from holdfast.adapters.postgres.client import Client
from holdfast.adapters.postgres.connection import Connection, ServerError
from holdfast.adapters.postgres.notifications import WAITERS
from holdfast.errors import StoreUnavailable
from holdfast.model.commands import Wake

log = logging.getLogger("holdfast.postgres")

POLL = 0.05
"""How often to look where notifications do not arrive, in seconds."""
RETRY = 1.0
"""How long to poll before trying to listen again, in seconds."""
DEAF = 60.0
"""The most that this grows to while notifications are found not to arrive."""
PROBE = 5.0
"""How long to wait for our own probe."""


class Notify(Protocol):
    def __call__(self, wake: Wake = Wake.WORKERS) -> None: ...


class Listener:
    """Runs on the loop of the store's thread. `notify` is called whenever another process may have done
    something."""

    def __init__(self, address: Address, client: Client, own_name: str, notify: Notify) -> None:
        self._address = address
        self._client = client
        self._own_name = own_name.encode()
        self._probe = f"{own_name}?".encode()
        self._notify = notify
        self._newest = b""
        self.hears = False
        """Whether notifications arrive."""
        self._said_why = ""

    async def run(self) -> None:
        pause = RETRY
        while True:
            try:
                if self._address.listen != "":
                    await self._listen()
                pause = RETRY
            except (psycopg.Error, OSError, TimeoutError, StoreUnavailable, ServerError) as error:
                self._say(
                    f"can't listen for wake-ups at {self._address.shown}, polling instead: {error}"
                )
                pause = RETRY
            except NotHeard:
                self._say(
                    f"{self._address.shown} delivers no notifications, polling every "
                    f"{POLL * 1000:.0f} ms instead. "
                    "Behind a pooler in transaction mode, add listen=host:port of the server "
                    "itself to the URL"
                )
                pause = min(2 * pause, DEAF)
            self.hears = False
            await self._poll(pause)

    def _say(self, why: str) -> None:
        """Once per reason."""
        if why != self._said_why:
            log.warning("%s", why)
            self._said_why = why

    # --- notifications ----------------------------------------------------------------------------

    async def _listen(self) -> None:
        """Listen until the connection is lost."""
        lost, probed = asyncio.Event(), asyncio.Event()

        def heard(payload: bytes) -> None:
            if payload == self._probe:
                probed.set()
                return
            who, _, what = payload.partition(b" ")
            if who != self._own_name and not who.endswith(b"?"):  # which is another one's probe
                self._notify(Wake.WAITERS if what == WAITERS.encode() else Wake.WORKERS)

        channel = (await self._client.read("channel")).decode()
        connection = await Connection.make(
            self._address, lambda _: None, lambda _: lost.set(), self._address.listen
        )
        try:
            connection.on_notice = heard
            await connection.call(f'LISTEN "{channel}"'.encode())
            await self._try(probed)
            self.hears, self._said_why = True, ""
            self._notify()  # something may have happened before we heard
            await lost.wait()
            self._notify()
        finally:
            connection.close()

    async def _try(self, probed: asyncio.Event) -> None:
        await self._client.read("notify", self._probe)
        try:
            async with asyncio.timeout(PROBE):
                await probed.wait()
        except TimeoutError:
            raise NotHeard from None

    # --- polling ----------------------------------------------------------------------------------

    async def _poll(self, duration: float) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + duration
        while loop.time() < end:
            await asyncio.sleep(POLL)
            try:
                newest = await self._client.read("newest")
            except (StoreUnavailable, ServerError):
                await asyncio.sleep(RETRY)
                return
            if newest != self._newest:
                self._newest = newest
                self._notify()


class NotHeard(Exception):
    """Our own notification did not arrive."""
