"""A run's budget: nothing is sent that could take its spending past it.

Before a call is sent, the most it can cost is set aside. When spending and what is set aside leave
no room, the call waits: those under way usually cost less than was set aside for them. Only when
none of the run's calls is under way and there is still no room does the run pause. So it pauses
before the budget is passed, whatever the calls cost.

What a run has spent is what the engine knows, all attempts included; what is set aside is known to
this process only, which is the one that holds the run's lease."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from holdfast.errors import ConfigurationError, Pause
from holdfast.ports.context import Context

ROUNDING = 1e-9
"""Dollars: sums of small fractions are not exact."""


class BudgetLedger:
    """What is set aside for calls under way, by run."""

    def __init__(self) -> None:
        self._runs: dict[str, _Account] = {}
        self._used_up: dict[str, float] = {}
        """The budget that a run could not keep to. Cheaper calls might still fit in, but the run is
        about to pause, and they would be cancelled under way: paid for, and asked again."""

    @asynccontextmanager
    async def reserved(
        self, ctx: Context, budget: float | None, most: float | None, model: str
    ) -> AsyncIterator[None]:
        """Set aside what a call can cost at most, until it is over and counted."""
        if budget is None:
            yield
            return
        if most is None:
            raise ConfigurationError(
                f"the price of {model} is unknown, so a budget can't be kept: give input_price=… "
                "and output_price=… "
                "(dollars per million tokens) with the model, or leave the budget out"
            )
        account = self._runs.setdefault(ctx.run_id, _Account())
        account.users += 1
        try:
            await self._reserve(account, ctx, budget, most)
            try:
                yield
            finally:
                account.give_back(most)
        finally:
            account.users -= 1
            if not account.users:
                self._runs.pop(ctx.run_id, None)

    async def _reserve(self, account: _Account, ctx: Context, budget: float, most: float) -> None:
        try:
            await account.reserve(
                ctx, budget, most, lambda: self._used_up.get(ctx.run_id) == budget
            )
        except Pause:
            self._used_up[ctx.run_id] = budget
            raise


class _Account:
    def __init__(self) -> None:
        self.users = 0
        self._reserved = 0.0
        self._calls = 0
        self._turn = asyncio.Lock()
        self._returned = asyncio.Event()

    async def reserve(
        self, ctx: Context, budget: float, most: float, is_over: Callable[[], bool]
    ) -> None:
        async with self._turn:  # one after the other, in the order of arrival
            while is_over() or ctx.spent.cost + self._reserved + most > budget + ROUNDING:
                if is_over() or not self._calls:
                    raise _no_room(ctx.spent.cost, budget, most)
                self._returned.clear()
                await self._returned.wait()
            self._reserved += most
            self._calls += 1

    def give_back(self, most: float) -> None:
        self._calls -= 1
        self._reserved = self._reserved - most if self._calls else 0.0
        self._returned.set()


def _no_room(spent: float, budget: float, most: float) -> Pause:
    return Pause(
        f"${spent:.4f} of the budget of ${budget:.2f} is spent, and the next call could cost up to "
        f"${most:.4f}: "
        "raise the budget and resume"
    )
