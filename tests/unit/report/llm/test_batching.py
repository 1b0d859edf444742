"""Many small questions, few calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.report.llm.harness import FakeContext

from holdfast.apps.report.llm.batching import Batcher, BatchItem, BatchSize
from holdfast.apps.report.llm.shared_usage import SharedContext
from holdfast.errors import Pause, StoreUnavailable, Transient
from holdfast.ports.language_model import Declined, Malformed, TooLong

SIZE = BatchSize(items=10, tokens=1000)


class Echo:
    """Answers with what was asked. `calls` are the identities of each call."""

    def __init__(
        self, answer: Callable[[list[str]], Sequence[Any]] | None = None, ticks: int = 1
    ) -> None:
        self.calls: list[list[str]] = []
        self.called = asyncio.Event()
        self.ticks = ticks
        self.answers: dict[str, str] = {}
        self.most = self.busy = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.cancelled = 0
        self._answer = answer or (
            lambda identities: [f"answer to {identity}" for identity in identities]
        )

    async def recall(self, batch_key: Any, item: BatchItem, ctx: Any) -> str | None:
        await asyncio.sleep(0)
        if item.identity == "out of reach":
            raise StoreUnavailable("the disk is gone")
        return self.answers.get(item.identity)

    async def ask(self, batch_key: Any, items: Sequence[BatchItem], ctx: Any) -> Sequence[Any]:
        self.calls.append([item.identity for item in items])
        self.called.set()
        self.busy += 1
        self.most = max(self.most, self.busy)
        try:
            await self.gate.wait()
            for _ in range(self.ticks):
                await asyncio.sleep(0)
            ctx.usage(input_tokens=1000, output_tokens=100, cost=0.01)
            return self._answer([item.identity for item in items])
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.busy -= 1


def item(identity: object, tokens: int = 10, affinity: str = "", alone: bool = False) -> BatchItem:
    return BatchItem(str(identity), {}, tokens, affinity, alone)


def asking(
    batcher: Any, items: Sequence[BatchItem], batch_key: str = "key"
) -> list[asyncio.Task[Any]]:
    return [asyncio.ensure_future(batcher.ask(batch_key, item, FakeContext())) for item in items]


def packing(
    items: Sequence[BatchItem], echo: Echo | None = None, size: BatchSize = SIZE, calls: int = 64
) -> tuple[list[Any], Echo]:
    async def story() -> tuple[list[Any], Echo]:
        handler = echo or Echo()
        batcher = Batcher(handler, size, calls)
        return await asyncio.gather(*asking(batcher, items), return_exceptions=True), handler

    return asyncio.run(story())


def test_two_thousand_questions_are_two_hundred_calls():
    answers, echo = packing([item(number) for number in range(2000)])
    assert answers == [f"answer to {number}" for number in range(2000)]
    assert len(echo.calls) == 200
    assert all(len(call) == 10 for call in echo.calls)


def test_calls_stay_full_while_callers_come_and_go():
    """Each caller asks, puts away what it got, which takes a while, and asks again: as the engine's
    do."""

    async def story() -> Echo:
        echo = Echo(ticks=20)
        batcher = Batcher(echo, SIZE, calls=4)
        numbers = iter(range(2000))

        async def caller() -> None:
            for number in numbers:
                await batcher.ask("key", item(number), FakeContext())
                for _ in range(5):
                    await asyncio.sleep(0)

        await asyncio.gather(*(caller() for _ in range(SIZE.callers_for(4))))
        return echo

    assert len(asyncio.run(story()).calls) <= 210


def test_no_more_calls_are_under_way_than_the_model_takes():
    _, echo = packing([item(number) for number in range(300)], calls=3)
    assert echo.most == 3


def test_what_belongs_together_travels_together():
    items = [item(f"{number % 5}:{number}", affinity=str(number % 5)) for number in range(50)]
    _, echo = packing(items)
    assert len(echo.calls) == 5
    assert all(len({identity[0] for identity in call}) == 1 for call in echo.calls)


def test_a_call_holds_only_so_many_tokens():
    _, echo = packing([item(number, tokens=300) for number in range(9)])
    assert [len(call) for call in echo.calls] == [3, 3, 3]


def test_what_is_long_or_must_be_alone_travels_alone():
    items = [
        item("long", tokens=5000),
        item("alone", alone=True),
        *(item(number) for number in range(5)),
    ]
    _, echo = packing(items)
    assert sorted(map(len, echo.calls)) == [1, 1, 5]
    assert ["long"] in echo.calls
    assert ["alone"] in echo.calls


def test_different_piles_share_no_call():
    async def story() -> Echo:
        echo = Echo()
        batcher = Batcher(echo, SIZE, 64)
        first = asking(batcher, [item(number) for number in range(3)], "one")
        other = asking(batcher, [item(number) for number in range(3)], "other")
        await asyncio.gather(*first, *other)
        return echo

    assert [len(call) for call in asyncio.run(story()).calls] == [3, 3]


def test_the_same_question_is_asked_once_and_everybody_gets_the_answer():
    answers, echo = packing([item("same"), item("other"), item("same"), item("same")])
    assert answers == ["answer to same", "answer to other", "answer to same", "answer to same"]
    assert echo.calls == [["same", "other"]]


def test_who_asks_while_the_same_is_under_way_gets_its_answer():
    async def story() -> tuple[list[Any], Echo]:
        echo = Echo()
        echo.gate.clear()
        batcher = Batcher(echo, SIZE, 64)
        first = asking(batcher, [item("same")])
        await echo.called.wait()
        second = asking(batcher, [item("same")])
        await asyncio.sleep(0)
        echo.gate.set()
        return await asyncio.gather(*first, *second), echo

    answers, echo = asyncio.run(story())
    assert answers == ["answer to same"] * 2
    assert echo.calls == [["same"]]


def test_who_asks_right_after_an_answer_is_not_forgotten():
    async def story() -> list[Any]:
        echo = Echo()
        batcher = Batcher(echo, SIZE, 64)
        task = asking(batcher, [item("same")])[0]
        again: list[asyncio.Task[Any]] = []
        task.add_done_callback(lambda _: again.extend(asking(batcher, [item("same")])))
        await task
        await asyncio.sleep(0)
        return await asyncio.wait_for(asyncio.gather(*again), 5)

    assert asyncio.run(story()) == ["answer to same"]


def test_what_is_known_is_not_asked():
    echo = Echo()
    echo.answers["7"] = "known"
    answers, _ = packing([item(number) for number in range(10)], echo)
    assert answers[7] == "known"
    assert echo.calls == [[str(number) for number in range(10) if number != 7]]


def test_a_look_up_that_fails_is_its_callers_affair_alone():
    answers, _ = packing([item("out of reach"), item("fine")])
    assert isinstance(answers[0], StoreUnavailable)
    assert answers[1] == "answer to fine"


def test_what_an_answer_passes_over_is_asked_once_more_alone():
    echo = Echo(
        lambda entries: [None if entry == "3" and len(entries) > 1 else entry for entry in entries]
    )
    answers, _ = packing([item(number) for number in range(10)], echo)
    assert answers == [str(number) for number in range(10)]
    assert [len(call) for call in echo.calls] == [10, 1]


def test_what_is_passed_over_twice_has_no_answer():
    echo = Echo(lambda entries: [None if entry == "3" else entry for entry in entries])
    answers, _ = packing([item(number) for number in range(10)], echo)
    assert answers[3] is None
    assert [len(call) for call in echo.calls] == [10, 1]


class Particular(Transient):
    """An error that can't be made from its message alone."""

    def __init__(self, message: str, received: int) -> None:
        super().__init__(message, retry_after=3.0)
        self.received = received


@pytest.mark.parametrize(
    "error",
    [
        Pause("no money"),
        Transient("busy", retry_after=3.0),
        Particular("cut", 7),
        KeyError("a bug"),
    ],
)
def test_an_error_reaches_everybody_in_the_call(error: Exception):
    def fail(entries: list[str]) -> Any:
        raise error

    answers, echo = packing([item(number) for number in range(10)], Echo(fail))
    assert {type(answer) for answer in answers} == {type(error)}
    assert len(echo.calls) == 1
    if isinstance(error, Transient):
        assert all(answer.retry_after == 3.0 for answer in answers)
        assert len({id(answer) for answer in answers}) == 10
        assert {str(answer) for answer in answers} == {str(error)}


@pytest.mark.parametrize("kind", [Declined, TooLong, Malformed])
def test_one_comment_that_can_not_be_answered_does_not_spoil_the_others(kind: type[Exception]):
    def answer(entries: list[str]) -> list[str]:
        if "3" in entries:
            raise kind("not this one")
        return entries

    answers, echo = packing([item(number) for number in range(10)], Echo(answer))
    assert isinstance(answers.pop(3), kind)
    assert answers == [str(number) for number in range(10) if number != 3]
    assert len(echo.calls) == 11


def test_who_stops_waiting_leaves_the_others_alone():
    async def story() -> tuple[list[Any], Echo]:
        echo = Echo()
        echo.gate.clear()
        tasks = asking(Batcher(echo, SIZE, 64), [item(number) for number in range(3)])
        await echo.called.wait()
        tasks[1].cancel()
        await asyncio.sleep(0)
        echo.gate.set()
        return await asyncio.gather(*tasks, return_exceptions=True), echo

    answers, echo = asyncio.run(story())
    assert [answers[0], answers[2]] == ["answer to 0", "answer to 2"]
    assert isinstance(answers[1], asyncio.CancelledError)
    assert echo.cancelled == 0


def test_when_nobody_waits_any_more_the_call_is_cancelled_and_its_slot_is_free():
    async def story() -> tuple[list[Any], Echo]:
        echo = Echo()
        echo.gate.clear()
        batcher = Batcher(echo, SIZE, calls=1)
        tasks = asking(batcher, [item(number) for number in range(3)])
        await echo.called.wait()
        pending = asking(batcher, [item("next"), item("gone")])
        for _ in range(5):
            await asyncio.sleep(0)
        for task in (*tasks, pending[1]):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        echo.gate.set()
        return await asyncio.gather(*pending, return_exceptions=True), echo

    answers, echo = asyncio.run(story())
    assert echo.cancelled == 1
    assert answers[0] == "answer to next"
    assert echo.calls[1:] == [["next"]]


def test_what_a_call_costs_is_divided_among_those_in_it():
    async def story() -> list[FakeContext]:
        batcher = Batcher(Echo(), BatchSize(10, 10_000), 64)
        contexts = [FakeContext() for _ in range(7)]
        items = [item(number, tokens=10 * (number + 1)) for number in range(7)]
        await asyncio.gather(
            *(
                batcher.ask("key", context, ctx)
                for context, ctx in zip(items, contexts, strict=True)
            )  # type: ignore[arg-type]
        )
        return contexts

    contexts = asyncio.run(story())
    assert sum(ctx.own.input_tokens for ctx in contexts) == 1000
    assert sum(ctx.own.output_tokens for ctx in contexts) == 100
    assert sum(ctx.own.calls for ctx in contexts) == 1
    assert sum(ctx.own.cost for ctx in contexts) == pytest.approx(0.01, abs=1e-15)
    shares = [ctx.own.input_tokens for ctx in contexts]
    assert shares == sorted(shares)
    assert shares[0] > 0


@given(
    sizes=st.lists(st.integers(0, 5000), min_size=1, max_size=40),
    tokens=st.tuples(st.integers(0, 10**7), st.integers(0, 10**6)),
    cost=st.one_of(st.none(), st.floats(0, 1000)),
)
def test_the_parts_add_up_to_the_whole(
    sizes: list[int], tokens: tuple[int, int], cost: float | None
):
    contexts: Any = [FakeContext() for _ in sizes]
    SharedContext(contexts, sizes).usage(input_tokens=tokens[0], output_tokens=tokens[1], cost=cost)
    assert sum(ctx.own.input_tokens for ctx in contexts) == tokens[0]
    assert sum(ctx.own.output_tokens for ctx in contexts) == tokens[1]
    assert all(ctx.own.input_tokens >= 0 and ctx.own.cost >= -1e-12 for ctx in contexts)
    assert sum(ctx.own.calls for ctx in contexts) == 1
    if cost is None:
        assert sum(ctx.own.unpriced for ctx in contexts) == 1
    else:
        assert sum(ctx.own.cost for ctx in contexts) == pytest.approx(cost, rel=1e-12)
