"""The disk under a path: which file system, how much room, and what that means for what is kept
there."""

from __future__ import annotations

import shutil
from pathlib import Path

from holdfast.ports.health import Finding, bytes_of, make_finding

NETWORK_FILE_SYSTEMS = {
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "9p",
    "afs",
    "ceph",
    "glusterfs",
    "fuse.sshfs",
    "lustre",
}
VOLATILE = {
    "tmpfs": "in memory: gone after a restart",
    "overlay": "a container's own layer: gone with the container",
}
LITTLE, TOO_LITTLE = 1 << 30, 64 << 20


def file_system_of(path: Path, mounts: Path = Path("/proc/self/mounts")) -> str | None:
    """The type of the file system that holds a path, where the system tells."""
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        return None
    target = path.resolve()
    best: tuple[int, str] = (-1, "")
    for line in lines:
        fields = line.split(" ")
        point = Path(fields[1].replace("\\040", " "))
        if target.is_relative_to(point):
            best = max(best, (len(point.parts), fields[2]))
    return best[1] or None


def nearest(path: Path) -> Path:
    """The path, or the first folder above it that exists."""
    return next(folder for folder in (path, *path.absolute().parents) if folder.exists())


def room(path: Path) -> Finding:
    free = shutil.disk_usage(nearest(path)).free
    return make_finding(
        "space",
        f"{bytes_of(free)} free",
        fail=free < TOO_LITTLE,
        warn=free < LITTLE,
        why="when the disk is full nothing is accepted and no step can be stored, until there is "
        "room again",
        fix="free some space, shorten retention.finished and retention.failed, or move it to a "
        "larger disk",
    )


def file_system(path: Path, *, refuse_network: bool) -> Finding:
    """Whether what is kept there is there when it is needed again, and can be trusted to be
    locked."""
    kind = file_system_of(nearest(path)) or "unknown"
    if refuse_network and kind in NETWORK_FILE_SYSTEMS:
        return make_finding(
            "file system",
            f"{kind}, a network file system",
            fail=True,
            why="SQLite's locks are not reliable between machines: two workers would damage the "
            "file",
            fix="put the file on a local disk, or use a PostgreSQL or Redis store",
        )
    return make_finding(
        "file system",
        f"{kind}, {VOLATILE[kind]}" if kind in VOLATILE else kind,
        warn=kind in VOLATILE,
        why="accepted runs must survive a restart of the machine or the container",
        fix="put it on a disk or a volume that stays",
    )
