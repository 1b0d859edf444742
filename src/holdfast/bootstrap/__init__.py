"""Settings in, wired objects out: the only place that knows which adapter a URL means."""

from holdfast.bootstrap.analysts import ShippedAnalysts, check_analyst
from holdfast.bootstrap.factories import (
    default_blobs,
    make_blobs,
    make_bus,
    make_mover,
    make_store,
    missing_file,
    with_server_settings,
)
from holdfast.bootstrap.health import (
    analyst_health,
    blobs_health,
    bus_health,
    repair_store,
    store_health,
)
from holdfast.bootstrap.options import Options

__all__ = [
    "Options",
    "ShippedAnalysts",
    "analyst_health",
    "blobs_health",
    "bus_health",
    "check_analyst",
    "default_blobs",
    "make_blobs",
    "make_bus",
    "make_mover",
    "make_store",
    "missing_file",
    "repair_store",
    "store_health",
    "with_server_settings",
]
