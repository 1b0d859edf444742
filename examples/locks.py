"""Locks and leader election for your own code, with the epoch that makes them safe.

A lock alone can't stop a holder that was paused for longer than its lease. So hand `lock.epoch` to
whatever the lock protects, and let it refuse older ones.

python examples/locks.py
"""

import asyncio

from holdfast import Conflict, Holdfast, LeaderElection


class Archive:
    """What the lock protects: it remembers the highest epoch it has seen and refuses all older
    ones."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._newest = 0

    def write(self, line: str, fence: int) -> bool:
        if fence < self._newest:
            return False
        self._newest = fence
        self.lines.append(line)
        return True


async def one_at_a_time(app: Holdfast, other: Holdfast) -> None:
    """Two processes, here two apps on one store, import into one archive."""
    archive = Archive()
    async with app.lock("import") as lock:
        archive.write("from the first", fence=lock.epoch)
        try:
            async with other.lock("import", wait=0):
                raise AssertionError("two holders")
        except Conflict as refused:
            print(f"second: {refused}")
    async with other.lock("import", wait="5s") as newer:
        archive.write("from the second", fence=newer.epoch)
    late = archive.write("written by a holder that overslept", fence=lock.epoch)
    print(
        f"epochs {lock.epoch} and {newer.epoch}; the late write was "
        f"{'accepted' if late else 'refused'}"
    )
    assert newer.epoch > lock.epoch
    assert archive.lines == ["from the first", "from the second"]


async def one_leader(app: Holdfast, other: Holdfast) -> None:
    """Candidates campaign under one name; each change of leader raises the term."""
    first, second = app.election("scheduler"), other.election("scheduler")
    await first.campaign()
    waiting = asyncio.create_task(second.campaign())
    print(f"leader: {_leader_name(first, second)}, term {first.term}")
    await first.resign()
    await waiting
    print(f"leader: {_leader_name(first, second)}, term {second.term}")
    assert second.term == first.term + 1
    await second.resign()


def _leader_name(first: LeaderElection, second: LeaderElection) -> str:
    return {(True, False): "first", (False, True): "second"}[first.is_leader, second.is_leader]


async def main() -> None:
    async with Holdfast("sqlite:///locks.db") as app, Holdfast("sqlite:///locks.db") as other:
        await one_at_a_time(app, other)
        await one_leader(app, other)


if __name__ == "__main__":
    asyncio.run(main())
