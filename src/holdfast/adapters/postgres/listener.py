"""Hearing other processes: notifications on a connection of their own, or polling where they can't
arrive.

A pooler in transaction mode takes LISTEN and never delivers anything, so the listener notifies
itself once before it believes that notifications arrive. `listen=host:port` in the URL leads past a
pooler; `listen=off` polls from the start. What is polled are two numbers: the last position of the
outbox, because whatever gives others something to do takes one, and of the audit, because whoever
takes a lease away leaves an entry there."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

import psycopg

from holdfast.adapters.notifier import announced
from holdfast.adapters.postgres.address import Address
from holdfast.adapters.postgres.client import Client
from holdfast.adapters.postgres.connection import Connection, ServerError
from holdfast.errors import StoreUnavailable
from holdfast.model.commands import Wake

log = logging.getLogger("holdfast.postgres")

POLL = 0.05
"""How often to look where notifications do not arrive, in seconds."""
RETRY = 1.0
"""How long to poll before trying to listen again, in seconds."""
MAX_RETRY = 60.0
"""The most that this grows to while notifications are found not to arrive."""
PROBE = 5.0
"""How long to wait for our own probe."""


class Notify(Protocol):
    def __call__(self, wake: Wake = Wake.HOLDERS) -> None: ...


class Listener:
    """Runs on the loop of the store's thread. `notify` is called whenever another process may have
    done something."""

    def __init__(self, address: Address, client: Client, own_name: str, notify: Notify) -> None:
        self._address = address
        self._client = client
        self._own_name = own_name
        self._probe = f"{own_name}?".encode()
        self._notify = notify
        self._newest: tuple[bytes, bytes] = (b"", b"")
        self.is_listening = False
        """Whether notifications arrive."""
        self._last_warning = ""

    async def run(self) -> None:
        pause = RETRY
        while True:
            try:
                if self._address.listen != "":
                    await self._listen()
                pause = RETRY
            except (psycopg.Error, OSError, TimeoutError, StoreUnavailable, ServerError) as error:
                self._warn_once(
                    f"can't listen for wake-ups at {self._address.shown}, polling instead: {error}"
                )
                pause = RETRY
            except NotDelivered:
                self._warn_once(
                    f"{self._address.shown} delivers no notifications, polling every "
                    f"{POLL * 1000:.0f} ms instead. "
                    "Behind a pooler in transaction mode, add listen=host:port of the server "
                    "itself to the URL"
                )
                pause = min(2 * pause, MAX_RETRY)
            self.is_listening = False
            await self._poll(pause)

    def _warn_once(self, reason: str) -> None:
        """Once per reason."""
        if reason != self._last_warning:
            log.warning("%s", reason)
            self._last_warning = reason

    # --- notifications ----------------------------------------------------------------------------

    async def _listen(self) -> None:
        """Listen until the connection is lost."""
        lost, probed = asyncio.Event(), asyncio.Event()

        def received(payload: bytes) -> None:
            if payload == self._probe:
                probed.set()
                return
            sender, wake = announced(payload.decode())
            if sender != self._own_name and not sender.endswith("?"):  # no probe
                self._notify(wake)

        channel = (await self._client.read("channel")).decode()
        connection = await Connection.make(
            self._address, lambda _: None, lambda _: lost.set(), self._address.listen
        )
        try:
            connection.on_notice = received
            await connection.call(f'LISTEN "{channel}"'.encode())
            await self._try(probed)
            self.is_listening, self._last_warning = True, ""
            self._notify()  # something may have happened before we listened
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
            raise NotDelivered from None

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
            self._compare(newest)

    def _compare(self, answer: bytes) -> None:
        event, _, audit = answer.partition(b" ")
        known, self._newest = self._newest, (event, audit)
        if audit != known[1]:
            self._notify(Wake.HOLDERS)
        elif event != known[0]:
            self._notify(Wake.WORKERS)


class NotDelivered(Exception):
    """Our own notification did not arrive."""
