"""Settings in, wired objects out: the only place that knows which adapter a URL means."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_EXPORTS = {
    "Providers": "providers",
    "blobs_health": "health",
    "bus_health": "health",
    "default_blobs": "blobs",
    "language_model_health": "health",
    "language_model_providers": "language_models",
    "make_blobs": "blobs",
    "make_bus": "buses",
    "make_mover": "stores",
    "make_store": "stores",
    "missing_file": "stores",
    "prune_answers": "language_models",
    "repair_store": "health",
    "store_health": "health",
    "with_options": "urls",
}

__all__ = [
    "Providers",
    "blobs_health",
    "bus_health",
    "default_blobs",
    "language_model_health",
    "language_model_providers",
    "make_blobs",
    "make_bus",
    "make_mover",
    "make_store",
    "missing_file",
    "prune_answers",
    "repair_store",
    "store_health",
    "with_options",
]


def __getattr__(name: str) -> Any:
    """Import on first use: `holdfast --help` reads the table of apps and needs nothing else."""
    if name not in _EXPORTS:
        raise AttributeError(f"module 'holdfast.bootstrap' has no attribute {name!r}")
    value = getattr(import_module(f"holdfast.bootstrap.{_EXPORTS[name]}"), name)
    globals()[name] = value
    return value


if TYPE_CHECKING:
    from holdfast.bootstrap.blobs import default_blobs, make_blobs
    from holdfast.bootstrap.buses import make_bus
    from holdfast.bootstrap.health import (
        blobs_health,
        bus_health,
        language_model_health,
        repair_store,
        store_health,
    )
    from holdfast.bootstrap.language_models import language_model_providers, prune_answers
    from holdfast.bootstrap.providers import Providers
    from holdfast.bootstrap.stores import make_mover, make_store, missing_file
    from holdfast.bootstrap.urls import with_options
