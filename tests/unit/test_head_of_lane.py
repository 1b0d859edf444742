"""The first runs of a lane are found without reading all that wait there."""

import asyncio

import pytest

from holdfast import Holdfast, Lane, Pipeline
from holdfast.adapters.memory.store import MemoryStore
from holdfast.services.head_of_lane import READ, oldest_queued


def waits_in(lane):
    pipeline = Pipeline(lane, input=int, lane=Lane(lane, "fifo"))

    @pipeline.step
    def only(input: int) -> int:
        return input

    return pipeline


LINES = [waits_in("line"), waits_in("other")]


class CountingStore(MemoryStore):
    """Counts the runs that were read."""

    rows_read = 0

    async def runs(self, where, *, limit=50, before=None):
        page = await super().runs(where, limit=limit, before=before)
        self.rows_read += len(page)
        return page


@pytest.mark.parametrize("others", [0, 3000], ids=["alone", "behind others"])
@pytest.mark.parametrize("waiting", [0, 1, 9, READ - 1, READ, READ + 1, 3000])
def test_the_first_ones_in_order(waiting, others):
    async def story():
        store = CountingStore()
        async with Holdfast(store, LINES, worker=False) as app:
            line, other = LINES
            await app.submit_many(other, list(range(others)))
            submitted = await app.submit_many(line, list(range(waiting)))
            await app.submit_many(other, list(range(others)))
            first = await oldest_queued(store, "line", 10)
            assert [run.id for run in first] == [handle.id for handle in submitted[:10]]
            assert store.rows_read <= 15 * READ

    asyncio.run(story())
