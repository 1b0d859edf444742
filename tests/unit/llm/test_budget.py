"""A run's budget: waited for, then paused, never passed."""

import asyncio

import pytest
from tests.unit.llm.harness import Claims, FakeContext

from holdfast import Context, Pipeline
from holdfast.adapters.llm.budget import BudgetLedger
from holdfast.errors import ConfigurationError, Pause
from holdfast.ports.language_model import Question
from holdfast.testing import TestEngine
from holdfast.testing.fakellm import always

PRICED = {"input_price": 1000, "output_price": 1000}
"""A dollar per thousand tokens, so that a few calls make a sum."""


def test_nothing_is_sent_that_could_pass_the_budget(virtual_time):
    harness = virtual_time.harness(address=PRICED)
    with pytest.raises(
        Pause, match=r"\$0\.0000 of the budget of \$1\.00 is spent.*raise the budget and resume"
    ):
        virtual_time.run(harness.ask(budget=1.0))
    assert harness.fake.calls == []


def test_without_a_budget_nothing_is_held_back(virtual_time):
    harness = virtual_time.harness(address=PRICED)
    virtual_time.run(harness.ask())
    assert harness.ctx.spent.cost > 0


def test_a_budget_needs_a_price(virtual_time):
    harness = virtual_time.harness()
    with pytest.raises(
        ConfigurationError, match=r"price of openai:fake-1 is unknown.*input_price="
    ):
        virtual_time.run(harness.ask(budget=1.0))


@pytest.mark.parametrize("budget", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("kind", [None, "malformed", "cut", "error"])
def test_many_calls_at_once_stop_before_the_budget_and_use_it_well(virtual_time, budget, kind):
    harness = virtual_time.harness(
        address=PRICED, latency=1.0, faults=always(kind) if kind else lambda call: None
    )
    question = Question("s", "t", "claims", max_output=60)

    async def one_call() -> str:
        try:
            await harness.ask(question, budget=budget)
        except Exception as error:
            return type(error).__name__
        return "answer"

    async def story() -> list[str]:
        outcomes: list[str] = []
        while "Pause" not in outcomes and len(outcomes) < 500:
            outcomes += await asyncio.gather(*(one_call() for _ in range(50)))
        return outcomes

    outcomes = virtual_time.run(story())
    spent = harness.ctx.spent.cost
    assert spent <= budget
    if kind == "error":
        assert spent == 0.0
        return
    assert "Pause" in outcomes
    assert spent > budget - 0.25
    assert harness.model._ledger._runs == {}


def test_a_call_waits_for_those_under_way_before_the_run_pauses(virtual_time):
    ledger, bill = BudgetLedger(), FakeContext()
    calls: list[str] = []

    async def call(name: str, most: float, cost: float) -> None:
        async with ledger.reserved(bill, 1.0, most, "m"):
            calls.append(f"{name} starts")
            await asyncio.sleep(1)
            bill.usage(cost=cost)
        calls.append(f"{name} is over")

    async def story() -> None:
        await asyncio.gather(call("a", 0.8, 0.1), call("b", 0.8, 0.1), call("c", 0.1, 0.1))

    virtual_time.run(story())
    assert calls == ["a starts", "a is over", "b starts", "c starts", "b is over", "c is over"]


def test_the_budget_of_one_run_is_not_that_of_another(virtual_time):
    ledger, own, yours = BudgetLedger(), FakeContext("mine"), FakeContext("yours")

    async def story() -> None:
        async with ledger.reserved(own, 1.0, 0.9, "m"), ledger.reserved(yours, 1.0, 0.9, "m"):
            assert set(ledger._runs) == {"mine", "yours"}

    virtual_time.run(story())
    assert ledger._runs == {}


def test_who_is_cancelled_while_waiting_blocks_nobody(virtual_time):
    ledger, bill = BudgetLedger(), FakeContext()

    async def call(seconds: float) -> str:
        async with ledger.reserved(bill, 1.0, 0.9, "m"):
            await asyncio.sleep(seconds)
            return "done"

    async def story() -> list[object]:
        tasks = [asyncio.create_task(call(2)) for _ in range(3)]
        await asyncio.sleep(1)
        tasks[1].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, second, third = virtual_time.run(story())
    assert (first, third) == ("done", "done")
    assert isinstance(second, asyncio.CancelledError)
    assert ledger._runs == {}


def test_a_run_pauses_at_its_budget_and_goes_on_with_a_larger_one(virtual_time):
    harness = virtual_time.harness(address={**PRICED, "in_flight": 4}, latency=1.0)
    budget = {"now": 1.5}
    pipeline: Pipeline[int] = Pipeline("asking", input=int)

    @pipeline.step
    async def ask(request: int, ctx: Context) -> list[int]:
        async def one_call(number: int, ctx: Context) -> int:
            question = Question("s", f"text {number}", "claims", max_output=60)
            answer = await harness.model.ask(question, Claims, ctx, budget=budget["now"])
            return len(answer.claims)

        return await ctx.map(one_call, range(request), concurrency=8)

    engine = TestEngine(pipeline)
    run = engine.submit(pipeline, 20)
    engine.drain()
    info = engine.info(run)
    assert info.state == "paused"
    assert "raise the budget and resume" in (info.reason or "")
    calls = len(harness.fake.calls)
    assert 0 < calls < 20
    spent = 1000 * sum(call.input_tokens + call.output_tokens for call in harness.fake.calls) / 1e6
    assert 1.0 < spent <= 1.5

    budget["now"] = 100.0
    engine.call(engine.app.operations.resume(run.id))
    engine.drain()
    assert engine.result(run) == [1] * 20
    assert len(harness.fake.calls) == 20
    assert engine.steps(run)["ask"].usage.cost == pytest.approx(
        sum(call.input_tokens + call.output_tokens for call in harness.fake.calls) / 1000
    )
    engine.close()
