"""What users get for their own tests: crash-point fuzzer, in-memory engine, contract suites,
virtual time."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_EXPORTS = {
    "CrashReport": "holdfast.testing.crash",
    "TestEngine": "holdfast.testing.engine",
    "World": "holdfast.testing.world",
    "assert_crash_safe": "holdfast.testing.crash",
}

__all__ = [
    "CrashReport",
    "TestEngine",
    "World",
    "assert_crash_safe",
]


def __getattr__(name: str) -> Any:
    """Import on first use: pytest loads the plugin beside this file in every project that has
    holdfast."""
    if name not in _EXPORTS:
        raise AttributeError(f"module 'holdfast.testing' has no attribute {name!r}")
    return getattr(import_module(_EXPORTS[name]), name)


if TYPE_CHECKING:
    from holdfast.testing.crash import CrashReport as CrashReport
    from holdfast.testing.crash import assert_crash_safe as assert_crash_safe
    from holdfast.testing.engine import TestEngine as TestEngine
    from holdfast.testing.world import World as World
