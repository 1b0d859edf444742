"""Waiting at the inbox: an idle worker is given the next run in the commit that accepts it.

A plain submit that comes alone is put into a stream (`lua/inbox.lua`), and the server hands it to
whoever waits there: worker and submitter hear of it after the same fsync, and nobody has to claim
it. To be given it is to have claimed it: the next script that the worker calls writes that down,
before anything the worker itself can write.

What can go wrong, and what happens:
  the answer is lost on its way    as with a claim: its lease ends, and another goes on
  a submit is repeated by its id   it may be given out again, under another epoch, whose writes are refused
  none of our pipelines            it is handed over at once
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from holdfast.adapters.redis.link import Link
from holdfast.adapters.redis.notebook import Notebook, owner
from holdfast.adapters.redis.wire import ReplyError, Wire, ask
from holdfast.model.commands import Claim, Claimed, Command, Reply, Settle, Submit

log = logging.getLogger("holdfast.redis")

GROUP = "idle"
PATIENCE = 0.25
"""How long one wait takes, in seconds: whoever stops has to wait for its end, or might be given a
run and not know."""
SOON = 0.005
"""Seconds after which a run that was given to us is taken in. Most write something by then, which
does it, too."""
FORGOTTEN = 3_600_000
"""Milliseconds after which a consumer is taken for that of a process that has died."""
SINCE = 1_767_225_600_000
"""2026 in milliseconds: see `lua/claiming.lua`."""

_unpack = msgspec.msgpack.Decoder(Submit).decode
_NAME = msgspec.msgpack.encode("Submit")
_ARRAY = bytes((0x90 | len(Submit.__struct_fields__),))


class StandBy:
    """The place of one process at the inbox. `call` applies commands by a script, which takes the
    inbox in."""

    def __init__(
        self,
        inbox: str,
        notebook: Notebook,
        call: Callable[[Link, Sequence[Command]], Awaitable[list[Reply]]],
    ) -> None:
        self.waits = False
        self._inbox = inbox
        self._notebook = notebook
        self._call = call
        self._consumer = ""
        self._taking_in: set[asyncio.Task[None]] = set()

    async def next(self, link: Link, claims: Sequence[Claim]) -> list[Claimed]:
        """The next run that is given to us, if one of the claims may have it."""
        entry = await self._wait(link, f"{claims[0].worker} {claims[0].ttl!r}")
        if entry is None:
            return []
        claimed, created = _as_claimed(*entry)
        suits = any(
            claimed.lane == claim.lane and claimed.pipeline in claim.pipelines for claim in claims
        )
        if suits:
            whose = owner(claimed.tenant, claimed.pipeline, claimed.lane)
            self._notebook.begin(
                claimed.run, claimed.epoch, whose, None, claimed.tenant, created, created
            )
        link.given += 1
        taking_in = asyncio.create_task(self._take_in(link, claimed, keep=suits))
        self._taking_in.add(taking_in)
        taking_in.add_done_callback(self._taking_in.discard)
        return [claimed] if suits else []

    def leave(self, link: Link) -> None:
        if self._consumer:
            link.tell("XGROUP", "DELCONSUMER", self._inbox, GROUP, self._consumer)

    async def _wait(self, link: Link, consumer: str) -> tuple[str, Submit] | None:
        """The id of an entry and what it says, if one comes."""
        wire = await link.waiting_wire()
        block = round(1000 * min(PATIENCE, link.address.timeout / 2))
        self.waits = True
        try:
            where = (
                "GROUP",
                GROUP,
                consumer,
                "COUNT",
                1,
                "BLOCK",
                block,
                "STREAMS",
                self._inbox,
                ">",
            )
            reply = await wire.send("XREADGROUP", *where)
        finally:
            self.waits = False
        if isinstance(reply, ReplyError):
            if not str(reply).startswith("NOGROUP") or not await self._found(wire):
                await asyncio.sleep(PATIENCE)  # there is no inbox yet, or we may not wait there
            return None
        if self._consumer != consumer:
            self._consumer = consumer
            await self._tidy(wire)
        return _entry(reply) if reply else None

    async def _found(self, wire: Wire) -> bool:
        """Make the group, if there is an inbox."""
        made = await wire.send("XGROUP", "CREATE", self._inbox, GROUP, "$")
        return not isinstance(made, ReplyError) or str(made).startswith("BUSYGROUP")

    async def _tidy(self, wire: Wire) -> None:
        """Forget consumers whose processes have died."""
        found = await wire.send("XINFO", "CONSUMERS", self._inbox, GROUP)
        for fields in found if isinstance(found, list) else ():
            consumer: dict[bytes, Any] = dict(zip(fields[::2], fields[1::2], strict=True))
            if not consumer[b"pending"] and consumer[b"idle"] > FORGOTTEN:
                await ask(wire, "XGROUP", "DELCONSUMER", self._inbox, GROUP, consumer[b"name"])

    async def _take_in(self, link: Link, claimed: Claimed, *, keep: bool) -> None:
        """Have it taken in, unless something else did, and given to others if we can't use it."""
        try:
            if not keep:
                await self._call(link, [Settle(claimed.run, claimed.epoch, "handover")])
            await asyncio.sleep(SOON)
            if link.given > link.taken_in:
                await self._call(link, [])
        except (OSError, ReplyError) as error:
            log.debug("run %s was given to us and could not be taken in: %s", claimed.run, error)


def _entry(reply: Any) -> tuple[str, Submit]:
    [[_, [[id, fields]]]] = reply
    return id.decode(), _unpack(_ARRAY + fields[1][len(_NAME) :])


def _as_claimed(id: str, run: Submit) -> tuple[Claimed, float]:
    """What an entry gives to whoever was waiting, and when it came."""
    ms, _, number = id.partition("-")
    epoch = (int(ms) - SINCE) * 1000 + min(int(number), 999)
    claimed = Claimed(
        run.id,
        run.tenant,
        run.pipeline,
        run.lane,
        epoch,
        1,
        run.max_attempts,
        run.input,
        "{}",
        resumed=False,
    )
    return claimed, int(ms) / 1000
