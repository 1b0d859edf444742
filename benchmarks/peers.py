"""The peers' own environments, so that their packages do not mix with ours."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path(os.environ.get("BENCH_PEERS") or ROOT / ".venv-peers").absolute()
PINS = Path(__file__).with_name("pins")

OURS = "ours"
NODE = "node"
PACKAGES = {
    "postgres": (
        *("absurd-sdk", "absurdctl", "apsw", "asyncpg", "dbos", "msgspec"),
        *("pgqueuer", "procrastinate", "psycopg[binary,pool]", "uvloop"),
    ),
    "redis": (
        "celery[redis]",
        "dramatiq",
        "hiredis",
        "orjson",
        "redis",
        "saq",
        "taskiq",
        "taskiq-redis",
        "uvloop",
    ),
    "arq": ("arq", "hiredis", "uvloop"),
    "aioredlock": ("aioredlock",),
}
"""The required packages. There are two environments because some peers' requirements conflict."""


def ready(environment: str) -> str | None:
    """Create an environment where it is missing. Returns why there is none, or None."""
    if environment == OURS:
        return None
    folder = FOLDER / environment
    stamp = folder / "benchmarks-installed.txt"
    packages = _required_packages(environment)
    try:
        if stamp.exists() and stamp.read_text() == packages:
            return None
        install = _install_node if environment == NODE else _install_python
        install(folder)
        stamp.write_text(packages)
    except subprocess.CalledProcessError as error:
        lines = str(error.stderr or error.stdout or error).strip().splitlines()
        return next(
            (line for line in lines if line.startswith("ERROR")), lines[-1] if lines else str(error)
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None


def command(environment: str, module: str) -> list[str]:
    """What starts a file of `systems/` in an environment."""
    if environment == NODE:
        return ["node", str(Path(__file__).with_name("systems") / module)]
    return [python(environment), "-m", f"benchmarks.systems.{module}"]


def variables(environment: str) -> dict[str, str]:
    return {"NODE_PATH": str(FOLDER / NODE / "node_modules")} if environment == NODE else {}


def python(environment: str) -> str:
    return sys.executable if environment == OURS else str(FOLDER / environment / "bin" / "python")


def versions() -> str:
    """Of everything that is asked for, as pinned."""
    by_name: dict[str, str] = dict(json.loads(_pins(NODE).read_text())["dependencies"])
    for environment, packages in PACKAGES.items():
        pinned = dict(
            line.split("==") for line in _pins(environment).read_text().splitlines() if "==" in line
        )
        for package in packages:
            name = package.split("[")[0]
            by_name.setdefault(name, pinned[name])
    by_name["Node"] = _node_version()
    return ", ".join(
        f"{name} {version}"
        for name, version in sorted(by_name.items(), key=lambda item: item[0].lower())
    )


def _node_version() -> str:
    try:
        return _run(["node", "--version"], 20).strip()
    except (OSError, subprocess.SubprocessError):
        return "missing"


def _pins(environment: str) -> Path:
    return PINS / NODE / "package.json" if environment == NODE else PINS / f"{environment}.txt"


def _required_packages(environment: str) -> str:
    return f"{sys.version}\n{_pins(environment).read_text()}"


def _install_python(folder: Path) -> None:
    environment = folder.name
    _run([sys.executable, "-m", "venv", str(folder)], 120)
    pins = ["--constraint", str(_pins(environment))]
    _run(
        [python(environment), "-m", "pip", "install", "--quiet", *pins, *PACKAGES[environment]], 600
    )


def _install_node(folder: Path) -> None:
    """What the lock file names; `npm ci` would also ask for the binaries of other systems."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(PINS / NODE / name, folder / name)
    _run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder)], 600)


def _run(command: list[str], timeout: float) -> str:
    return subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=timeout
    ).stdout
