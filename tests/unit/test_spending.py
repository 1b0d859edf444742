"""What a run has spent is known to its next attempt, also when its worker dies."""

import asyncio

from holdfast import Context, Pipeline


def test_spending_survives_the_worker_that_spent_it(lab):
    costs: list[float] = []
    pipeline = Pipeline("costly")

    @pipeline.step
    async def ask(input, ctx: Context) -> int:
        costs.append(ctx.spent.cost)
        for _ in range(3):
            ctx.usage(input_tokens=10, cost=0.25)
        await asyncio.sleep(0.1)  # less than the interval at which progress is written
        if len(costs) == 1:
            engine.kill()
            await asyncio.sleep(1000)
        return len(costs)

    engine = lab(pipeline)
    run = engine.submit(pipeline, 1)
    engine.advance(1)
    engine.join()
    engine.advance(60)
    assert costs == [0.0, 0.75]
    assert engine.result(run) == 2
