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
    Resume,
    SaveProgress,
)
from holdfast.testing.contracts.store_topics.scene import Scene, a_checkpoint, an_error


async def fill(scene: Scene) -> None:
    """Something of every kind."""
    await _finished(scene)
    await _failed(scene)
    await _waiting(scene)
    await _in_lanes(scene)
    await _others(scene)


async def _finished(scene: Scene) -> None:
    epoch = await scene.start(
        "done", key="k1", priority=7, fingerprint="f-done", input='{"n":"naïve \\u0000"}'
    )
    scene.clock.advance(0.123456)
    await scene.apply(
        a_checkpoint("done", epoch, "s", value='"ünï\\u0000"'),
        a_checkpoint("done", epoch, "s", "item-1"),
        a_checkpoint("done", epoch, "t", value="@blob:acme/done/t/1/x.json"),
        Quarantine("done", epoch, "s", "item-1", "bad"),
        LogLine("done", epoch, "info", "s", "hello", '{"a":1}'),
        LogLine("done", epoch, "warning", "", "again"),
    )
    last = a_checkpoint("done", epoch, "u", value='"r"')
    progress = '{"steps":{"s":{"step":"s","status":"completed","usage":{"input_tokens":3,"cost":0.25,"calls":1}}}}'
    await scene.settle("done", epoch, "succeeded", result='"r"', last=last, progress=progress)
    await scene.settle(
        "plain", await scene.start("plain", tenant="bolt"), "succeeded", result="null"
    )
    await scene.submit("gone", parent="done")
    await scene.do(Cancel("gone", "ann", "not needed"))


async def _failed(scene: Scene) -> None:
    await scene.fail("broken", key="k2", tenant="bolt")
    await scene.fail("known")
    await scene.do(Discard("run:known", "bob", "test data"))
    await scene.settle("again", await scene.start("again"), "failed", error=an_error("it broke"))
    await scene.do(Resume("again", "ann", 2))
    await scene.do(Cancel("again", "ann"))


async def _waiting(scene: Scene) -> None:
    await scene.submit("parked", unique=True, pipeline="solo")
    epoch = await scene.restart("parked")
    await scene.apply(
        a_checkpoint("parked", epoch, "s"), SaveProgress("parked", epoch, '{"wasted":{"calls":2}}')
    )
    await scene.do(PauseRun("parked", "ann", "over budget"))
    epoch = await scene.start("retried")
    await scene.do(a_checkpoint("retried", epoch, "s"))
    await scene.settle("retried", epoch, "retry", delay=100.0)
    await scene.submit("later", delay=50.0, priority=1)
    await scene.submit(
        "rerun", lane="other", parent="done", checkpoints=[Checkpoint("s", "", "1", "c", "t", "f")]
    )
    for number in range(3):
        await scene.submit(
            f"queued-{number}", priority=number % 2, input=f'"{number}"', lane="wide"
        )


async def _in_lanes(scene: Scene) -> None:
    await scene.do(DefineLane("wide", "parallel", "skip"))
    line = await scene.fifo("line", "block")
    for name in ("l1", "l2", "l3"):
        await scene.submit(name, lane="line")
    await scene.settle("l1", await line.start("l1"), "failed")
    order = await scene.fifo("order")
    for name in ("o1", "o2", "o3"):
        await scene.submit(name, lane="order")
    epoch = await order.start("o1")
    await scene.do(a_checkpoint("o1", epoch, "s"))
    await scene.settle("o1", epoch, "retry", delay=5.0)
    await scene.do(ForceRelease("lane:line", "ann", "host is gone"))


async def _others(scene: Scene) -> None:
    await scene.do(Bury("m1", "jobs", "not JSON", bytes(range(256)), {"a": "b"}, "acme"))
    await scene.do(Bury("m2", "jobs", "not JSON", b"", {}, ""))
    await scene.do(MarkRedriven("m2", "bob"))
    await scene.do(Acquire("own", "t1", "me", 5.0))
    await scene.do(ForceRelease("own", "ann", "stuck"))
    await scene.do(Acquire("own", "t2", "me", 5.0))
    await scene.do(LimitTenant("bolt", 3, "ann"))
    await scene.do(PutRecord("workers/w1", '{"host":"☃"}', "v1"))
    await scene.do(PutRecord("workers/w2", "2", "v2", ttl=60.0))
    await scene.submit("labelled", labels={"user_id": "7"}, attributes={"ce-id": "m1"})
