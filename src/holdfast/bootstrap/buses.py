"""The bus of a URL."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.bootstrap.urls import choose, not_installed
from holdfast.ports.bus import Bus


def make_bus(url: str) -> Bus | None:
    """`none`, `memory:`, `redis://host` or `rediss://host`."""
    if url in ("none", ""):
        return None
    known: dict[str, Callable[[], Bus]] = {
        "memory": _in_process,
        "redis": lambda: _redis_bus(url),
        "rediss": lambda: _redis_bus(url),
    }
    return choose(url, "bus", known)


def _in_process() -> Bus:
    from holdfast.adapters.inprocess.bus import InProcessBus

    return InProcessBus()


def _redis_bus(url: str) -> Bus:
    try:
        from holdfast.adapters.redis.bus import RedisBus
    except ImportError as error:
        raise not_installed(url, "redis") from error
    return RedisBus(url)
