"""`Items[T]`: another step's items as they finish, so that work streams through the graph."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Items(Generic[T]):
    """The items that another step maps over, seen from a step that runs beside it.

    Only the values are durable, not the order in which they come: a resumed step sees the stored
    ones first.

        @pipeline.step
        async def summaries(claims: Items[Claim], ctx: Context) -> list[str]:
            async for key, claim in claims: ...      # as they finish
            first = await claims["c-1"]              # one that is needed now
            rest = await claims.all()                # everything, once the other step is done
    """

    def __init__(self, feed: ItemSource[T]) -> None:
        self._feed = feed

    def __aiter__(self) -> AsyncIterator[tuple[str, T]]:
        return self._feed.stream()

    def __getitem__(self, key: str) -> AwaitableItem[T]:
        return AwaitableItem(self._feed, key)

    async def gather(self, keys: Iterable[str]) -> list[T]:
        """The values of some keys, in their order, as soon as all of them are there."""
        return [await self._feed.value(key) for key in keys]

    async def all(self) -> dict[str, T]:
        """Everything, once the other step has ended."""
        return {key: value async for key, value in self._feed.stream()}


class AwaitableItem(Generic[T]):
    """`await items[key]`."""

    def __init__(self, feed: ItemSource[T], key: str) -> None:
        self._feed = feed
        self._key = key

    def __await__(self):  # type: ignore[no-untyped-def]
        return self._feed.value(self._key).__await__()


class ItemSource(Protocol[T_co]):
    """What the engine puts behind `Items`."""

    def stream(self) -> AsyncIterator[tuple[str, T_co]]: ...

    async def value(self, key: str) -> T_co: ...
