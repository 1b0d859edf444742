"""The external effects of a job: a git repository for each service, and a zone file.

A worker that was stopped in the middle, or one that was replaced and does not know it yet, may do
all of this again. So everything is written to be repeated: a commit names its instance and is made
once, a record that is there is left alone, a file is replaced as a whole."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from compute_files import Files

from holdfast import Permanent, Transient

ZONE = "example.internal."
START = "2025-01-01T00:00:00Z"
"""The date of generated commits: the same files give the same commit."""


class Workspace:
    """A folder. Processes on one host may share it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    # --- git --------------------------------------------------------------------------------------

    def commit(self, service: str, instance: str, files: Files) -> str:
        """The commit of an instance, made if it is not there."""
        repository = self.folder / service
        with self._alone(service):
            repository.mkdir(parents=True, exist_ok=True)
            if not (repository / ".git").exists():
                self._git(repository, "init", "--quiet", "--initial-branch=main")
            if existing := self._commit_of(repository, instance):
                return existing
            for path, text in files.items():
                _replace(repository / path, text)
            self._git(repository, "add", "--all")
            message = f"Generate {service}\n\nInstance: {instance}"
            self._git(repository, "commit", "--quiet", "--allow-empty", "-m", message)
            return self._commit_of(repository, instance)

    def _commit_of(self, repository: Path, instance: str) -> str:
        if not self._git(repository, "for-each-ref", "refs/heads"):
            return ""
        trailer = "%(trailers:key=Instance,valueonly,separator=%x20)"
        log = self._git(repository, "log", f"--format=%H {trailer}").splitlines()
        commits = {name: commit for commit, _, name in (line.partition(" ") for line in log)}
        return commits.get(instance, "")

    def _git(self, repository: Path, *words: str) -> str:
        who = {"NAME": "compute", "EMAIL": "compute@example.internal", "DATE": START}
        identity = {
            f"GIT_{role}_{k}": v for role in ("AUTHOR", "COMMITTER") for k, v in who.items()
        }
        settled = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        try:
            process = subprocess.run(
                ["git", "-C", str(repository), *words],
                env={**os.environ, **identity, **settled},
                capture_output=True,
                text=True,
                timeout=60,
            )
        except FileNotFoundError:
            raise Permanent("git is not installed here") from None
        if process.returncode:
            raise Transient(f"git {words[0]} failed: {process.stderr.strip()[-500:]}")
        return process.stdout

    # --- dns --------------------------------------------------------------------------------------

    def point(self, service: str, target: str) -> str:
        """Give a service its name. The serial number rises if something changes."""
        path = self.folder / "zone.db"
        with self._alone("zone"):
            serial, records = _zone(path)
            if records.get(service) != target:
                records[service] = target
                lines = [f"{name}\tIN\tCNAME\t{records[name]}" for name in sorted(records)]
                _replace(path, "\n".join([f"; serial {serial + 1}", *lines, ""]))
        return f"{service}.{ZONE}"

    @contextmanager
    def _alone(self, purpose: str) -> Iterator[None]:
        """Exclude other processes of this host meanwhile."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / f".{purpose}.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _zone(path: Path) -> tuple[int, dict[str, str]]:
    if not path.exists():
        return 0, {}
    first, *lines = path.read_text().splitlines()
    fields = [line.split("\t") for line in lines]
    return int(first.rpartition(" ")[2]), {row[0]: row[3] for row in fields}


def _replace(path: Path, text: str) -> None:
    """As a whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    new.write_text(text)
    new.replace(path)
