"""Dead letters: once each, with the original bytes, open until redriven or discarded."""

from __future__ import annotations

from typing import Any

from holdfast.model.commands import Bury, Discard, MarkRedriven, Resume
from holdfast.ports.store import DeadLetter
from holdfast.testing.contracts.store_topics.harness import (
    StoreHarness,
    StoreTopics,
    an_error,
    store_test,
)

BYTES = b"\x00\xff not json ' \xf0"


def a_message(id: str = "m1", **fields: Any) -> Bury:
    defaults = {
        "source": "bus",
        "reason": "not JSON",
        "body": BYTES,
        "attributes": {"a": "1"},
        "tenant": "acme",
    }
    return Bury(id, **{**defaults, **fields})


class DeadLetterTopics(StoreTopics):
    # --- messages ---

    @store_test
    async def test_a_message_is_kept_with_its_original_bytes(self, harness: StoreHarness) -> None:
        assert await harness.do(a_message("m1")) is True
        expected = DeadLetter(
            "m1", "bus", "not JSON", BYTES, {"a": "1"}, "acme", harness.clock.now()
        )
        assert await harness.store.dead_letter("m1") == expected
        assert await harness.store.dead_letters() == [expected]

    @store_test
    async def test_a_message_is_buried_once(self, harness: StoreHarness) -> None:
        await harness.do(a_message("m1"))
        before = await harness.store.dead_letters()
        harness.clock.advance(1.0)
        assert await harness.do(a_message("m1", reason="other")) is False
        assert await harness.store.dead_letters() == before

    @store_test
    async def test_a_closed_message_stays_closed_when_it_is_buried_again(
        self, harness: StoreHarness
    ) -> None:
        await harness.do(a_message("m1"))
        await harness.do(Discard("m1", "ann", "spam"))
        assert await harness.do(a_message("m1")) is False
        assert await harness.store.dead_letters() == []

    @store_test
    async def test_redriving_is_noted_once(self, harness: StoreHarness) -> None:
        await harness.do(a_message("m1"))
        harness.clock.advance(1.0)
        assert await harness.do(MarkRedriven("m1", "ann")) is True
        letter = await harness.store.dead_letter("m1")
        assert letter is not None
        assert (letter.closed, letter.resolution) == (harness.clock.now(), "redriven")
        assert letter.body == BYTES
        assert await harness.do(MarkRedriven("m1", "bob")) is False
        assert await harness.store.dead_letters() == []
        assert await harness.store.dead_letters(open_only=False) == [letter]

    @store_test
    async def test_discarding_closes_for_good_and_is_audited(self, harness: StoreHarness) -> None:
        await harness.do(a_message("m1"))
        assert await harness.do(Discard("m1", "ann", "spam")) is True
        letter = await harness.store.dead_letter("m1")
        assert letter is not None
        assert (letter.closed, letter.resolution) == (harness.clock.now(), "discarded")
        assert await harness.do(Discard("m1", "ann", "spam")) is False
        assert await harness.do(MarkRedriven("m1", "ann")) is False
        [entry] = await harness.store.audit()
        assert (entry.actor, entry.target, entry.reason) == ("ann", "m1", "spam")

    @store_test
    async def test_a_redriven_letter_is_not_discarded(self, harness: StoreHarness) -> None:
        await harness.do(a_message("m1"))
        await harness.do(MarkRedriven("m1", "ann"))
        assert await harness.do(Discard("m1", "ann", "spam")) is False

    @store_test
    async def test_unknown_letters_are_neither_redriven_nor_discarded(
        self, harness: StoreHarness
    ) -> None:
        assert await harness.apply(MarkRedriven("x", "ann"), Discard("x", "ann", "")) == [
            False,
            False,
        ]
        assert await harness.store.dead_letter("x") is None
        assert await harness.store.audit() == []

    # --- runs ---

    @store_test
    async def test_a_resumed_run_closes_its_dead_letter(self, harness: StoreHarness) -> None:
        await harness.fail("r1")
        harness.clock.advance(1.0)
        await harness.do(Resume("r1", "ann"))
        letter = await harness.dead_letter("r1")
        assert (letter.closed, letter.resolution) == (harness.clock.now(), "redriven")
        assert await harness.do(MarkRedriven("run:r1", "ann")) is False

    @store_test
    async def test_a_redriven_run_is_resumed_by_a_resume(self, harness: StoreHarness) -> None:
        await harness.fail("r1")
        assert await harness.do(MarkRedriven("run:r1", "ann")) is True
        assert await harness.state("r1") == "failed"
        assert await harness.do(Resume("r1", "ann")) is None
        assert (await harness.dead_letter("r1")).resolution == "redriven"

    @store_test
    async def test_a_run_that_fails_again_reopens_the_same_dead_letter(
        self, harness: StoreHarness
    ) -> None:
        await harness.fail("r1", input='"bytes"')
        first = await harness.dead_letter("r1")
        harness.clock.advance(1.0)
        await harness.do(Resume("r1", "ann"))
        await harness.settle(
            "r1", await harness.restart("r1"), "failed", error=an_error("again", "Other")
        )
        [letter] = await harness.store.dead_letters(open_only=False)
        assert (letter.id, letter.body, letter.run) == ("run:r1", b'"bytes"', "r1")
        assert (letter.closed, letter.resolution, letter.reason) == (None, None, "Other: again")
        assert letter.created == first.created
        assert letter.attributes["attempts"] == "2"

    @store_test
    async def test_a_discarded_run_stays_failed_and_can_still_be_resumed(
        self, harness: StoreHarness
    ) -> None:
        await harness.fail("r1")
        await harness.do(Discard("run:r1", "ann", "known"))
        assert await harness.state("r1") == "failed"
        assert await harness.do(Resume("r1", "ann")) is None
        assert (await harness.dead_letter("r1")).resolution == "discarded"

    # --- listing ---

    @store_test
    async def test_letters_are_listed_by_tenant_newest_first(self, harness: StoreHarness) -> None:
        for number, tenant in enumerate(("acme", "bolt", "acme")):
            harness.clock.advance(1.0)
            await harness.do(a_message(f"m{number}", tenant=tenant))
        listed = await harness.store.dead_letters(tenant="acme")
        assert [letter.id for letter in listed] == ["m2", "m0"]
        assert [letter.id for letter in await harness.store.dead_letters(limit=2)] == ["m2", "m1"]
        assert await harness.store.dead_letters(tenant="nobody") == []

    @store_test
    async def test_letters_are_listed_page_by_page(self, harness: StoreHarness) -> None:
        """Also those of one moment, and behind one that is closed meanwhile."""
        for number in range(7):
            harness.clock.advance(1.0 if number == 3 else 0.0)
            await harness.do(a_message(f"m{number}", tenant="acme" if number % 2 else "bolt"))

        async def pages(tenant: str | None, limit: int) -> list[str]:
            seen: list[str] = []
            behind: tuple[float, str] | None = None
            while page := await harness.store.dead_letters(
                tenant=tenant, limit=limit, behind=behind
            ):
                assert len(page) <= limit
                seen += [letter.id for letter in page]
                behind = (page[-1].created, page[-1].id)
            return seen

        for limit in (1, 2, 3, 10):
            assert await pages(None, limit) == ["m6", "m5", "m4", "m3", "m2", "m1", "m0"]
            assert await pages("acme", limit) == ["m5", "m3", "m1"]
        last = await harness.store.dead_letter("m4")
        assert last is not None
        await harness.do(Discard("m4", "ann", "known"))
        behind = (last.created, last.id)
        listed = await harness.store.dead_letters(limit=2, behind=behind)
        assert [letter.id for letter in listed] == ["m3", "m2"]
        assert await harness.store.dead_letters(limit=0, behind=behind) == []
