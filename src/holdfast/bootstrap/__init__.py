"""Settings in, wired objects out: the only place that knows which adapter a URL means."""

from holdfast.bootstrap.analysts import ShippedAnalysts, check_analyst
from holdfast.bootstrap.blobs import default_blobs, make_blobs
from holdfast.bootstrap.buses import make_bus
from holdfast.bootstrap.health import (
    analyst_health,
    blobs_health,
    bus_health,
    repair_store,
    store_health,
)
from holdfast.bootstrap.options import Options
from holdfast.bootstrap.stores import make_mover, make_store, missing_file
from holdfast.bootstrap.urls import with_server_settings

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
