"""Dead letters: once each, with the original bytes, open until redriven or discarded."""

from __future__ import annotations

from typing import Any

from holdfast.model.commands import Bury, Discard, MarkRedriven, Resume
from holdfast.ports.store import DeadLetter
from holdfast.testing.contracts.store_topics.scene import Scene, StoreTopics, an_error, story

BYTES = b"\x00\xff not json ' \xf0"


def a_message(id: str = "m1", **fields: Any) -> Bury:
    given = {
        "source": "bus",
        "reason": "not JSON",
        "body": BYTES,
        "attributes": {"a": "1"},
        "tenant": "acme",
    }
    return Bury(id, **{**given, **fields})


class DeadLetterTopics(StoreTopics):
    # --- messages ---

    @story
    async def test_a_message_is_kept_with_its_original_bytes(self, scene: Scene) -> None:
        assert await scene.do(a_message("m1")) is True
        expected = DeadLetter("m1", "bus", "not JSON", BYTES, {"a": "1"}, "acme", scene.clock.now())
        assert await scene.store.dead_letter("m1") == expected
        assert await scene.store.dead_letters() == [expected]

    @story
    async def test_a_message_is_buried_once(self, scene: Scene) -> None:
        await scene.do(a_message("m1"))
        before = await scene.store.dead_letters()
        scene.clock.advance(1.0)
        assert await scene.do(a_message("m1", reason="other")) is False
        assert await scene.store.dead_letters() == before

    @story
    async def test_a_closed_message_stays_closed_when_it_is_buried_again(
        self, scene: Scene
    ) -> None:
        await scene.do(a_message("m1"))
        await scene.do(Discard("m1", "ann", "spam"))
        assert await scene.do(a_message("m1")) is False
        assert await scene.store.dead_letters() == []

    @story
    async def test_redriving_is_noted_once(self, scene: Scene) -> None:
        await scene.do(a_message("m1"))
        scene.clock.advance(1.0)
        assert await scene.do(MarkRedriven("m1", "ann")) is True
        letter = await scene.store.dead_letter("m1")
        assert letter is not None
        assert (letter.closed, letter.resolution) == (scene.clock.now(), "redriven")
        assert letter.body == BYTES
        assert await scene.do(MarkRedriven("m1", "bob")) is False
        assert await scene.store.dead_letters() == []
        assert await scene.store.dead_letters(open_only=False) == [letter]

    @story
    async def test_discarding_closes_for_good_and_is_audited(self, scene: Scene) -> None:
        await scene.do(a_message("m1"))
        assert await scene.do(Discard("m1", "ann", "spam")) is True
        letter = await scene.store.dead_letter("m1")
        assert letter is not None
        assert (letter.closed, letter.resolution) == (scene.clock.now(), "discarded")
        assert await scene.do(Discard("m1", "ann", "spam")) is False
        assert await scene.do(MarkRedriven("m1", "ann")) is False
        [entry] = await scene.store.audit()
        assert (entry.actor, entry.target, entry.reason) == ("ann", "m1", "spam")

    @story
    async def test_a_redriven_letter_is_not_discarded(self, scene: Scene) -> None:
        await scene.do(a_message("m1"))
        await scene.do(MarkRedriven("m1", "ann"))
        assert await scene.do(Discard("m1", "ann", "spam")) is False

    @story
    async def test_unknown_letters_are_neither_redriven_nor_discarded(self, scene: Scene) -> None:
        assert await scene.apply(MarkRedriven("x", "ann"), Discard("x", "ann", "")) == [
            False,
            False,
        ]
        assert await scene.store.dead_letter("x") is None
        assert await scene.store.audit() == []

    # --- runs ---

    @story
    async def test_a_resumed_run_closes_its_dead_letter(self, scene: Scene) -> None:
        await scene.fail("r1")
        scene.clock.advance(1.0)
        await scene.do(Resume("r1", "ann"))
        letter = await scene.dead_letter("r1")
        assert (letter.closed, letter.resolution) == (scene.clock.now(), "redriven")
        assert await scene.do(MarkRedriven("run:r1", "ann")) is False

    @story
    async def test_a_redriven_run_is_resumed_by_a_resume(self, scene: Scene) -> None:
        await scene.fail("r1")
        assert await scene.do(MarkRedriven("run:r1", "ann")) is True
        assert await scene.state("r1") == "failed"
        assert await scene.do(Resume("r1", "ann")) is None
        assert (await scene.dead_letter("r1")).resolution == "redriven"

    @story
    async def test_a_run_that_fails_again_reopens_the_same_dead_letter(self, scene: Scene) -> None:
        await scene.fail("r1", input='"bytes"')
        first = await scene.dead_letter("r1")
        scene.clock.advance(1.0)
        await scene.do(Resume("r1", "ann"))
        await scene.settle(
            "r1", await scene.restart("r1"), "failed", error=an_error("again", "Other")
        )
        [letter] = await scene.store.dead_letters(open_only=False)
        assert (letter.id, letter.body, letter.run) == ("run:r1", b'"bytes"', "r1")
        assert (letter.closed, letter.resolution, letter.reason) == (None, None, "Other: again")
        assert letter.created == first.created
        assert letter.attributes["attempts"] == "2"

    @story
    async def test_a_discarded_run_stays_failed_and_can_still_be_resumed(
        self, scene: Scene
    ) -> None:
        await scene.fail("r1")
        await scene.do(Discard("run:r1", "ann", "known"))
        assert await scene.state("r1") == "failed"
        assert await scene.do(Resume("r1", "ann")) is None
        assert (await scene.dead_letter("r1")).resolution == "discarded"

    # --- listing ---

    @story
    async def test_letters_are_listed_by_tenant_newest_first(self, scene: Scene) -> None:
        for number, tenant in enumerate(("acme", "bolt", "acme")):
            scene.clock.advance(1.0)
            await scene.do(a_message(f"m{number}", tenant=tenant))
        listed = await scene.store.dead_letters(tenant="acme")
        assert [letter.id for letter in listed] == ["m2", "m0"]
        assert [letter.id for letter in await scene.store.dead_letters(limit=2)] == ["m2", "m1"]
        assert await scene.store.dead_letters(tenant="nobody") == []
