"""Keys of any length: long ones are stored by digest, with the original beside them."""

import msgspec
import pytest

from holdfast import Context, Items, Pipeline
from holdfast.errors import Fix
from holdfast.model.commands import Bury
from holdfast.model.keys import MAX_PART, MAX_WHOLE, ItemKey, inner_key, is_item, stored_key
from holdfast.model.limits import MAX_KEY
from holdfast.testing.world import at_once

TEXTS = ["short", "l" * 5000, "l" * 5001, "ü" * 3000, "a\0b", "😀" * MAX_PART]


def test_a_short_key_is_stored_as_it_is_and_a_long_one_by_digest():
    assert stored_key("a" * MAX_PART) == "a" * MAX_PART
    long = stored_key("a" * (MAX_PART + 1))
    assert long.startswith("aaaa")
    assert len(long) < MAX_PART
    assert long != stored_key("a" * (MAX_PART + 2))
    assert stored_key(long) == long


def test_keys_inside_keys_stay_short_however_deep_they_are():
    outer, keys = "", set()
    for _ in range(50):
        outer = inner_key(outer, "😀" * MAX_PART)
        keys.add(outer)
        assert len(outer) <= MAX_WHOLE
        assert len(outer.encode()) <= MAX_KEY
    assert len(keys) == 50
    assert not is_item(outer)


def test_the_original_is_kept_where_it_is_not_what_is_stored():
    assert ItemKey().inner("a").kept is None
    assert ItemKey().inner("a" * 500).kept == "a" * 500
    assert ItemKey().inner("a" * 500).inner("b").kept == f"{'a' * 500}\x1fb"


def mapping(texts):
    pipeline = Pipeline("p", input=str)

    async def length(text: str, ctx: Context) -> int:
        assert ctx.key == text
        return await ctx.step("inner", len, text, key=text)

    @pipeline.step
    async def lengths(input: str, ctx: Context) -> list[int]:
        return await ctx.map(length, texts)

    @pipeline.step
    async def streamed(lengths: Items[int]) -> dict[str, int]:
        return {key: value async for key, value in lengths}

    return pipeline


def test_texts_are_their_own_keys_whatever_their_length(lab):
    pipeline = mapping(TEXTS)
    engine = lab(pipeline)
    run = engine.submit(pipeline, "a")
    engine.drain()
    assert engine.result(run) == {text: len(text) for text in TEXTS}
    stored = at_once(engine.store.checkpoints(run.id, "lengths"))
    assert max(len(saved.key.encode()) for saved in stored) <= MAX_KEY
    originals = {msgspec.json.decode(saved.record).get("key", saved.key) for saved in stored}
    assert set(TEXTS) < originals


def test_items_with_long_keys_are_not_executed_again(lab):
    pipeline = mapping(TEXTS)
    engine = lab(pipeline)
    run = engine.submit(pipeline, "a")
    engine.crash_after("lengths")
    engine.drain()
    assert engine.result(run) == {text: len(text) for text in TEXTS}
    executed = [(step, key) for _, step, key in engine.executed if key]
    assert len(executed) == len(set(executed))


def test_half_a_character_is_no_key(lab):
    pipeline = mapping(["\udcff"])
    engine = lab(pipeline)
    run = engine.submit(pipeline, "a")
    engine.drain()
    assert engine.info(run).error.name == Fix.__name__


@pytest.mark.parametrize("size", [10, 10_000])
def test_a_message_with_a_long_id_is_kept_once(lab, size):
    engine = lab(Pipeline("p"))
    id = stored_key(f"message:orders:{'m' * size}", MAX_WHOLE)

    async def bury():
        return await engine.app.runtime.committer.send(Bury(id, "orders", "bad", b"x"))

    assert engine.call(bury()) is True
    assert engine.call(bury()) is False
