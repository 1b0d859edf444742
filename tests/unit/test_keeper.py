"""The lease keeper, in virtual time."""

import asyncio

import pytest

from holdfast.engine.keeper import LeaseKeeper
from holdfast.engine.lease import Lease
from holdfast.errors import ConfigurationError, LeaseLost, StoreUnavailable
from holdfast.model.commands import Renew
from holdfast.model.lease import LeaseTimes
from holdfast.testing.world import World

TIMES = LeaseTimes(ttl=30, renew=10, margin=5)


class Store:
    """Renews what it is asked to, unless told otherwise."""

    def __init__(self, clock):
        self.clock = clock
        self.refused = []
        self.error = None
        self.delay = 0.0
        self.renewals = []

    async def apply(self, commands):
        assert isinstance(commands[0], Renew)
        self.renewals.append(self.clock.monotonic())
        await asyncio.sleep(self.delay)
        if self.error is not None:
            raise self.error
        return [[pair for pair in command.held if pair[0] in self.refused] for command in commands]


class Harness:
    def __init__(self):
        self.world = World()
        self.clock = self.world.clock
        self.process = self.world.process("worker")
        self.store = Store(self.clock)
        self.keeper = LeaseKeeper(self.store, self.clock, TIMES, threaded=False)
        self.lost = []
        self.world.run(self.keeper.start(), self.process)

    def lease(self, subject="run", epoch=1, token="", times=None):
        until = (times or TIMES).trusted_until(self.clock.monotonic())
        on_lost = lambda _: self.lost.append((subject, epoch))  # noqa: E731
        lease = Lease(subject, epoch, until, self.clock, on_lost, token, times)
        self.keeper.keep(lease)
        return lease

    def pass_time(self, seconds):
        self.world.run_for(seconds)


@pytest.fixture
def harness():
    harness = Harness()
    yield harness
    harness.world.close()


def test_a_lease_is_renewed_for_as_long_as_it_is_kept(harness):
    lease = harness.lease()
    harness.pass_time(300)
    assert lease.trusted
    assert harness.lost == []
    assert len(harness.store.renewals) == pytest.approx(30, abs=1)


def test_a_lock_with_times_of_its_own_is_renewed_as_often_as_they_say(harness):
    lease = harness.lease("lane:x", token="t", times=LeaseTimes(ttl=3, renew=1, margin=0.5))
    harness.pass_time(60)
    assert lease.trusted
    assert len(harness.store.renewals) == pytest.approx(60, abs=3)


def test_a_lock_with_times_of_its_own_is_lost_by_its_own_margin(harness):
    harness.lease("lane:x", token="t", times=LeaseTimes(ttl=3, renew=1, margin=0.5))
    lease = harness.lease()
    harness.store.error = StoreUnavailable("away")
    harness.pass_time(4)
    assert harness.lost == [("lane:x", 1)]
    assert lease.trusted


def test_after_a_short_lock_was_dropped_renewals_are_as_before(harness):
    short = harness.lease("lane:x", token="t", times=LeaseTimes(ttl=3, renew=1, margin=0.5))
    harness.keeper.drop(short)
    lease = harness.lease()
    harness.pass_time(300)
    assert lease.trusted
    assert len(harness.store.renewals) == pytest.approx(30, abs=3)


def test_a_dropped_lease_is_not_renewed(harness):
    lease = harness.lease()
    harness.keeper.drop(lease)
    harness.pass_time(30)
    assert harness.store.renewals == []
    assert not lease.trusted


def test_a_lease_that_the_store_refuses_is_lost_at_once_and_once(harness):
    lease, other = harness.lease(), harness.lease("other")
    harness.store.refused = ["run"]
    harness.pass_time(30)
    assert harness.lost == [("run", 1)]
    assert other.trusted
    with pytest.raises(LeaseLost, match="no longer ours"):
        lease.check()


def test_a_lock_is_a_lease_with_a_token(harness):
    harness.lease("lock", token="secret")
    harness.store.refused = ["lock"]
    harness.pass_time(15)
    assert harness.lost == [("lock", 1)]


def test_when_the_store_does_not_answer_a_lease_ends_before_the_store_ends_it(harness):
    harness.lease()
    start = harness.clock.monotonic()
    harness.store.error = StoreUnavailable("away")
    while not harness.lost:
        harness.pass_time(0.5)
    assert 25 <= harness.clock.monotonic() - start <= 27


def test_when_a_renewal_hangs_a_lease_ends_in_time(harness):
    harness.lease()
    start = harness.clock.monotonic()
    harness.store.delay = 1000
    while not harness.lost:
        harness.pass_time(0.5)
    assert 25 <= harness.clock.monotonic() - start <= 27


def test_a_short_outage_does_no_harm(harness):
    lease = harness.lease()
    harness.store.error = StoreUnavailable("away")
    harness.pass_time(12)
    harness.store.error = None
    harness.pass_time(60)
    assert lease.trusted


@pytest.mark.parametrize("error", [RuntimeError("what"), ConfigurationError("damaged")])
def test_no_error_of_the_store_ends_the_keeper(harness, error):
    lease = harness.lease()
    harness.store.error = error
    harness.pass_time(11)
    harness.store.error = None
    harness.pass_time(60)
    assert lease.trusted


def test_a_process_that_was_paused_loses_its_leases_before_it_renews_them(harness):
    lease = harness.lease()
    harness.pass_time(5)
    renewed = len(harness.store.renewals)
    harness.process.pause(100)
    harness.pass_time(99)
    harness.pass_time(2)
    assert lease.lost
    assert len(harness.store.renewals) == renewed


def test_a_new_lease_on_the_same_run_does_not_hide_the_loss_of_the_old_one(harness):
    harness.lease(epoch=1)
    harness.lease(epoch=2)
    harness.store.error = StoreUnavailable("away")
    harness.pass_time(40)
    assert sorted(harness.lost) == [("run", 1), ("run", 2)]


def test_it_can_be_asked_to_look_at_once(harness):
    harness.pass_time(1)
    harness.lease()
    harness.store.refused = ["run"]
    harness.keeper.check_now()
    harness.pass_time(0.1)
    assert harness.lost == [("run", 1)]


def test_it_says_when_it_last_succeeded(harness):
    harness.lease()
    harness.pass_time(21)
    at = harness.keeper.renewed_at
    harness.store.error = StoreUnavailable("away")
    harness.pass_time(21)
    assert harness.keeper.renewed_at == at


# --- a lease itself -------------------------------------------------------------------------------


def test_trust_is_never_shortened(harness):
    lease = harness.lease()
    until = lease.trusted_until
    lease.extend(until - 10)
    assert lease.trusted_until == until


def test_a_lost_lease_is_never_found_again(harness):
    lease = harness.lease()
    lease.lose()
    lease.extend(harness.clock.monotonic() + 1000)
    assert not lease.trusted


def test_who_learns_of_the_loss_itself_is_not_called(harness):
    lease = harness.lease()
    lease.forfeit()
    lease.lose()
    assert harness.lost == []


# --- times ----------------------------------------------------------------------------------------


def test_trust_ends_before_the_lease():
    assert LeaseTimes(ttl=30, margin=5).trusted_until(100) == 125


@pytest.mark.parametrize(
    "times",
    [
        {"ttl": 10},
        {"renew": 0},
        {"renew": 26},
        {"margin": 0},
        {"margin": -1},
        {"sweep": 0},
    ],
)
def test_times_that_can_not_work_are_refused(times):
    with pytest.raises(ConfigurationError):
        LeaseTimes(**times)
