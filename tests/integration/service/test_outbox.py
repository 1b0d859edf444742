"""The end of the outbox is found without reading it, on every store."""

import pytest

from holdfast import Pipeline
from holdfast.engine.outbox import end_of_outbox

noop = Pipeline("noop", input=int)


@noop.step
def only(input: int) -> int:
    return input


@pytest.mark.parametrize("count", [0, 1, 2, 1023, 1024, 1025, 5000])
def test_the_end_is_the_position_of_the_newest_event(run_story, count):
    async def story(app):
        await app.submit_many(noop, list(range(count)))
        position = 0
        while events := await app.store.outbox(position, limit=1000):
            position = events[-1].position
        assert await end_of_outbox(app.store) == position
        assert (position > 0) == (count > 0)

    run_story(story, noop)
