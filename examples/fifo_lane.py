"""Strict order: a fifo lane executes its runs one after the other, and a retry does not lose its
place.

python examples/fifo_lane.py
"""

import asyncio

from holdfast import Context, Holdfast, Lane, Pipeline, Retry, Transient

ledger = Lane("ledger", order="fifo")
booking = Pipeline("booking", input=int, lane=ledger)
booked: list[int] = []
tries: dict[int, int] = {}


@booking.step(retry=Retry(base=0.1))
async def book(input: int, ctx: Context) -> int:
    """Booking 3 fails at first. Nothing overtakes it."""
    tries[input] = tries.get(input, 0) + 1
    if input == 3 and tries[input] == 1:
        raise Transient("the bank did not answer")
    booked.append(input)
    return len(booked)


async def main() -> None:
    async with Holdfast("memory:", pipelines=[booking]) as app:
        runs = [await app.submit(booking, number) for number in range(1, 8)]
        positions = [await run.result() for run in runs]
        lane = next(lane for lane in await app.store.lanes() if lane.name == "ledger")
    print(
        f"booked in the order {booked}; booking 3 took {tries[3]} tries (leader's term {lane.term})"
    )
    assert booked == [1, 2, 3, 4, 5, 6, 7]
    assert positions == booked


if __name__ == "__main__":
    asyncio.run(main())
