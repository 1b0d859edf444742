"""A store with something of every kind in it."""

from __future__ import annotations

from holdfast.model.checkpoint import Checkpoint
from holdfast.model.commands import (
    Acquire,
    Bury,
    Cancel,
    DefineLane,
    Discard,
    ForceRelease,
    LimitTenant,
    LogLine,
    MarkRedriven,
    PauseRun,
    PutRecord,
    Quarantine,
    ReleaseLock,
    Resume,
    SaveProgress,
)
from holdfast.model.limits import MAX_KEY
from holdfast.testing.contracts.store_topics.harness import StoreHarness, a_checkpoint, an_error

LONG = "😀" * (MAX_KEY // 4)
"""The longest key that a store holds."""


async def fill(store: StoreHarness) -> None:
    """Something of every kind."""
    await _finished(store)
    await _failed(store)
    await _waiting(store)
    await _in_lanes(store)
    await _other_records(store)


async def _finished(store: StoreHarness) -> None:
    epoch = await store.start(
        "done", key="k1", priority=7, fingerprint="f-done", input='{"n":"naïve \\u0000"}'
    )
    store.clock.advance(0.123456)
    await store.apply(
        a_checkpoint("done", epoch, "s", value='"ünï\\u0000"'),
        a_checkpoint("done", epoch, "s", "item-1"),
        a_checkpoint("done", epoch, "s", LONG),
        a_checkpoint("done", epoch, "t", value="@blob:acme/done/t/1/x.json"),
        Quarantine("done", epoch, "s", "item-1", "bad"),
        LogLine("done", epoch, "info", "s", "hello", '{"a":1}'),
        LogLine("done", epoch, "warning", "", "again"),
    )
    last = a_checkpoint("done", epoch, "u", value='"r"')
    usage = '{"input_tokens":3,"cost":0.25,"calls":1}'
    progress = f'{{"steps":{{"s":{{"step":"s","status":"completed","usage":{usage}}}}}}}'
    ended = {"result": '"r"', "checksum": "c-r", "last": last, "progress": progress}
    await store.settle("done", epoch, "succeeded", **ended)
    await store.settle(
        "plain", await store.start("plain", tenant="bolt"), "succeeded", result="null"
    )
    await store.submit("gone", parent="done")
    await store.do(Cancel("gone", "ann", "not needed"))


async def _failed(store: StoreHarness) -> None:
    await store.fail("broken", key="k2", tenant="bolt")
    await store.fail("known")
    await store.do(Discard("run:known", "bob", "test data"))
    await store.settle("again", await store.start("again"), "failed", error=an_error("it broke"))
    await store.do(Resume("again", "ann", 2))
    await store.do(Cancel("again", "ann"))


async def _waiting(store: StoreHarness) -> None:
    await store.submit("parked", unique=True, pipeline="solo")
    epoch = await store.restart("parked")
    await store.apply(
        a_checkpoint("parked", epoch, "s"), SaveProgress("parked", epoch, '{"wasted":{"calls":2}}')
    )
    await store.do(PauseRun("parked", "ann", "over budget"))
    epoch = await store.start("retried")
    await store.do(a_checkpoint("retried", epoch, "s"))
    await store.settle("retried", epoch, "retry", delay=100.0)
    await store.submit("later", delay=50.0, priority=1)
    await store.submit(
        "rerun", lane="other", parent="done", checkpoints=[Checkpoint("s", "", "1", "c", "t", "f")]
    )
    for number in range(3):
        await store.submit(
            f"queued-{number}", priority=number % 2, input=f'"{number}"', lane="wide"
        )


async def _in_lanes(store: StoreHarness) -> None:
    await store.do(DefineLane("wide", "parallel", "skip"))
    line = await store.fifo("line", "block")
    for name in ("l1", "l2", "l3"):
        await store.submit(name, lane="line")
    await store.settle("l1", await line.start("l1"), "failed")
    order = await store.fifo("order")
    for name in ("o1", "o2", "o3"):
        await store.submit(name, lane="order")
    epoch = await order.start("o1")
    await store.do(a_checkpoint("o1", epoch, "s"))
    await store.settle("o1", epoch, "retry", delay=5.0)
    await store.do(ForceRelease("lane:line", "ann", "host is gone"))


async def _other_records(store: StoreHarness) -> None:
    await store.do(Bury("m1", "jobs", "not JSON", bytes(range(256)), {"a": "b"}, "acme"))
    await store.do(Bury("m2", "jobs", "not JSON", b"", {}, ""))
    await store.do(Bury(LONG, "jobs", "not JSON", b"", {}, ""))
    await store.do(Acquire(LONG, "t1", "me", 5.0))
    await store.do(ReleaseLock(LONG, "t1"))
    await store.do(MarkRedriven("m2", "bob"))
    await store.do(Acquire("own", "t1", "me", 5.0))
    await store.do(ForceRelease("own", "ann", "stuck"))
    await store.do(Acquire("own", "t2", "me", 5.0))
    await store.do(LimitTenant("bolt", 3, "ann"))
    await store.do(PutRecord("workers/w1", '{"host":"☃"}', "v1"))
    await store.do(PutRecord("workers/w2", "2", "v2", ttl=60.0))
    await store.submit("labelled", labels={"user_id": "7"}, attributes={"ce-id": "m1"})
