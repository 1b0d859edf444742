"""Locks: one token at a time, an epoch that only rises."""

from __future__ import annotations

from holdfast.model.commands import Acquire, Acquired, ForceRelease, Held, ReleaseLock, RenewLocks
from holdfast.model.lease import LockInfo
from holdfast.testing.contracts.store_topics.harness import (
    TTL,
    StoreHarness,
    StoreTopics,
    store_test,
)

YEAR = 365 * 86_400.0


def take(token: str, name: str = "lock", ttl: float = TTL) -> Acquire:
    return Acquire(name, token, f"owner of {token}", ttl)


class LockTopics(StoreTopics):
    @store_test
    async def test_a_free_lock_is_taken(self, harness: StoreHarness) -> None:
        assert await harness.do(take("a")) == Acquired(1)
        assert await harness.store.locks() == [
            LockInfo("lock", 1, "owner of a", harness.clock.now(), TTL)
        ]

    @store_test
    async def test_a_held_lock_says_who_holds_it_and_for_how_long(
        self, harness: StoreHarness
    ) -> None:
        await harness.do(take("a"))
        harness.clock.advance(10.0)
        assert await harness.do(take("b")) == Held("owner of a", TTL - 10.0, 1)

    @store_test
    async def test_the_holders_token_gets_the_same_epoch_again(self, harness: StoreHarness) -> None:
        await harness.do(take("a"))
        harness.clock.advance(TTL - 1.0)
        assert await harness.do(take("a")) == Acquired(1)
        # Its owner counts from the second request, so the lock has to last from there.
        harness.clock.advance(TTL - 1.0)
        assert await harness.do(take("b")) == Held("owner of a", 1.0, 1)

    @store_test
    async def test_asking_again_never_shortens_the_lock(self, harness: StoreHarness) -> None:
        await harness.do(take("a"))
        await harness.do(take("a", ttl=1.0))
        harness.clock.advance(TTL - 1.0)
        assert isinstance(await harness.do(take("b")), Held)

    @store_test
    async def test_every_other_acquisition_raises_the_epoch(self, harness: StoreHarness) -> None:
        assert await harness.do(take("a")) == Acquired(1)
        await harness.do(ReleaseLock("lock", "a"))
        assert await harness.do(take("b")) == Acquired(2)
        harness.clock.advance(TTL)
        assert await harness.do(take("c")) == Acquired(3)

    @store_test
    async def test_a_token_that_comes_back_too_late_gets_a_new_epoch(
        self, harness: StoreHarness
    ) -> None:
        await harness.do(take("a"))
        harness.clock.advance(TTL)
        assert await harness.do(take("a")) == Acquired(2)

    @store_test
    async def test_locks_are_apart(self, harness: StoreHarness) -> None:
        assert await harness.do(take("a", "one")) == Acquired(1)
        assert await harness.do(take("b", "two")) == Acquired(1)
        assert [lock.name for lock in await harness.store.locks()] == ["one", "two"]

    @store_test
    async def test_only_locks_that_are_held_now_are_listed(self, harness: StoreHarness) -> None:
        for name in ("ended", "released", "forced"):
            await harness.do(take("a", name))
        await harness.do(ReleaseLock("released", "a"))
        await harness.do(ForceRelease("forced", "ann", "stuck"))
        harness.clock.advance(TTL)
        await harness.do(take("a", "held"))
        assert [lock.name for lock in await harness.store.locks()] == ["held"]

    # --- renewing ---

    @store_test
    async def test_a_renewed_lock_lasts_from_the_renewal(self, harness: StoreHarness) -> None:
        await harness.do(take("a"))
        harness.clock.advance(TTL - 1.0)
        assert await harness.do(RenewLocks([("lock", "a")], TTL)) == []
        harness.clock.advance(TTL - 1.0)
        assert await harness.do(take("b")) == Held("owner of a", 1.0, 1)

    @store_test
    async def test_renewing_never_shortens_the_lock(self, harness: StoreHarness) -> None:
        await harness.do(take("a"))
        assert await harness.do(RenewLocks([("lock", "a")], 1.0)) == []
        harness.clock.advance(TTL - 1.0)
        assert isinstance(await harness.do(take("b")), Held)

    @store_test
    async def test_renewing_names_the_lost_locks_and_extends_the_others(
        self, harness: StoreHarness
    ) -> None:
        await harness.apply(take("a", "mine"), take("b", "theirs"), take("a", "ended", ttl=1.0))
        harness.clock.advance(2.0)
        locks = [("mine", "a"), ("theirs", "a"), ("ended", "a"), ("unknown", "a")]
        assert sorted(await harness.do(RenewLocks(locks, TTL))) == [
            ("ended", "a"),
            ("theirs", "a"),
            ("unknown", "a"),
        ]
        assert await harness.do(take("c", "mine")) == Held("owner of a", TTL, 1)
        assert await harness.do(take("c", "ended")) == Acquired(2)

    # --- releasing ---

    @store_test
    async def test_a_released_lock_is_free(self, harness: StoreHarness) -> None:
        await harness.do(take("a"))
        assert await harness.do(ReleaseLock("lock", "a")) is True
        assert await harness.do(ReleaseLock("lock", "a")) is False
        assert await harness.store.locks() == []

    @store_test
    async def test_only_the_holder_releases(self, harness: StoreHarness) -> None:
        await harness.do(take("a"))
        assert await harness.do(ReleaseLock("lock", "b")) is False
        assert await harness.do(ReleaseLock("unknown", "a")) is False
        assert await harness.do(take("b")) == Held("owner of a", TTL, 1)

    @store_test
    async def test_releasing_too_late_says_so_and_harms_nobody(self, harness: StoreHarness) -> None:
        await harness.do(take("a"))
        harness.clock.advance(TTL)
        assert await harness.do(ReleaseLock("lock", "a")) is False
        await harness.do(take("b"))
        assert await harness.do(ReleaseLock("lock", "a")) is False
        assert [lock.owner for lock in await harness.store.locks()] == ["owner of b"]

    @store_test
    async def test_a_forced_release_raises_the_epoch_and_is_audited(
        self, harness: StoreHarness
    ) -> None:
        await harness.do(take("a"))
        assert await harness.do(ForceRelease("lock", "ann", "stuck")) is True
        assert await harness.do(RenewLocks([("lock", "a")], TTL)) == [("lock", "a")]
        assert await harness.do(ReleaseLock("lock", "a")) is False
        assert await harness.do(take("b")) == Acquired(3)
        [entry] = await harness.store.audit()
        assert (entry.actor, entry.target, entry.reason) == ("ann", "lock", "stuck")
        assert entry.at == harness.clock.now()

    @store_test
    async def test_forcing_a_free_lock_says_that_nobody_held_it(
        self, harness: StoreHarness
    ) -> None:
        assert await harness.do(ForceRelease("lock", "ann", "stuck")) is False
        await harness.do(take("a"))
        harness.clock.advance(TTL)
        assert await harness.do(ForceRelease("lock", "ann", "stuck")) is False

    @store_test
    async def test_wall_clock_jumps_do_not_move_locks(self, harness: StoreHarness) -> None:
        await harness.do(take("a"))
        harness.clock.jump_wall(YEAR)
        assert await harness.do(take("b")) == Held("owner of a", TTL, 1)
        harness.clock.jump_wall(-2 * YEAR)
        assert await harness.do(take("b")) == Held("owner of a", TTL, 1)
        harness.clock.advance(TTL)
        assert await harness.do(take("b")) == Acquired(2)

    @store_test
    async def test_the_token_never_leaves_the_store(self, harness: StoreHarness) -> None:
        await harness.do(Acquire("lock", "s3cret", "w1", TTL))
        texts = [
            await harness.do(Acquire("lock", "other", "w2", TTL)),
            *await harness.store.locks(),
        ]
        assert "s3cret" not in repr(texts)
