"""The version before this one, from the history of the repository: `previous_version.txt` holds its
commit. A release writes its own commit there."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

from holdfast.testing.servers import NoSuchProgram
from tests.missing import or_skip

ROOT = Path(__file__).parents[2]
PREVIOUS = Path(__file__).with_name("previous_version.txt")


def unpack_previous(folder: Path) -> Path:
    """Its source, below the folder."""
    commit = PREVIOUS.read_text().strip()

    def unpack() -> str:
        archive = git("archive", commit, "src")
        if archive.returncode != 0:
            raise NoSuchProgram(
                f"no source of the version before ({archive.stderr.decode().strip()}): clone the "
                "whole history"
            )
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
            files.extractall(folder, filter="data")
        return str(folder / "src")

    source = Path(or_skip(unpack))
    is_ancestor = git("merge-base", "--is-ancestor", commit, "HEAD").returncode == 0
    assert is_ancestor, f"{commit} is only in this clone: {PREVIOUS.name} names one of the history"
    return source


def git(*words: str) -> subprocess.CompletedProcess[bytes]:
    command = ["git", "-c", "safe.directory=*", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False)


class Version:
    """A version of holdfast whose commands are run in processes of their own."""

    def __init__(self, source: Path, environment: Mapping[str, str]) -> None:
        variables = {name: text for name, text in os.environ.items() if name[:9] != "HOLDFAST_"}
        self._environment = {**variables, **environment, "PYTHONPATH": str(source)}
        self._source = source

    def start(self, *words: str, folder: Path, log: Path) -> subprocess.Popen[bytes]:
        with log.open("wb") as output:
            return subprocess.Popen(
                [sys.executable, "-m", "holdfast", *words],
                cwd=folder,
                env=self._environment,
                stdout=output,
                stderr=output,
            )

    def call(self, *words: str, folder: Path) -> str:
        """What a command prints."""
        return subprocess.run(
            [sys.executable, "-m", *words],
            cwd=folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    def is_what_is_run(self, folder: Path) -> bool:
        """Not what is installed beside it."""
        code = "import holdfast; print(holdfast.__file__)"
        command = [sys.executable, "-c", code]
        output = subprocess.run(
            command, cwd=folder, env=self._environment, capture_output=True, text=True, check=True
        )
        return Path(output.stdout.strip()).is_relative_to(self._source)
