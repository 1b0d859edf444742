"""What a step is given from outside the run: ports the app provides, stored bytes, and what was
spent so far."""

import asyncio

import pytest

from holdfast import Context, Holdfast, Pipeline
from holdfast.adapters.inprocess.bus import InProcessBus
from holdfast.adapters.memory.store import MemoryStore
from holdfast.errors import Conflict, Pause
from holdfast.testing import TestEngine


class Greeter:
    def greet(self, name: str) -> str:
        return f"hello {name}"


def test_a_step_uses_what_the_app_provides():
    pipeline: Pipeline[str] = Pipeline("greeting", input=str)

    @pipeline.step
    async def greet(request: str, ctx: Context) -> str:
        return ctx.use(Greeter).greet(request)

    engine = TestEngine(pipeline, provide={Greeter: Greeter()})
    run = engine.submit(pipeline, "Ada")
    engine.drain()
    assert engine.result(run) == "hello Ada"
    engine.close()


def test_a_missing_port_is_named_with_the_remedy():
    pipeline: Pipeline[str] = Pipeline("greeting", input=str)

    @pipeline.step
    async def greet(request: str, ctx: Context) -> str:
        return ctx.use(Greeter).greet(request)

    engine = TestEngine(pipeline)
    run = engine.submit(pipeline, "Ada")
    engine.drain()
    error = engine.info(run).error
    assert error is not None
    assert "provide={Greeter: …}" in error.message
    engine.close()


def test_a_later_step_reads_what_an_earlier_one_stored():
    pipeline: Pipeline[str] = Pipeline("letters", input=str)

    @pipeline.step
    async def write(request: str, ctx: Context) -> str:
        return await ctx.artifact("letter.txt", request.encode())

    @pipeline.step
    def read(write: str, ctx) -> str:
        return ctx.read(write).decode()

    engine = TestEngine(pipeline)
    run = engine.submit(pipeline, "dear all")
    engine.drain()
    assert engine.result(run) == "dear all"
    engine.close()


@pytest.mark.parametrize("where", ["other/run/step/1/x", "default/../other/x", "x"])
def test_nobody_reads_what_belongs_to_another_tenant(where):
    pipeline: Pipeline[str] = Pipeline("letters", input=str)

    @pipeline.step
    async def read(request: str, ctx: Context) -> str:
        return (await ctx.read(request)).decode()

    engine = TestEngine(pipeline)
    run = engine.submit(pipeline, where)
    engine.drain()
    error = engine.info(run).error
    assert error is not None
    assert "does not belong to tenant" in error.message
    engine.close()


def test_spending_is_known_across_a_crash_in_the_middle_of_a_map():
    pipeline: Pipeline[int] = Pipeline("spending", input=int)
    spending: list[tuple[int, float, float]] = []

    @pipeline.step
    async def first(request: int, ctx: Context) -> int:
        ctx.usage(input_tokens=10, output_tokens=1, cost=1.0)
        return request

    @pipeline.step
    async def second(first: int, ctx: Context) -> list[int]:
        async def pay(number: int, ctx: Context) -> int:
            spending.append((number, ctx.spent.cost, ctx.steps["first"].usage.cost))
            if len(spending) == 4:
                raise Pause("enough")
            ctx.usage(input_tokens=1, cost=0.5)
            return number

        return await ctx.map(pay, range(first), concurrency=1)

    engine = TestEngine(pipeline)
    run = engine.submit(pipeline, 5)
    engine.drain()
    assert engine.info(run).state == "paused"
    engine.call(engine.app.operations.resume(run.id))
    engine.drain()
    assert engine.result(run) == [0, 1, 2, 3, 4]
    assert [spent for _, spent, _ in spending] == [1.0, 1.5, 2.0, 2.5, 2.5, 3.0]
    assert {before for _, _, before in spending} == {1.0}
    engine.close()


def test_a_pipeline_names_its_own_key():
    pipeline: Pipeline[dict[str, int]] = Pipeline(
        "orders", input=dict[str, int], key=lambda o: f"order-{o['number']}"
    )

    @pipeline.step
    async def ship(request: dict[str, int]) -> int:
        return request["number"]

    engine = TestEngine(pipeline)
    first = engine.submit(pipeline, {"number": 7})
    again = engine.submit(pipeline, {"number": 7})
    assert (first.created, again.created, again.id) == (True, False, first.id)
    assert engine.submit(pipeline, {"number": 7}, key="mine").created
    with pytest.raises(Conflict):
        engine.submit(pipeline, {"number": 7, "other": 1})
    engine.close()


def test_what_can_not_be_closed_leaves_nothing_else_open():
    closed = []

    class Store(MemoryStore):
        async def close(self):
            closed.append("store")

    class Bus(InProcessBus):
        async def close(self):
            closed.append("bus")
            raise RuntimeError("the bus is broken")

    class Client:
        async def aclose(self):
            closed.append("client")

    class Broken(Client):
        async def aclose(self):
            raise RuntimeError("it is closed already")

    async def story():
        app = Holdfast(Store(), bus=Bus(), provide={Broken: Broken(), Client: Client()})
        with pytest.raises(RuntimeError, match="the bus is broken"):
            async with app:
                pass

    asyncio.run(story())
    assert closed == ["client", "bus", "store"]
