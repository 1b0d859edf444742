"""The settings as the rest of the program sees them: checked, typed, unchanging."""

from __future__ import annotations

from msgspec import Struct

from holdfast.model.lease import LeaseTimes
from holdfast.model.options import Retention, WorkerOptions

DEFAULT_STORE = "sqlite:///holdfast.db"
_WORKER = WorkerOptions()


class Pool(Struct, frozen=True):
    """How a process shares its connections to a server; None is what the adapter finds right."""

    size: int | None = None


class Timeouts(Struct, frozen=True):
    """How long a server may take, in seconds; None is what the adapter finds right."""

    connect: float | None = None
    command: float | None = None


class Logs(Struct, frozen=True):
    """How the program's own log reads; it goes to standard error."""

    level: str = "info"
    format: str = "text"


class Settings(Struct, frozen=True):
    """What `load` answers. Durations are seconds, sizes are bytes."""

    store: str = DEFAULT_STORE
    blobs: str | None = None
    bus: str = "none"
    llm: str = "local:"
    app: tuple[str, ...] = ()
    tenant: str = "default"
    concurrency: int = _WORKER.concurrency
    max_bytes: int = _WORKER.max_bytes
    grace: float = _WORKER.grace
    lease: LeaseTimes = LeaseTimes()
    retention: Retention = Retention()
    pool: Pool = Pool()
    timeout: Timeouts = Timeouts()
    log: Logs = Logs()
    profile: str | None = None
