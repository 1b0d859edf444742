"""Waiting at the inbox: an idle worker is given the next run in the commit that accepts it.

A plain submit that comes alone is put into a stream (`lua/inbox.lua`), and the server hands it to whoever waits there:
worker and submitter hear of it after the same fsync, and nobody has to claim it. To be given it is to have claimed it:
the next script that the worker calls writes that down, before anything the worker itself can write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.adapters.redis.link import Link
from holdfast.adapters.redis.wire import ReplyError, Wire, ask
from holdfast.ports.commands import Claim, Claimed, Submit

GROUP = "idle"
PATIENCE = 0.25
"""How long one wait takes, in seconds: whoever stops has to wait for its end, or might be given a run and not know."""
FORGOTTEN = 3_600_000
"""Milliseconds after which a consumer is taken for that of a process that has died."""
SINCE = 1_767_225_600_000
"""2026 in milliseconds: see `lua/claiming.lua`."""

_unpack = msgspec.msgpack.Decoder(Submit).decode
_NAME = msgspec.msgpack.encode("Submit")
_ARRAY = bytes((0x90 | len(Submit.__struct_fields__),))


class StandBy:
    """The place of one process at the inbox."""

    def __init__(self, inbox: str) -> None:
        self._inbox = inbox
        self._consumer = ""
        self.waits = False

    async def wait(self, link: Link, claims: Sequence[Claim]) -> tuple[str, Submit] | None:
        """The id of an entry and what it says, if one comes."""
        consumer = f"{claims[0].worker} {claims[0].ttl!r}"
        wire = await link.waiting_wire()
        block = round(1000 * min(PATIENCE, link.address.timeout / 2))
        where = ("GROUP", GROUP, consumer, "COUNT", 1, "BLOCK", block, "STREAMS", self._inbox, ">")
        self.waits = True
        try:
            reply = await wire.send("XREADGROUP", *where)
        finally:
            self.waits = False
        if not isinstance(reply, ReplyError):
            if self._consumer != consumer:
                self._consumer = consumer
                await self._tidy(wire)
            return _entry(reply) if reply else None
        if not str(reply).startswith("NOGROUP") or not await self._found(link):
            await asyncio.sleep(PATIENCE)  # there is no inbox yet, or we may not wait there
        return None

    def leave(self, link: Link) -> None:
        if self._consumer:
            link.tell("XGROUP", "DELCONSUMER", self._inbox, GROUP, self._consumer)

    async def _found(self, link: Link) -> bool:
        """Make the group, if there is an inbox."""
        wire = await link.waiting_wire()
        made = await wire.send("XGROUP", "CREATE", self._inbox, GROUP, "$")
        return not isinstance(made, ReplyError) or str(made).startswith("BUSYGROUP")

    async def _tidy(self, wire: Wire) -> None:
        """Forget consumers whose processes have died."""
        found = await wire.send("XINFO", "CONSUMERS", self._inbox, GROUP)
        for fields in found if isinstance(found, list) else ():
            consumer: dict[bytes, Any] = dict(zip(fields[::2], fields[1::2], strict=True))
            if not consumer[b"pending"] and consumer[b"idle"] > FORGOTTEN:
                await ask(wire, "XGROUP", "DELCONSUMER", self._inbox, GROUP, consumer[b"name"])


def _entry(reply: Any) -> tuple[str, Submit]:
    [[_, [[id, fields]]]] = reply
    return id.decode(), _unpack(_ARRAY + fields[1][len(_NAME) :])


def as_claimed(id: str, run: Submit) -> tuple[Claimed, float]:
    """What an entry gives to whoever was waiting, and when it came."""
    ms, _, number = id.partition("-")
    epoch = (int(ms) - SINCE) * 1000 + min(int(number), 999)
    claimed = Claimed(
        run.id, run.tenant, run.pipeline, run.lane, epoch, 1, run.max_attempts, run.input, "{}", resumed=False
    )
    return claimed, int(ms) / 1000
