"""The store on Redis or Valkey: every batch is one call of one script."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, TypeGuard

import msgspec
from msgspec.structs import astuple

from holdfast.adapters.notifier import Notifier, wake_after
from holdfast.adapters.redis import address as addresses
from holdfast.adapters.redis import batch, reads, server
from holdfast.adapters.redis.bell import Bell
from holdfast.adapters.redis.link import Link, Links, examine, meta_key
from holdfast.adapters.redis.notebook import MOST, Notebook
from holdfast.adapters.redis.scripts import Script, scripts
from holdfast.adapters.redis.standby import SOON, StandBy
from holdfast.adapters.redis.wire import Argument, ReplyError, Wire, ask
from holdfast.errors import StoreUnavailable
from holdfast.model import commands as c
from holdfast.model.checkpoint import Checkpoint
from holdfast.model.clock import Clock
from holdfast.model.event import Event
from holdfast.model.ids import new_token
from holdfast.model.lease import LockInfo
from holdfast.model.run import Run
from holdfast.ports.mover import refuse_marked
from holdfast.ports.store import Audit, DeadLetter, Features, LaneInfo, RunFilter, StoredLog

CLAIMS = frozenset((c.Submit, c.Claim))
SAVES = frozenset((c.SaveCheckpoint, c.SaveProgress, c.LogLine, c.Settle))
WORK = CLAIMS | SAVES
LOCKS = frozenset((c.Acquire, c.ReleaseLock, c.RenewLocks))


def is_plain(command: c.Command) -> TypeGuard[c.Submit]:
    """Whether it is a submit that can only be answered in one way, whatever the store contains."""
    if type(command) is not c.Submit:
        return False
    return not (command.key or command.unique or command.delay or command.checkpoints)


def is_routine(command: c.Command) -> bool:
    """Whether it is anything but the end of an attempt that did not succeed."""
    return type(command) is not c.Settle or command.outcome == "succeeded"


PIECE = 1000
"""Commands of one call: a larger batch is several calls, so that others get their turn. Each is
atomic in itself."""


DROPPED, NEWS = "inbox", "news"
"""What the bell says when something was put there, and when runs have succeeded and that is all."""


FULL = 500
"""Entries of the inbox: whoever finds more has them taken in. The server is never busy with it for
long."""


class RedisStore:
    """A `Store` on a server. Time is the server's, unless a test brings its own clock."""

    features = Features("redis", durable=True, shared=True, batches_in_flight=3)

    def __init__(self, url: str, *, test_clock: Clock | None = None) -> None:
        self.address = addresses.parse(url)
        self._scripts = scripts("clock_of_test" if test_clock else "clock")
        self._test_clock = test_clock
        self._me = new_token()[:12]
        self._documents = int(self.address.documents)
        self._notebook = Notebook(MOST if self._documents else 0)
        self._notifier = Notifier()
        self._bell = Bell(self.address, "bell", self._heard)
        self._links = Links(self.address, astuple(self._scripts), self._greet)
        self._meta = meta_key(self.address)
        self._inbox = self._key("inbox")
        self._standby = StandBy(self._inbox, self._notebook, self._call)
        self._channel = self._key("bell")
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
        if self._open:
            self._standby.leave(self._link())
        self._open = False
        await self._bell.stop()
        self._links.close()

    async def _greet(self, link: Link, wire: Wire) -> None:
        """Let the store know which server it is on, before anything else is sent."""
        found = server.parse_info(await ask(wire, "INFO", "replication"))
        here, met = found["master_replid"], self._met
        asked = (self.address.prefix, here, met, server.SCHEMA, server.OLDEST_USABLE_SCHEMA)
        stored = await link.run(wire, self._scripts.adopt, self._meta, *asked)
        server.refuse_newer_schema(stored, self.address)
        self._met = here

    async def _refuse_marked(self) -> None:
        refuse_marked(reads.mark(await self._ask("HGET", self._meta, "mark")), str(self.address))

    def _link(self) -> Link:
        if not self._open:
            raise StoreUnavailable(f"the store {self.address} is closed")
        return self._links.here()

    def _heard(self, said: bytes) -> None:
        """Somebody has changed something; what we do ourselves has rung already."""
        who, _, what = said.decode().partition(" ")
        if who != self._me:
            wake = c.Wake.WAITERS if what == NEWS else c.Wake.WORKERS
            self._ring(wake, dropped=what == DROPPED)

    def _ring(self, wake: c.Wake, *, dropped: bool = False) -> None:
        """What was put into the inbox while we waited there has been given to somebody, perhaps to
        us: looking for it would only be in its way."""
        if dropped and self._standby.waits:
            asyncio.get_running_loop().call_later(SOON, self._notifier.notify)
        else:
            self._notifier.notify(wake)

    # --- commands ---

    async def apply(self, commands: Sequence[c.Command]) -> list[c.Reply]:
        if len(commands) > PIECE:
            return await self._apply_pieces(commands)
        if not commands:
            return []
        link = self._link()
        try:
            dropped = (
                await self._drop(link, commands[0])
                if len(commands) == 1 and is_plain(commands[0])
                else None
            )
            replies = await self._call(link, commands) if dropped is None else dropped
        except (OSError, ReplyError) as error:
            raise server.explain(error, self.address) from error
        self._ring(wake_after(commands, replies), dropped=dropped is not None)
        return replies

    async def _call(self, link: Link, commands: Sequence[c.Command]) -> list[c.Reply]:
        encoded = batch.encode(commands, self._notebook)
        arguments = (
            self.address.prefix,
            self._me,
            self._documents,
            len(commands),
            *encoded,
            *self._time(),
        )
        wire = await link.command_wire()
        given = link.given
        answer = await link.run(wire, self._script(link, commands), self._meta, *arguments)
        link.taken_in = max(link.taken_in, given)
        return batch.decode(commands, answer, self._notebook)

    async def _drop(self, link: Link, command: c.Submit) -> list[c.Reply] | None:
        """Put a submit that comes alone into the inbox, which costs a third of what a script does.
        None if there is no inbox, or the run has come before: then a script has to answer."""
        wire = await link.command_wire()
        (encoded,) = batch.encode([command], self._notebook)
        now = ("t", repr(self._test_clock.now())) if self._test_clock else ()
        put = ("XADD", self._inbox, "NOMKSTREAM", "*", "m", encoded, *now)
        known = ("EXISTS", self._key(f"run:{command.id}"))
        told = ("PUBLISH", self._channel, f"{self._me} {DROPPED}")
        is_known, entry, _, length = await link.ask_all(
            wire, [known, put, told, ("XLEN", self._inbox)]
        )
        if is_known or entry is None:
            return None
        if length > FULL:
            await self._call(link, [])
        return [c.Submitted(command.id, True, "queued")]

    def _script(self, link: Link, commands: Sequence[c.Command]) -> Script:
        """The smallest that will do: calling a script costs something for every function in it.
        While a run that was given to us is yet to be taken in, it must be one that does that."""
        kinds = set(map(type, commands))
        nothing_to_take_in = bool(kinds) and link.given == link.taken_in
        if kinds <= LOCKS and nothing_to_take_in:
            return self._scripts.locks
        if not kinds <= WORK or (c.Settle in kinds and not all(map(is_routine, commands))):
            return self._scripts.all
        if kinds <= SAVES and nothing_to_take_in:
            return self._scripts.saves
        return self._scripts.claims if kinds <= CLAIMS else self._scripts.work

    async def _apply_pieces(self, commands: Sequence[c.Command]) -> list[c.Reply]:
        pieces = [commands[start : start + PIECE] for start in range(0, len(commands), PIECE)]
        replies = await asyncio.gather(*[self.apply(piece) for piece in pieces])
        return [reply for some in replies for reply in some]

    def _time(self) -> tuple[Argument, ...]:
        clock = self._test_clock
        return (repr(clock.now()), repr(clock.monotonic())) if clock else ()

    async def stand_by(self, claims: Sequence[c.Claim]) -> list[c.Claimed]:
        try:
            return await self._standby.next(self._link(), claims)
        except (OSError, ReplyError) as error:
            raise server.explain(error, self.address) from error

    async def wait(self, since: int, timeout: float, *, work: bool = False) -> int:
        if self._open:
            self._bell.listen()  # only now: who never waits need not be told either
        return await self._notifier.wait(since, timeout, work=work)

    # --- reads ---

    async def _read(self, name: str, asked: Any) -> Any:
        link = self._link()
        arguments = (self.address.prefix, name, reads.pack(asked), *self._time())
        try:
            wire = await link.read_wire()
            while True:
                try:
                    return await link.run(wire, self._scripts.reads, self._meta, *arguments)
                except ReplyError as error:
                    if not str(error).startswith("INBOX"):
                        raise
                await self._call(link, [])
        except (OSError, ReplyError) as error:
            raise server.explain(error, self.address) from error

    async def _ask(self, *command: Argument) -> Any:
        try:
            return await ask(await self._link().read_wire(), *command)
        except (OSError, ReplyError) as error:
            raise server.explain(error, self.address) from error

    def _key(self, name: str) -> str:
        return f"{self.address.prefix}holdfast:{name}"

    async def run(self, run: str) -> Run | None:
        found = await self._read("run", run)
        return reads.run(found) if found else None

    async def over(self, runs: Sequence[str]) -> list[Run]:
        return [reads.run(found) for found in await self._read("over", list(runs))] if runs else []

    async def runs(
        self, where: RunFilter, *, limit: int = 50, before: int | None = None
    ) -> list[Run]:
        found: list[Run] = []
        while len(found) < limit:
            rows, before = await self._read("runs", (where, limit - len(found), before))
            found += [reads.run(row) for row in rows]
            if not before:
                break
        return found

    async def count(self, where: RunFilter) -> dict[str, int]:
        if where.key is None and where.id_prefix is None:
            return reads.counts(await self._read("count", where))
        return reads.counted(await self.runs(where, limit=1 << 40))

    async def checkpoints(self, run: str, step: str | None = None) -> list[Checkpoint]:
        return reads.checkpoints(await self._read("checkpoints", (run, step)))

    async def quarantined(self, run: str) -> list[tuple[str, str, str]]:
        return reads.quarantined(await self._ask("LRANGE", self._key(f"quarantine:{run}"), 0, -1))

    async def history(self, run: str) -> list[Event]:
        return reads.history(run, await self._read("history", run))

    async def logs(self, run: str, *, after: int = 0, limit: int = 1000) -> list[StoredLog]:
        return reads.logs(
            await self._ask("LRANGE", self._key(f"log:{run}"), after, after + limit - 1)
            if limit
            else []
        )

    async def dead_letters(
        self, *, tenant: str | None = None, open_only: bool = True, limit: int = 100
    ) -> list[DeadLetter]:
        found = await self._read(
            "dead_letters", (tenant if tenant is not None else False, open_only, limit)
        )
        return [reads.dead_letter(*row) for row in found]

    async def dead_letter(self, id: str) -> DeadLetter | None:
        found = await self._ask("HMGET", self._key(f"letter:{id}"), "m", "b")
        return reads.dead_letter(id.encode(), *found) if found[0] else None

    async def locks(self) -> list[LockInfo]:
        return reads.locks(await self._read("locks", None))

    async def lanes(self) -> list[LaneInfo]:
        return reads.lanes(await self._read("lanes", None))

    async def audit(self, *, limit: int = 100) -> list[Audit]:
        return reads.audit(
            await self._ask("LRANGE", self._key("audit"), 0, limit - 1) if limit else []
        )
