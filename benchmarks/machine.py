"""Where the figures come from, in one line."""

from __future__ import annotations

import os
import platform
import sqlite3
import tempfile
import time
from datetime import date
from pathlib import Path

SQLITE = f"SQLite {sqlite3.sqlite_version}, synchronous=FULL"


def describe(stores: str) -> str:
    """Hardware, versions, settings of the stores, and how long this disk takes for a sync."""
    return (
        f"{date.today()}, {os.cpu_count()} × {_processor()}, {_memory()} GB, "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}, {stores}, "
        f"{_file_system()} with fdatasync {_fdatasync() * 1e6:.0f} µs"
    )


def busy() -> str | None:
    """Whether other programs use the machine, by the kernel's figures of the last ten seconds."""
    try:
        share = float(Path("/proc/pressure/cpu").read_text().split("avg10=", 1)[1].split(" ", 1)[0])
    except (OSError, IndexError, ValueError):
        return None
    return f"tasks waited for a processor {share:.0f} % of the time" if share > 10 else None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(
            line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")
        )
    except (OSError, StopIteration):
        return platform.machine()


def _memory() -> int:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9)


def _file_system() -> str:
    """Of the folder that the measurements write to: on tmpfs nothing would be durable, and
    everything fast."""
    folder = Path(tempfile.gettempdir()).resolve()
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    except OSError:
        mounts = []
    kinds = {mount[1]: mount[2] for mount in mounts}
    mounted = (kinds[str(path)] for path in (folder, *folder.parents) if str(path) in kinds)
    return next(mounted, "unknown file system")


def _fdatasync(times: int = 200) -> float:
    with tempfile.NamedTemporaryFile(prefix="holdfast-benchmark-") as file:
        seconds = []
        for _ in range(times):
            start = time.perf_counter()
            file.write(b"x" * 4096)
            file.flush()
            os.fdatasync(file.fileno())
            seconds.append(time.perf_counter() - start)
    return sorted(seconds)[times // 2]
