"""How fast a model is asked, in virtual time."""

import asyncio
from collections import Counter
from itertools import pairwise

import pytest

from holdfast.adapters.llm.errors import RateLimited
from holdfast.adapters.llm.pacing import Pacer
from holdfast.errors import HoldfastError, Transient
from holdfast.ports.language_model import Question
from holdfast.testing.fakellm import Fault, always, in_turn, when


class Vendor:
    """Calls that take a second; remembers when each began."""

    def __init__(self, virtual_time, pacer: Pacer, seconds: float = 1.0) -> None:
        self.pacer = pacer
        self.seconds = seconds
        self.starts: list[float] = []
        self.order: list[int] = []
        self._stage = virtual_time
        self._begin = virtual_time.now

    async def call(self, number: int = 0, tokens: int = 1, actual: int | None = None) -> None:
        async with self.pacer.turn(self.pacer.position(), tokens) as turn:
            self.starts.append(round(self._stage.now - self._begin, 6))
            self.order.append(number)
            await asyncio.sleep(self.seconds)
            turn.succeeded(tokens if actual is None else actual)

    async def calls(self, count: int, **options) -> None:
        await asyncio.gather(*(self.call(number, **options) for number in range(count)))


def test_no_more_are_in_flight_than_allowed(virtual_time):
    vendor = Vendor(virtual_time, Pacer(4))
    virtual_time.run(vendor.calls(10))
    assert Counter(vendor.starts) == {0.0: 4, 1.0: 4, 2.0: 2}


def test_requests_are_spread_evenly_over_the_minute(virtual_time):
    vendor = Vendor(virtual_time, Pacer(100, requests_per_minute=300))
    virtual_time.run(vendor.calls(60))
    gaps = [
        later - earlier for earlier, later in zip(vendor.starts, vendor.starts[1:], strict=False)
    ]
    assert vendor.starts[-1] == pytest.approx(59 * 0.2, abs=0.11)
    assert all(gap == pytest.approx(0.2) for gap in gaps[1:])


def test_after_a_quiet_hour_there_is_no_burst(virtual_time):
    vendor = Vendor(virtual_time, Pacer(100, requests_per_minute=300))

    async def story() -> None:
        await vendor.calls(3)
        await asyncio.sleep(3600)
        await vendor.calls(10)

    virtual_time.run(story())
    assert vendor.starts[-1] - vendor.starts[3] > 1.5


def test_tokens_are_counted_as_they_were_really_used(virtual_time):
    generous = Vendor(virtual_time, Pacer(100, tokens_per_minute=60_000))
    virtual_time.run(generous.calls(60, tokens=1_000, actual=1_000))
    frugal = Vendor(virtual_time, Pacer(100, tokens_per_minute=60_000))
    virtual_time.run(frugal.calls(60, tokens=1_000, actual=100))
    # 60,000 tokens at 1,000 a second, ten seconds of them in advance.
    assert generous.starts[-1] == pytest.approx(49, abs=1)
    assert frugal.starts[-1] < 10


def test_a_question_larger_than_a_minute_allows_is_asked_and_paid_off(virtual_time):
    vendor = Vendor(virtual_time, Pacer(100, tokens_per_minute=600))
    virtual_time.run(vendor.calls(2, tokens=1_000))
    assert vendor.starts == [0.0, 90.0]


def test_the_first_to_come_is_the_first_to_go(virtual_time):
    vendor = Vendor(virtual_time, Pacer(3))
    virtual_time.run(vendor.calls(50))
    assert vendor.order == list(range(50))


def test_being_told_to_slow_down_stops_everybody(virtual_time):
    pacer = Pacer(4)
    starts: list[float] = []
    begin = virtual_time.now

    async def one_call(number: int) -> None:
        position = pacer.position()
        while True:
            async with pacer.turn(position, 1) as turn:
                starts.append(round(virtual_time.now - begin, 3))
                await asyncio.sleep(0.1)
                if virtual_time.now - begin < 5:
                    turn.rate_limited(7.0)
                    continue
                turn.succeeded(1)
                return

    virtual_time.run(asyncio.wait_for(_all(one_call, 8), 100))
    assert starts[:4] == [0, 0, 0, 0]
    assert min(starts[4:]) == pytest.approx(7.1, abs=0.01)


def test_after_a_cool_down_the_calls_start_one_by_one(virtual_time):
    pacer = Pacer(64)
    starts: list[float] = []

    async def one_call(number: int) -> None:
        position = pacer.position()
        async with pacer.turn(position, 1) as turn:
            await asyncio.sleep(0.5)
            turn.rate_limited(2.0)
        async with pacer.turn(position, 1) as turn:
            starts.append(virtual_time.now)
            await asyncio.sleep(0.5)
            turn.succeeded(1)

    virtual_time.run(_all(one_call, 64))
    gaps = [later - earlier for earlier, later in pairwise(starts[:32])]
    assert min(gaps) >= 0.5 / 64
    assert sum(gaps) <= 1.0


def test_who_was_turned_away_keeps_the_place(virtual_time):
    harness = virtual_time.harness(
        latency=0.1,
        faults=when(lambda c: c.tries == 1 and c.text == "0", Fault("rate_limit", 1.0)),
        address={"in_flight": 1},
    )
    order: list[str] = []

    async def one_call(number: int) -> None:
        await harness.ask(Question("s", str(number), "claims"))
        order.append(str(number))

    virtual_time.run(_all(one_call, 5))
    assert order == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize(
    ("vendor", "latency", "rpm"),
    [
        *(("openai", latency, rpm) for latency in (0.02, 0.5, 2.0) for rpm in (None, 2_400, 2_280)),
        *((vendor, latency, None) for vendor in ("anthropic", "google") for latency in (0.02, 0.5)),
    ],
)
def test_under_a_limit_of_40_a_second_400_calls_lose_none(virtual_time, vendor, latency, rpm):
    harness = virtual_time.harness(
        vendor, per_second=40, latency=latency, address={"rpm": rpm} if rpm else {}
    )
    begin = virtual_time.now
    results = virtual_time.run(
        _all(lambda number: harness.ask(Question("s", f"text {number}", "claims")), 400)
    )
    assert len(results) == 400
    tries = Counter(call.text for call in harness.fake.calls)
    assert max(tries.values()) <= 6
    rate = 400 / (virtual_time.now - begin)
    bound = min(40.0, 64 / latency)
    assert rate > bound * (0.3 if rpm is None else 0.75), f"{rate:.1f} a second of {bound:.1f}"
    if rpm is not None:
        assert harness.fake.refused[429] <= 20


def test_a_long_cool_down_is_not_waited_for_with_a_lease_in_hand(virtual_time):
    harness = virtual_time.harness(latency=0.5, faults=always(Fault("rate_limit", 3600.0)))
    begin = virtual_time.now

    async def one_call(number: int) -> float | None:
        with pytest.raises(Transient) as caught:
            await harness.ask()
        return caught.value.retry_after

    waits = virtual_time.run(_all(one_call, 200))
    assert virtual_time.now - begin < 1
    assert all(wait == pytest.approx(3600, abs=2) for wait in waits)
    assert len(harness.fake.calls) == 64
    with pytest.raises(Transient, match="3600 s before the next call"):
        virtual_time.run(harness.ask())
    assert len(harness.fake.calls) == 64


def test_without_a_time_to_wait_the_pauses_grow(virtual_time):
    harness = virtual_time.harness(faults=always("overloaded"))
    begin = virtual_time.now
    with pytest.raises(RateLimited):
        virtual_time.run(harness.ask())
    assert 1 + 2 + 4 + 8 + 16 + 30 * 3 <= virtual_time.now - begin <= 150


def test_one_success_makes_the_pauses_short_again(virtual_time):
    harness = virtual_time.harness(faults=in_turn("overloaded", "overloaded", None, "overloaded"))
    virtual_time.run(harness.ask())
    begin = virtual_time.now
    virtual_time.run(harness.ask())
    assert virtual_time.now - begin < 3


def test_one_bad_moment_halves_the_window_once(virtual_time):
    pacer = Pacer(64)

    async def one_call(number: int) -> None:
        async with pacer.turn(pacer.position(), 1) as turn:
            await asyncio.sleep(0.1)
            turn.rate_limited(1.0)

    virtual_time.run(_all(one_call, 64))
    assert pacer._window == 32


def test_an_outage_does_not_make_the_window_ever_smaller(virtual_time):
    harness = virtual_time.harness(faults=in_turn(*["overloaded"] * 6))
    virtual_time.run(harness.ask())
    assert harness.model._pacer._window > 32


def test_the_window_grows_back(virtual_time):
    pacer = Pacer(16)
    pacer._window = 2.0
    vendor = Vendor(virtual_time, pacer)
    virtual_time.run(vendor.calls(300))
    assert pacer._window == 16


def test_a_cancelled_waiter_gives_its_place_up(virtual_time):
    vendor = Vendor(virtual_time, Pacer(1))

    async def story() -> None:
        tasks = [asyncio.create_task(vendor.call(number)) for number in range(5)]
        await asyncio.sleep(0.5)
        tasks[0].cancel()
        tasks[2].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    virtual_time.run(story())
    assert vendor.order == [0, 1, 3, 4]
    assert (vendor.pacer._busy, vendor.pacer._queue) == (0, [])


def test_one_who_is_cancelled_in_the_moment_of_being_let_in_blocks_nobody(virtual_time):
    vendor = Vendor(virtual_time, Pacer(1))

    async def story() -> None:
        first = asyncio.create_task(vendor.call(0))
        second = asyncio.create_task(vendor.call(1))
        third = asyncio.create_task(vendor.call(2))
        await first
        second.cancel()
        await asyncio.gather(second, third, return_exceptions=True)

    virtual_time.run(story())
    assert vendor.order[-1] == 2
    assert vendor.pacer._busy == 0


def test_other_errors_do_not_slow_the_others_down(virtual_time):
    harness = virtual_time.harness(faults=in_turn("error", "reset"), address={"in_flight": 2})

    async def one_call(number: int) -> bool:
        try:
            await harness.ask()
        except HoldfastError:
            return False
        return True

    begin = virtual_time.now
    assert sum(virtual_time.run(_all(one_call, 10))) == 8
    assert virtual_time.now == begin


async def _all(call, count: int):
    return await asyncio.gather(*(call(number) for number in range(count)))
