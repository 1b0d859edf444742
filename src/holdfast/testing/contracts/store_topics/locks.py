"""Locks: one token at a time, an epoch that only rises."""

from __future__ import annotations

from holdfast.model.commands import Acquire, Acquired, ForceRelease, Held, ReleaseLock, RenewLocks
from holdfast.model.lease import LockInfo
from holdfast.testing.contracts.store_topics.scene import TTL, Scene, StoreTopics, story

YEAR = 365 * 86_400.0


def take(token: str, name: str = "lock", ttl: float = TTL) -> Acquire:
    return Acquire(name, token, f"owner of {token}", ttl)


class LockTopics(StoreTopics):
    @story
    async def test_a_free_lock_is_taken(self, scene: Scene) -> None:
        assert await scene.do(take("a")) == Acquired(1)
        assert await scene.store.locks() == [
            LockInfo("lock", 1, "owner of a", scene.clock.now(), TTL)
        ]

    @story
    async def test_a_held_lock_says_who_holds_it_and_for_how_long(self, scene: Scene) -> None:
        await scene.do(take("a"))
        scene.clock.advance(10.0)
        assert await scene.do(take("b")) == Held("owner of a", TTL - 10.0, 1)

    @story
    async def test_the_holders_token_gets_the_same_epoch_again(self, scene: Scene) -> None:
        await scene.do(take("a"))
        scene.clock.advance(TTL - 1.0)
        assert await scene.do(take("a")) == Acquired(1)
        # Its owner counts from the second request, so the lock has to last from there.
        scene.clock.advance(TTL - 1.0)
        assert await scene.do(take("b")) == Held("owner of a", 1.0, 1)

    @story
    async def test_asking_again_never_shortens_the_lock(self, scene: Scene) -> None:
        await scene.do(take("a"))
        await scene.do(take("a", ttl=1.0))
        scene.clock.advance(TTL - 1.0)
        assert isinstance(await scene.do(take("b")), Held)

    @story
    async def test_every_other_acquisition_raises_the_epoch(self, scene: Scene) -> None:
        assert await scene.do(take("a")) == Acquired(1)
        await scene.do(ReleaseLock("lock", "a"))
        assert await scene.do(take("b")) == Acquired(2)
        scene.clock.advance(TTL)
        assert await scene.do(take("c")) == Acquired(3)

    @story
    async def test_a_token_that_comes_back_too_late_gets_a_new_epoch(self, scene: Scene) -> None:
        await scene.do(take("a"))
        scene.clock.advance(TTL)
        assert await scene.do(take("a")) == Acquired(2)

    @story
    async def test_locks_are_apart(self, scene: Scene) -> None:
        assert await scene.do(take("a", "one")) == Acquired(1)
        assert await scene.do(take("b", "two")) == Acquired(1)
        assert [lock.name for lock in await scene.store.locks()] == ["one", "two"]

    @story
    async def test_only_locks_that_are_held_now_are_listed(self, scene: Scene) -> None:
        for name in ("ended", "released", "forced"):
            await scene.do(take("a", name))
        await scene.do(ReleaseLock("released", "a"))
        await scene.do(ForceRelease("forced", "ann", "stuck"))
        scene.clock.advance(TTL)
        await scene.do(take("a", "held"))
        assert [lock.name for lock in await scene.store.locks()] == ["held"]

    # --- renewing ---

    @story
    async def test_a_renewed_lock_lasts_from_the_renewal(self, scene: Scene) -> None:
        await scene.do(take("a"))
        scene.clock.advance(TTL - 1.0)
        assert await scene.do(RenewLocks([("lock", "a")], TTL)) == []
        scene.clock.advance(TTL - 1.0)
        assert await scene.do(take("b")) == Held("owner of a", 1.0, 1)

    @story
    async def test_renewing_never_shortens_the_lock(self, scene: Scene) -> None:
        await scene.do(take("a"))
        assert await scene.do(RenewLocks([("lock", "a")], 1.0)) == []
        scene.clock.advance(TTL - 1.0)
        assert isinstance(await scene.do(take("b")), Held)

    @story
    async def test_renewing_names_the_lost_locks_and_extends_the_others(self, scene: Scene) -> None:
        await scene.apply(take("a", "mine"), take("b", "theirs"), take("a", "ended", ttl=1.0))
        scene.clock.advance(2.0)
        held = [("mine", "a"), ("theirs", "a"), ("ended", "a"), ("unknown", "a")]
        assert sorted(await scene.do(RenewLocks(held, TTL))) == [
            ("ended", "a"),
            ("theirs", "a"),
            ("unknown", "a"),
        ]
        assert await scene.do(take("c", "mine")) == Held("owner of a", TTL, 1)
        assert await scene.do(take("c", "ended")) == Acquired(2)

    # --- releasing ---

    @story
    async def test_a_released_lock_is_free(self, scene: Scene) -> None:
        await scene.do(take("a"))
        assert await scene.do(ReleaseLock("lock", "a")) is True
        assert await scene.do(ReleaseLock("lock", "a")) is False
        assert await scene.store.locks() == []

    @story
    async def test_only_the_holder_releases(self, scene: Scene) -> None:
        await scene.do(take("a"))
        assert await scene.do(ReleaseLock("lock", "b")) is False
        assert await scene.do(ReleaseLock("unknown", "a")) is False
        assert await scene.do(take("b")) == Held("owner of a", TTL, 1)

    @story
    async def test_releasing_too_late_says_so_and_harms_nobody(self, scene: Scene) -> None:
        await scene.do(take("a"))
        scene.clock.advance(TTL)
        assert await scene.do(ReleaseLock("lock", "a")) is False
        await scene.do(take("b"))
        assert await scene.do(ReleaseLock("lock", "a")) is False
        assert [lock.owner for lock in await scene.store.locks()] == ["owner of b"]

    @story
    async def test_a_forced_release_raises_the_epoch_and_is_audited(self, scene: Scene) -> None:
        await scene.do(take("a"))
        assert await scene.do(ForceRelease("lock", "ann", "stuck")) is True
        assert await scene.do(RenewLocks([("lock", "a")], TTL)) == [("lock", "a")]
        assert await scene.do(ReleaseLock("lock", "a")) is False
        assert await scene.do(take("b")) == Acquired(3)
        [entry] = await scene.store.audit()
        assert (entry.actor, entry.target, entry.reason) == ("ann", "lock", "stuck")
        assert entry.at == scene.clock.now()

    @story
    async def test_forcing_a_free_lock_says_that_nobody_held_it(self, scene: Scene) -> None:
        assert await scene.do(ForceRelease("lock", "ann", "stuck")) is False
        await scene.do(take("a"))
        scene.clock.advance(TTL)
        assert await scene.do(ForceRelease("lock", "ann", "stuck")) is False

    @story
    async def test_wall_clock_jumps_do_not_move_locks(self, scene: Scene) -> None:
        await scene.do(take("a"))
        scene.clock.jump_wall(YEAR)
        assert await scene.do(take("b")) == Held("owner of a", TTL, 1)
        scene.clock.jump_wall(-2 * YEAR)
        assert await scene.do(take("b")) == Held("owner of a", TTL, 1)
        scene.clock.advance(TTL)
        assert await scene.do(take("b")) == Acquired(2)

    @story
    async def test_the_token_never_leaves_the_store(self, scene: Scene) -> None:
        await scene.do(Acquire("lock", "s3cret", "w1", TTL))
        shown = [await scene.do(Acquire("lock", "other", "w2", TTL)), *await scene.store.locks()]
        assert "s3cret" not in repr(shown)
