"""Rate limits across processes, in virtual time."""

import asyncio

import pytest

from holdfast.adapters.memory.store import MemoryStore
from holdfast.adapters.records import StoreRecords
from holdfast.engine.shared_rates import KEPT, PREFIX, SharedRate
from holdfast.errors import StoreUnavailable
from holdfast.testing.world import World


class Vendor:
    """A store, processes that ask one vendor, and when their requests were sent."""

    def __init__(self):
        self.world = World()
        self.store = MemoryStore(self.world.clock)
        self.records = StoreRecords(self.store)
        self.sent: list[tuple[float, str]] = []

    def rate(self, **limits):
        limits = {"requests_per_minute": None, "tokens_per_minute": None, **limits}
        return SharedRate(self.records, "vendor", **limits)

    async def ask(self, name, rate, tokens=0, correction=0):
        await rate.take(tokens)
        self.sent.append((self.world.clock.monotonic(), name))
        rate.correct(correction)

    def run(self, *work, within=600.0):
        async def together():
            await self.store.open()
            await asyncio.gather(*work)

        self.world.run(together(), self.world.process("test"), within=within)

    def most_within(self, seconds):
        times = [at for at, _ in self.sent]
        return max(sum(start <= at < start + seconds for at in times) for start in times)


@pytest.fixture
def vendor():
    vendor = Vendor()
    yield vendor
    vendor.world.close()


def test_processes_send_no_more_than_the_limit_together(vendor):
    work = []
    for name in ("a", "b", "c"):
        rate = vendor.rate(requests_per_minute=600)
        work += [vendor.ask(name, rate) for _ in range(40)]
    vendor.run(*work)
    first, last = vendor.sent[0][0], vendor.sent[-1][0]
    assert 11.7 <= last - first <= 12.5  # 120 requests at 10 a second
    assert vendor.most_within(1.0) <= 12  # one may be early, and one stand on the edge
    assert vendor.most_within(10.0) <= 102
    half = [name for _, name in vendor.sent[:60]]
    assert all(half.count(name) >= 10 for name in "abc")  # nobody takes everything in advance


def test_tokens_are_counted_together_and_corrected(vendor):
    rates = [vendor.rate(tokens_per_minute=6000) for _ in range(2)]  # 100 a second

    async def talk(rate):
        for _ in range(10):
            await vendor.ask("", rate, tokens=500, correction=-300)

    vendor.run(*map(talk, rates))
    seconds = vendor.sent[-1][0] - vendor.sent[0][0]
    # 20 requests of 200 tokens at 100 a second, ten seconds' worth of which may be spent at once
    assert 24 <= seconds <= 36


def test_one_process_alone_has_all_of_it(vendor):
    rate = vendor.rate(requests_per_minute=600)
    vendor.run(*(vendor.ask("a", rate) for _ in range(50)))
    assert vendor.sent[-1][0] - vendor.sent[0][0] <= 5.0


def test_nothing_is_sent_while_the_store_is_away(vendor, monkeypatch):
    rate = vendor.rate(requests_per_minute=600)

    async def away(key):
        raise StoreUnavailable("away")

    async def story():
        with monkeypatch.context() as patch:
            patch.setattr(vendor.store, "record", away)
            answers = await asyncio.gather(
                *(vendor.ask("a", rate) for _ in range(3)), return_exceptions=True
            )
        assert [type(answer) for answer in answers] == [StoreUnavailable] * 3
        await vendor.ask("a", rate)

    vendor.run(story())
    assert len(vendor.sent) == 1


def test_a_caller_who_gives_up_keeps_nobody_waiting(vendor):
    rate = vendor.rate(requests_per_minute=60)

    async def story():
        tasks = [asyncio.create_task(vendor.ask(str(n), rate)) for n in range(5)]
        await asyncio.sleep(0.5)
        tasks[3].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    vendor.run(story())
    assert [name for _, name in vendor.sent] == ["0", "1", "2", "4"]


def test_a_clock_of_the_store_that_was_set_back_stops_nobody(vendor):
    rate = vendor.rate(requests_per_minute=60)

    async def story():
        await vendor.ask("a", rate)
        vendor.world.clock.jump_wall(-2 * KEPT)
        await vendor.ask("a", rate)
        assert len((await vendor.records.list(PREFIX)).records) == 1

    vendor.run(story(), within=10.0)
    assert len(vendor.sent) == 2
