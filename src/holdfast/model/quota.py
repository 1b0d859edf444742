"""What a tenant has used of its quotas, and whether it may have more.

Pure: `admit` says what is used afterwards, or which quota stands against it and for how long. Times
are the store's. Runs that were admitted are counted before they are stored, so that no two
processes ever accept more than a quota together; `under_way` are those of them that may not be
stored yet, and so are missing among the queued runs that the store counts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from holdfast.model.tenant import Quotas

MINUTE = 60
FORGOTTEN = 30.0
"""Seconds after which a run that was admitted and is not stored will not be."""
QUEUE_RETRY = 5.0
"""Seconds to wait before a full queue is tried again: when it will have room is not known."""


class Consumption(Struct, frozen=True, omit_defaults=True):
    """`recent` counts admitted runs by the second; `day` and `month` say of when the counts are."""

    recent: dict[int, int] = {}
    day: str = ""
    today: int = 0
    this_month: int = 0
    under_way: dict[str, float] = {}

    @property
    def last_minute(self) -> int:
        return sum(self.recent.values())


class Excess(Struct, frozen=True):
    """A quota that is used up, and when it is worth while to try again, in seconds."""

    quota: str
    limit: int
    used: int
    retry_after: float


def at_time(used: Consumption, now: float) -> Consumption:
    """What still counts."""
    day = _date(now)
    return Consumption(
        {second: n for second, n in used.recent.items() if now - MINUTE - 1 < second <= now + 1},
        day,
        used.today if used.day == day else 0,
        used.this_month if used.day[:7] == day[:7] else 0,
        {run: at for run, at in used.under_way.items() if abs(now - at) < FORGOTTEN},
    )


def admit(
    used: Consumption, quotas: Quotas, runs: Sequence[str], queued: int, now: float
) -> Consumption | Excess:
    """What is used when these runs are admitted, all of them, or why they are not. `queued` is how
    many runs wait in the store. `used` is what counts now."""
    waiting = queued + len(used.under_way)
    count = len(runs)
    today = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for excess in (
        _excess("queued", quotas.queued, waiting, count, QUEUE_RETRY),
        _excess("per_minute", quotas.per_minute, used.last_minute, count, 0.0),
        _excess("per_day", quotas.per_day, used.today, count, _until(_next_day(today), now)),
        _excess(
            "per_month", quotas.per_month, used.this_month, count, _until(_next_month(today), now)
        ),
    ):
        if excess is not None and excess.quota == "per_minute":
            return replace(excess, retry_after=_until_room(used, excess.limit - count, now))
        if excess is not None:
            return excess
    return _counted(used, runs, now, quotas.queued is not None)


def given_back(used: Consumption, runs: int) -> Consumption:
    """Admitted runs that turned out to be there already are not counted."""
    recent, left = dict(used.recent), runs
    for second in sorted(recent, reverse=True):
        taken = min(left, recent[second])
        recent[second] -= taken
        left -= taken
    return replace(
        used,
        recent={second: n for second, n in recent.items() if n},
        today=max(0, used.today - runs),
        this_month=max(0, used.this_month - runs),
    )


def _counted(used: Consumption, runs: Sequence[str], now: float, by_id: bool) -> Consumption:
    second = int(now)
    return replace(
        used,
        recent={**used.recent, second: used.recent.get(second, 0) + len(runs)},
        today=used.today + len(runs),
        this_month=used.this_month + len(runs),
        under_way={**used.under_way, **dict.fromkeys(runs, now)} if by_id else {},
    )


def _excess(
    quota: str, limit: int | None, used: int, requested: int, retry_after: float
) -> Excess | None:
    if limit is None or used + requested <= limit:
        return None
    return Excess(quota, limit, used, retry_after)


def _until_room(used: Consumption, most: int, now: float) -> float:
    """Seconds until at most so many runs of the last minute are left."""
    left = used.last_minute
    for second in sorted(used.recent):
        left -= used.recent[second]
        if left <= most:
            return max(1.0, second + MINUTE + 1 - now)
    return float(MINUTE)


def _date(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).date().isoformat()


def _until(moment: datetime, now: float) -> float:
    return max(1.0, moment.timestamp() - now)


def _next_day(today: datetime) -> datetime:
    return today + timedelta(days=1)


def _next_month(today: datetime) -> datetime:
    return (today.replace(day=1) + timedelta(days=32)).replace(day=1)
