"""No command harms another: values that no store can hold, in every field of every command, each in
a batch with valid commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from types import NoneType
from typing import Any, get_args, get_type_hints

import msgspec
from msgspec.structs import replace

from holdfast.errors import Unwritable
from holdfast.model import commands as c
from holdfast.model import limits
from holdfast.model.checkpoint import Checkpoint
from holdfast.model.limits import MAX_KEY, MAX_NAME
from holdfast.model.machine import RULES
from holdfast.ports.store import RunFilter
from holdfast.testing.contracts.store_topics.harness import (
    TTL,
    StoreHarness,
    StoreTopics,
    a_checkpoint,
    a_claim,
    a_submit,
    an_error,
    store_test,
)


class Odd(str):
    """A text that is more than a text, as numpy's are."""


class Whole(int):
    """The same of a number."""


HOSTILE: tuple[Any, ...] = (
    # texts
    "\ud800", "half \udcff a pair", "\0", "a\0b", "\uffff", "\uffff0\0", "", "\x1f", "\x7f\x85",
    "\U0010ffff", "’\"\\'; --$1%s{}", "@blob:nowhere", '{"', "null", "n" * 5000, "ü" * 2000,
    Odd("a"),
    # numbers
    -1, 0, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63) - 1, 10**400, True, Whole(1),
    1e-320, -0.0, 1e308, -1.0, float("nan"), float("inf"), float("-inf"), Decimal("1.5"), 1 + 1j,
    # everything else
    None, b"\xff", bytearray(b"x"), [], ["\ud800"], {}, {"\udc80": "a"}, {"a": "\ud800"}, {"a": 1},
    {"l" * 300: "a"}, {str(n): "a" for n in range(20)}, {"a": {"b": {}}}, object(), [("r1", 2**70)],
    Checkpoint("s", "k", "\ud800", "c", "t", "f"), [Checkpoint("s", "k", "\ud800", "c", "t", "f")],
)  # fmt: skip
"""Values that users, files and other systems send."""

RECORD = "hostile/record"

COMMANDS: dict[type, Callable[[str, int], c.Command[Any]]] = {
    c.Submit: lambda _, __: a_submit("hostile", key="h"),
    c.Claim: lambda _, __: a_claim(lane="empty"),
    c.Renew: lambda run, epoch: c.Renew([(run, epoch)], TTL),
    c.SaveCheckpoint: lambda run, epoch: a_checkpoint(run, epoch, "s", "hostile"),
    c.Quarantine: lambda run, epoch: c.Quarantine(run, epoch, "s", "i1", "bad"),
    c.SaveProgress: lambda run, epoch: c.SaveProgress(run, epoch, "{}"),
    c.LogLine: lambda run, epoch: c.LogLine(run, epoch, "info", "s", "message"),
    c.Settle: lambda run, epoch: c.Settle(run, epoch, "failed", error=an_error("hostile")),
    c.Cancel: lambda run, _: c.Cancel(run, "me", "reason"),
    c.PauseRun: lambda run, _: c.PauseRun(run, "me", "reason"),
    c.Resume: lambda run, _: c.Resume(run, "me"),
    c.Sweep: lambda _, __: c.Sweep(),
    c.Prune: lambda _, __: c.Prune(1e6, 1e6),
    c.DefineLane: lambda _, __: c.DefineLane("hostile", "parallel", "dead-letter"),
    c.LimitTenant: lambda _, __: c.LimitTenant("hostile", 3, "me"),
    c.Acquire: lambda _, __: c.Acquire("hostile", "t1", "me", TTL),
    c.RenewLocks: lambda _, __: c.RenewLocks([("hostile", "t1")], TTL),
    c.ReleaseLock: lambda _, __: c.ReleaseLock("hostile", "t1"),
    c.ForceRelease: lambda _, __: c.ForceRelease("hostile", "me", "reason"),
    c.Bury: lambda _, __: c.Bury("message:hostile", "bus", "reason", b"body"),
    c.MarkRedriven: lambda _, __: c.MarkRedriven("message:hostile", "me"),
    c.Discard: lambda _, __: c.Discard("message:hostile", "me", "reason"),
    c.PutRecord: lambda _, __: c.PutRecord(RECORD, "{}", "v1"),
    c.DeleteRecord: lambda _, __: c.DeleteRecord(RECORD, "v0"),
}
"""A harmless command of every type, for a run that is running."""

ENDING = (c.Settle, c.Cancel, c.PauseRun)
"""What ends an attempt: each of these needs a run of its own."""


def values_for(kind: type, name: str) -> list[Any]:
    """What is hostile to a field: where there may be nothing, None is not. Runs and messages have
    ids that differ."""
    is_optional = NoneType in get_args(get_type_hints(kind)[name])
    values = [value for value in HOSTILE if value is not None or not is_optional]
    if kind is c.Bury and name == "id":
        return [f"message:{value}" if type(value) is str else value for value in values]
    return values


class HostileValueTopics(StoreTopics):
    @store_test
    async def test_no_value_of_a_command_harms_its_neighbours(self, harness: StoreHarness) -> None:
        """Each hostile command is stored or refused at once; the valid ones beside it are
        stored."""
        assert {kind for kind in RULES if kind.__module__ == c.__name__} == set(COMMANDS)
        innocent = await harness.start("innocent")
        common = await harness.start("common")
        refused = 0
        for kind in COMMANDS:
            for name in kind.__struct_fields__:  # type: ignore[attr-defined]
                values = values_for(kind, name)
                runs = [("common", common)] * len(values)
                if kind in ENDING:
                    runs = await started(harness, f"{kind.__name__}-{name}", len(values))
                hostile = [
                    replace(COMMANDS[kind](*run), **{name: value})
                    for run, value in zip(runs, values, strict=True)
                ]
                refused += await among_neighbours(
                    harness, innocent, f"{kind.__name__}.{name}", hostile
                )
        assert refused > 1000  # otherwise the values would not be hostile
        await read_everything(harness)

    @store_test
    async def test_what_is_refused_changes_nothing(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r1")
        before = await harness.everything("r1")
        for command in (
            c.SaveCheckpoint("r1", epoch, "s", "k" * (MAX_KEY + 1), "1", "c", "t", "f", "{}"),
            a_checkpoint("r1", epoch, "s" * (MAX_NAME + 1)),
            a_checkpoint("r1", epoch, value="\ud800"),
            c.SaveProgress("r1", epoch, "\udcff"),
            c.LogLine("r1", epoch, "info", "s", "\udcff"),
            c.Settle("r1", epoch, "retry", error=an_error("no"), delay=float("inf")),
            c.Settle("r1", epoch, "succeeded", result="\ud800"),
            c.Settle("r1", epoch, "failed", error='{"'),
            c.Settle("r1", epoch, "succeeded", last=a_checkpoint("r1", epoch, value="\ud800")),
        ):
            assert isinstance(await harness.do(command), Unwritable), command
        assert await harness.everything("r1") == before
        assert await harness.settle("r1", epoch, "succeeded", result="1") is None

    @store_test
    async def test_one_among_many_is_left_out_alone(self, harness: StoreHarness) -> None:
        commands = [a_submit(f"r{number:03}") for number in range(300)]
        commands[177] = replace(commands[177], input="\ud800")
        replies = await harness.apply(*commands)
        assert [n for n, reply in enumerate(replies) if isinstance(reply, Unwritable)] == [177]
        assert await harness.store.count(RunFilter()) == {"queued": 299}

    @store_test
    async def test_a_refused_submission_takes_neither_key_nor_slot(
        self, harness: StoreHarness
    ) -> None:
        bad = a_submit("r1", key="k1", unique=True, input="\ud800")
        good = a_submit("r2", key="k1", unique=True)
        refused, accepted = await harness.apply(bad, good)
        assert isinstance(refused, Unwritable)
        assert accepted == c.Submitted("r2", True, "queued")

    @store_test
    async def test_keys_are_kept_exactly_up_to_their_limit(self, harness: StoreHarness) -> None:
        """Also of characters that take four bytes, and with U+0000 in them."""
        epoch = await harness.start("r1", key="k" * MAX_KEY)
        keys = ["k" * MAX_KEY, "😀" * (MAX_KEY // 4), "a\0b", "\x1f", "’"]
        for key in keys:
            assert await harness.do(a_checkpoint("r1", epoch, "s", key)) is None
        assert sorted(saved.key for saved in await harness.store.checkpoints("r1")) == sorted(keys)
        letter = "l" * MAX_KEY
        assert await harness.do(c.Bury(letter, "bus", "bad", b"x")) is True
        assert (await harness.store.dead_letters())[0].id == letter
        lock = "n" * MAX_KEY
        assert isinstance(await harness.do(c.Acquire(lock, "t", "me", TTL)), c.Acquired)
        assert [lock_info.name for lock_info in await harness.store.locks()] == [lock]

    @store_test
    async def test_texts_are_kept_exactly(self, harness: StoreHarness) -> None:
        texts = [text for text in HOSTILE if limits.is_text(text)]
        assert len(texts) > 10
        epoch = await harness.start("r1")
        await harness.apply(
            *[a_submit(f"t{n}", input=text) for n, text in enumerate(texts)],
            *[a_checkpoint("r1", epoch, "s", f"{n:02}", value=t) for n, t in enumerate(texts)],
            *[c.LogLine("r1", epoch, "info", "s", text) for text in texts],
        )
        assert [(await harness.run(f"t{n}")).input for n in range(len(texts))] == texts
        assert [saved.value for saved in await harness.store.checkpoints("r1")] == texts
        assert [line.message for line in await harness.store.logs("r1")] == texts

    @store_test
    async def test_texts_inside_of_json_are_kept_exactly(self, harness: StoreHarness) -> None:
        """Where the store puts them into objects itself: attributes, and the data of events."""
        texts = [text for text in HOSTILE if limits.is_text(text)]
        checkpoints = {f"{n} {text}"[:200]: text for n, text in enumerate(texts)}
        await harness.apply(
            a_submit("r1", attributes=checkpoints),
            *[a_submit(f"c{n}", attributes={"a": text}) for n, text in enumerate(texts)],
            *[c.Bury(f"m{n}", text, text, b"x", checkpoints) for n, text in enumerate(texts)],
        )
        await harness.apply(
            *[c.Cancel(f"c{n}", text, text) for n, text in enumerate(texts)],
            *[c.Discard(f"m{n}", text, text) for n, text in enumerate(texts)],
        )
        assert (await harness.run("r1")).attributes == checkpoints
        for number, text in enumerate(texts):
            run = await harness.run(f"c{number}")
            assert (run.damage, run.attributes, run.reason) == (None, {"a": text}, text or None)
            last = (await harness.store.history(run.id))[-1]
            assert msgspec.json.decode(last.data)["reason"] == text
            letter = await harness.store.dead_letter(f"m{number}")
            assert letter is not None
            assert (letter.source, letter.reason, letter.attributes) == (text, text, checkpoints)
        written = {(entry.actor, entry.reason) for entry in await harness.store.audit(limit=1000)}
        assert {(text, text) for text in texts} <= written
        buried = [e for e in await harness.store.outbox(0, limit=1000) if e.run.startswith("m")]
        assert [msgspec.json.decode(e.data)["source"] for e in buried] == texts


async def started(harness: StoreHarness, name: str, count: int) -> list[tuple[str, int]]:
    """So many running runs, and their epochs."""
    await harness.apply(*[a_submit(f"{name}-{n}", lane=name) for n in range(count)])
    return [(run.run, run.epoch) for run in await harness.claim(count, lane=name)]


async def read_everything(harness: StoreHarness) -> None:
    """Call every read method: none may fail because of what was accepted."""
    store = harness.store
    for run in await store.runs(RunFilter(), limit=10_000):
        assert run.damage in (None, "can't be read: progress"), run
        for event in await store.history(run.id):
            msgspec.json.decode(event.data)
        await store.checkpoints(run.id)
        await store.logs(run.id)
        await store.quarantined(run.id)
    await store.dead_letters(limit=10_000)
    await store.locks()
    await store.lanes()
    await store.audit(limit=10_000)
    await store.outbox(0, limit=10_000)


async def among_neighbours(
    harness: StoreHarness, innocent: int, name: str, hostile: Sequence[c.Command[Any]]
) -> int:
    """Apply the commands in one batch with valid ones between them. The number of refused ones."""
    batch: list[c.Command[Any]] = []
    for number, command in enumerate(hostile):
        key = f"{name}-{number}"
        saved = a_checkpoint("innocent", innocent, "s", key)
        batch += [saved, command, c.PutRecord(f"innocent/{key}", "{}", key)]
    replies = await harness.apply(*batch)
    assert replies[::3] == [None] * len(hostile), name
    assert all(isinstance(reply, c.Stored) for reply in replies[2::3]), name
    return sum(isinstance(reply, Unwritable) for reply in replies[1::3])
