"""What is in the program's log: what happened to which run, and why."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast import Context, Holdfast, Lane, Permanent, Pipeline, Transient
from holdfast.cli.logs import JsonLines, TextLines
from holdfast.engine.receiver import Receiver
from holdfast.errors import StoreUnavailable
from holdfast.model.receive import Receive
from holdfast.ports.bus import Message
from holdfast.ports.store import RunFilter


class Lines(logging.Handler):
    """Every record as (level, line), and as the command line's formatters write it."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def of(self, logger: str) -> list[tuple[str, str]]:
        return [(r.levelname, r.getMessage()) for r in self.records if r.name == logger]

    def json(self) -> list[dict[str, Any]]:
        return [json.loads(JsonLines().format(record)) for record in self.records]


@pytest.fixture
def lines() -> Iterator[Lines]:
    logger, lines = logging.getLogger("holdfast"), Lines()
    level = logger.level
    logger.setLevel(logging.DEBUG)
    logger.addHandler(lines)
    yield lines
    logger.removeHandler(lines)
    logger.setLevel(level)


def run_once(lab: Any, pipeline: Pipeline[Any], input: Any = None) -> tuple[Any, Any]:
    engine = lab(pipeline)
    run = engine.submit(pipeline, input)
    engine.drain()
    engine.advance(1)  # the worker hears that its outcome is durable, and says so
    return engine, run


def test_a_run_that_succeeds(lab: Any, lines: Lines) -> None:
    pipeline = Pipeline("p")

    @pipeline.step
    async def s() -> int:
        await asyncio.sleep(90)
        return 1

    engine, run = run_once(lab, pipeline)
    worker = engine._worker.worker.name
    assert lines.of("holdfast.worker") == [
        ("INFO", f"run {run.id} of p: started, attempt 1 on worker {worker}"),
        ("INFO", f"run {run.id} of p: succeeded in 1 min 30 s"),
    ]
    [started, _] = [line for line in lines.json() if line["logger"] == "holdfast.worker"]
    facts = {name: started[name] for name in ("run", "pipeline", "attempt", "worker")}
    assert facts == {"run": run.id, "pipeline": "p", "attempt": 1, "worker": worker}


def test_a_run_that_fails_is_an_error_with_its_traceback(lab: Any, lines: Lines) -> None:
    pipeline = Pipeline("p")

    @pipeline.step
    async def s() -> int:
        raise Permanent("it broke, password=geheim")

    _, run = run_once(lab, pipeline)
    [record] = [record for record in lines.records if record.levelno >= logging.WARNING]
    line = f"run {run.id} of p: failed, attempt 1: s: Permanent: it broke, password=***"
    assert (record.levelname, record.getMessage()) == ("ERROR", line)
    text = TextLines().format(record)
    assert line in text.splitlines()[0]
    assert ", in s\n" in text
    assert "geheim" not in text
    written = json.loads(JsonLines().format(record))
    assert (written["run"], written["step"], written["attempt"]) == (run.id, "s", 1)
    assert written["traceback"].endswith("Permanent: it broke, password=***")


def test_retries_in_place_and_later(lab: Any, lines: Lines) -> None:
    pipeline = Pipeline("p")
    delays = iter([30, 120])

    async def item(n: int) -> int:
        if (delay := next(delays, None)) is not None:
            raise Transient("busy", retry_after=delay)
        return n

    @pipeline.step
    async def s(ctx: Context) -> list[int]:
        return await ctx.map(item, [7])

    _, run = run_once(lab, pipeline)
    warnings = [line for line in lines.of("holdfast.worker") if line[0] == "WARNING"]
    assert warnings == [
        ("WARNING", f"run {run.id} of p: s[7] failed, try 1 of 3, next in 30.0 s: busy"),
        (
            "WARNING",
            f"run {run.id} of p: attempt 1 failed, next in 2 min: s[7]: Transient: busy",
        ),
    ]


def test_a_step_that_is_tried_again(lab: Any, lines: Lines) -> None:
    pipeline, tries = Pipeline("p"), []

    @pipeline.step
    async def s() -> int:
        tries.append(1)
        if len(tries) == 1:
            raise Transient("busy", retry_after=20)
        return 1

    _, run = run_once(lab, pipeline)
    line = f"run {run.id} of p: s failed, try 1 of 3, next in 20.0 s: busy"
    assert ("WARNING", line) in lines.of("holdfast.worker")


def test_leadership_of_a_lane_with_its_term(lab: Any, lines: Lines) -> None:
    pipeline = Pipeline("p", lane=Lane("line", order="fifo"))

    @pipeline.step
    async def s(input: int) -> int:
        return input

    engine, _ = run_once(lab, pipeline, 1)
    worker = engine._worker.worker.name
    engine.freeze(100)
    engine.advance(200)
    engine.stop()
    assert lines.of("holdfast.lanes") == [
        ("INFO", f"lane line: leadership gained, term 1, worker {worker}"),
        ("INFO", f"lane line: leadership lost, term 1, worker {worker}"),
        ("INFO", f"lane line: leadership gained, term 2, worker {worker}"),
        ("INFO", f"lane line: leadership given up, term 2, worker {worker}"),
    ]
    assert {level for level, _ in lines.of("holdfast.locks")} == {"DEBUG"}


def test_locks_of_the_users(lines: Lines) -> None:
    async def story() -> str:
        async with Holdfast("memory:") as app:
            async with app.lock("nightly"):
                pass
            return app.name

    owner = asyncio.run(story())
    assert lines.of("holdfast.locks") == [
        ("INFO", f"lock nightly: acquired by {owner}, epoch 1"),
        ("INFO", f"lock nightly: released by {owner}, epoch 1"),
    ]


class ADelivery:
    """A message that remembers what became of it."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self.nacked: float | None = None
        self.acked = False
        self.attempt = 1

    async def ack(self) -> None:
        self.acked = True

    async def nack(self, delay: float) -> None:
        self.nacked = delay


def test_messages_that_are_received_nacked_and_buried(lines: Lines, monkeypatch: Any) -> None:
    pipeline = Pipeline("p", input=int)

    @pipeline.step
    async def s(input: int) -> int:
        return input

    async def story() -> str:
        async with Holdfast("memory:", [pipeline], bus="memory:", worker=False) as app:
            assert app.bus is not None
            receiver = Receiver(app.runtime, app.bus, Receive("orders", pipeline.name), pipeline)

            async def receive(id: str, body: bytes) -> ADelivery:
                delivery = ADelivery(Message(id, body, {}))
                await receiver.receive(delivery)  # type: ignore[arg-type]
                return delivery

            assert (await receive("m1", b"7")).acked
            assert (await receive("m1", b"7")).acked
            assert (await receive("m2", b"seven")).acked

            async def away(commands: Any) -> Any:
                raise StoreUnavailable("away")

            monkeypatch.setattr(app.store, "apply", away)
            assert (await receive("m3", b"8")).nacked == 5.0
            monkeypatch.undo()
            [run] = await app.store.runs(RunFilter())
            return run.id

    run = asyncio.run(story())
    received, again, buried, nacked = lines.of("holdfast.receiver")
    assert received == ("INFO", f"message m1 from orders: received as run {run} (new)")
    assert again == (
        "INFO",
        f"message m1 from orders: received as run {run} (known already, queued)",
    )
    assert buried[0] == "WARNING"
    assert buried[1].startswith("message m2 from orders: buried: InvalidInput: int is not valid")
    assert nacked == ("WARNING", "message m3 from orders: nacked for 5 s, delivery 1: away")


def test_a_plain_handler_of_a_users_program_shows_the_traceback(lab: Any) -> None:
    pipeline, stream = Pipeline("p"), io.StringIO()

    @pipeline.step
    async def s() -> int:
        raise Permanent("it broke")

    handler, logger = logging.StreamHandler(stream), logging.getLogger("holdfast")
    logger.addHandler(handler)
    try:
        run_once(lab, pipeline)
    finally:
        logger.removeHandler(handler)
    assert "Traceback (most recent call last):" in stream.getvalue()
    assert ", in s\n" in stream.getvalue()
