"""Files and folders that belong to their owner alone: 0600 and 0700, whatever the umask."""

from __future__ import annotations

import os
from pathlib import Path

FILE, FOLDER = 0o600, 0o700


def open_new(path: str | Path) -> int:
    """A new file, open for writing. Raises FileExistsError."""
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, FILE)
    os.fchmod(descriptor, FILE)  # a umask can only have taken rights away
    return descriptor


def make_folder(path: Path) -> None:
    """A new folder. Raises FileExistsError."""
    path.mkdir(FOLDER)
    path.chmod(FOLDER)
