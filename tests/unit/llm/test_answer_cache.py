"""The cache of answers: found again by what was asked, never shared, never trusted when damaged,
and deleted when nobody has used it for as long as finished runs are kept."""

import asyncio

import pytest

from holdfast.adapters.files.blobs import FileBlobs
from holdfast.adapters.llm.answer_cache import MARKERS, AnswerCache
from holdfast.adapters.memory.blobs import MemoryBlobs
from holdfast.testing.clock import ManualClock

ASKED = ("openai:gpt-4o-mini", "claims", "Find the claims.", "I like the park.")
DAY = 86_400.0
NOON = 1_794_999_600.0  # 2026-11-18 11:00 UTC


@pytest.fixture(params=["memory", "files"])
def blobs(request, tmp_path):
    return MemoryBlobs() if request.param == "memory" else FileBlobs(tmp_path)


def cache_on(blobs, clock: ManualClock | None = None, retention: float = 30 * DAY) -> AnswerCache:
    return AnswerCache(blobs, clock or ManualClock(NOON), retention)


def stored(blobs) -> list[str]:
    return asyncio.run(blobs.list("acme/answers/"))


def test_an_answer_is_found_again(blobs):
    async def story():
        cache = cache_on(blobs)
        assert await cache.get("acme", ASKED) is None
        await cache.put("acme", ASKED, '{"claims": []}')
        return await cache_on(blobs).get("acme", ASKED)

    assert asyncio.run(story()) == '{"claims": []}'
    assert len(stored(blobs)) == 1


@pytest.mark.parametrize(
    "other",
    [
        ("openai:gpt-4o", *ASKED[1:]),
        (*ASKED[:3], "I like the park!"),
        (*ASKED[:2], "Find the claims.I", " like the park."),
        (*ASKED, ""),
        ASKED[:3],
        (),
    ],
)
def test_any_difference_is_another_question(blobs, other):
    async def story():
        cache = cache_on(blobs)
        await cache.put("acme", ASKED, "mine")
        return await cache.get("acme", other)

    assert asyncio.run(story()) is None


def test_tenants_share_nothing(blobs):
    async def story():
        cache = cache_on(blobs)
        await cache.put("acme", ASKED, "mine")
        return await cache.get("other", ASKED)

    assert asyncio.run(story()) is None


def test_the_first_answer_stays(blobs):
    async def story():
        cache = cache_on(blobs)
        await asyncio.gather(*(cache.put("acme", ASKED, f"answer {n}") for n in range(20)))
        answers = await asyncio.gather(*(cache.get("acme", ASKED) for _ in range(20)))
        return set(answers)

    assert len(asyncio.run(story())) == 1
    assert len(stored(blobs)) == 1


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"null", b'{"checksum": "x", "answer": "forged"}', b"\xff\xfe"]
)
def test_a_damaged_entry_is_passed_over_and_replaced(damage):
    blobs = MemoryBlobs()

    async def story():
        cache = cache_on(blobs)
        await cache.put("acme", ASKED, "good")
        (key,) = await blobs.list("acme/answers/")
        blobs._objects[key] = damage
        assert await cache.get("acme", ASKED) is None
        await cache.put("acme", ASKED, "good again")
        await cache.put("acme", ASKED, "and again")
        return await cache.get("acme", ASKED)

    assert asyncio.run(story()) == "good again"
    assert len(stored(blobs)) == 2


def test_any_text_can_be_an_answer_or_a_part(blobs):
    text = "\x00 😀 \u2028 私は " * 10_000

    async def story():
        cache = cache_on(blobs)
        await cache.put("acme", (text,), text)
        return await cache.get("acme", (text,))

    assert asyncio.run(story()) == text


# --- retention ------------------------------------------------------------------------------------


class Cache:
    """A cache with a clock to move, as a new process sees it each time."""

    def __init__(self, blobs, retention: float = 30 * DAY) -> None:
        self.blobs = blobs
        self.clock = ManualClock(NOON)
        self._retention = retention

    def _now(self) -> AnswerCache:
        return cache_on(self.blobs, self.clock, self._retention)

    def put(self, answer: str, tenant: str = "acme") -> None:
        asyncio.run(self._now().put(tenant, ASKED, answer))

    def get(self, tenant: str = "acme") -> str | None:
        return asyncio.run(self._now().get(tenant, ASKED))

    def prune(self) -> int:
        return asyncio.run(self._now().prune())

    def days(self, tenant: str = "acme") -> list[str]:
        keys = asyncio.run(self.blobs.list(f"{tenant}/answers/"))
        return sorted({key.split("/")[2] for key in keys})

    def later(self, days: float) -> None:
        self.clock.advance(days * DAY)


def test_an_answer_is_found_for_as_long_as_finished_runs_are_kept_and_then_deleted(blobs):
    cache = Cache(blobs)
    cache.put("mine")
    assert cache.days() == ["2026-11-18"]
    cache.later(14)
    assert (cache.prune(), cache.get()) == (0, "mine")
    assert cache.days() == ["2026-11-18"], "it is not written again in the first half of its time"
    cache.later(16.5)
    assert cache.prune() == 0
    cache.later(0.1)
    assert cache.prune() == 1
    assert cache.days() == []
    assert cache.get() is None
    assert asyncio.run(blobs.list(f"{MARKERS}/")) == []


def test_an_answer_that_is_used_stays(blobs):
    cache = Cache(blobs)
    cache.put("mine")
    for _ in range(5):
        cache.later(20)
        assert cache.get() == "mine"
        cache.prune()
    assert cache.days() == ["2027-02-06", "2027-02-26"]
    cache.later(32)
    assert cache.prune() == 2
    assert cache.get() is None


def test_every_tenant_is_pruned_whatever_it_is_called(blobs):
    tenants = ["acme", "other", MARKERS]
    cache = Cache(blobs)
    asyncio.run(blobs.put(f"{MARKERS}/06f3z/step/1/result.json", b"of a run"))
    for tenant in tenants:
        cache.put("mine", tenant)
    cache.later(1)
    cache.put("newer", "other")
    cache.later(30.2)
    assert [cache.get(tenant) for tenant in tenants] == [None, "newer", None]
    assert cache.prune() == 3
    assert [cache.days(tenant) for tenant in tenants] == [
        [],
        ["2026-11-19", "2026-12-19"],
        [],
    ]
    assert asyncio.run(blobs.get(f"{MARKERS}/06f3z/step/1/result.json")) == b"of a run"


def test_a_process_that_lives_past_midnight_goes_on_finding_its_answers(blobs):
    clock = ManualClock(NOON)

    async def story():
        cache = cache_on(blobs, clock)
        assert await cache.get("acme", ASKED) is None
        await cache.put("acme", ASKED, "mine")
        clock.advance(DAY)
        assert await cache.get("acme", ASKED) == "mine"
        await cache_on(blobs, clock).put("acme", ("other",), "of another process")
        clock.advance(DAY)
        return await cache.get("acme", ("other",))

    assert asyncio.run(story()) == "of another process"


def test_a_crash_between_the_answers_and_their_marker_is_made_good(blobs):
    """The answers go first: what is left of the day is found again by its marker."""

    class Dying:
        def __init__(self) -> None:
            self.list, self.get, self.put = blobs.list, blobs.get, blobs.put

        async def delete(self, prefix: str) -> int:
            if prefix.startswith(MARKERS):
                raise RuntimeError("killed")
            return await blobs.delete(prefix)

    cache = Cache(blobs)
    cache.put("mine")
    cache.later(40)
    with pytest.raises(RuntimeError):
        asyncio.run(cache_on(Dying(), cache.clock).prune())
    assert cache.days() == []
    assert cache.prune() == 0
    assert asyncio.run(blobs.list(f"{MARKERS}/")) == []


def test_answers_of_today_stay_however_short_the_retention_is(blobs):
    cache = Cache(blobs, retention=0.0)
    cache.put("mine")
    assert (cache.prune(), cache.get()) == (0, "mine")
    cache.later(0.6)
    assert (cache.get(), cache.prune()) == (None, 1)
