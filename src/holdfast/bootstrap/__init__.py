"""Settings in, wired objects out: the only place that knows which adapter a URL means."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_EXPORTS = {
    "Options": "options",
    "blobs_health": "health",
    "bus_health": "health",
    "default_blobs": "factories",
    "documents_health": "health",
    "has_port": "adapters",
    "language_model_health": "health",
    "make_blobs": "factories",
    "make_bus": "factories",
    "make_documents": "factories",
    "make_mover": "factories",
    "make_providers": "runtime",
    "make_records": "factories",
    "make_runtime": "runtime",
    "make_store": "factories",
    "missing_file": "factories",
    "projections_of": "projections",
    "prune_answers": "language_models",
    "repair_store": "health",
    "state_document": "projections",
    "store_health": "health",
    "targets_of": "projections",
    "with_server_settings": "factories",
}

__all__ = [
    "Options",
    "blobs_health",
    "bus_health",
    "default_blobs",
    "documents_health",
    "has_port",
    "language_model_health",
    "make_blobs",
    "make_bus",
    "make_documents",
    "make_mover",
    "make_providers",
    "make_records",
    "make_runtime",
    "make_store",
    "missing_file",
    "projections_of",
    "prune_answers",
    "repair_store",
    "state_document",
    "store_health",
    "targets_of",
    "with_server_settings",
]


def __getattr__(name: str) -> Any:
    """Import on first use: `holdfast --help` reads the table of apps and needs nothing else."""
    if name not in _EXPORTS:
        raise AttributeError(f"module 'holdfast.bootstrap' has no attribute {name!r}")
    value = getattr(import_module(f"holdfast.bootstrap.{_EXPORTS[name]}"), name)
    globals()[name] = value
    return value


if TYPE_CHECKING:
    from holdfast.bootstrap.adapters import has_port
    from holdfast.bootstrap.factories import (
        default_blobs,
        make_blobs,
        make_bus,
        make_documents,
        make_mover,
        make_records,
        make_store,
        missing_file,
        with_server_settings,
    )
    from holdfast.bootstrap.health import (
        blobs_health,
        bus_health,
        documents_health,
        language_model_health,
        repair_store,
        store_health,
    )
    from holdfast.bootstrap.language_models import prune_answers
    from holdfast.bootstrap.options import Options
    from holdfast.bootstrap.projections import projections_of, state_document, targets_of
    from holdfast.bootstrap.runtime import make_providers, make_runtime
