"""The peers' own environment, so that nothing of theirs reaches ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path(os.environ.get("HOLDFAST_BENCH_PEERS") or ROOT / ".venv-peers").absolute()
PYTHON = FOLDER / "bin" / "python"
PACKAGES = ("dbos", "apsw", "uvloop", "msgspec")
PINS = Path(__file__).with_name("peers.txt")
_STAMP = FOLDER / "benchmarks-installed.txt"


def ready() -> str | None:
    """Create the environment where it is missing. Returns why there is none, or None."""
    wanted = f"{sys.version}\n{PINS.read_text()}"
    try:
        if PYTHON.exists() and _STAMP.exists() and _STAMP.read_text() == wanted:
            return None
        _run([sys.executable, "-m", "venv", str(FOLDER)], 120)
        _run([str(PYTHON), "-m", "pip", "install", "--quiet", "--constraint", str(PINS), *PACKAGES], 600)
        _STAMP.write_text(wanted)
    except subprocess.CalledProcessError as error:
        lines = str(error.stderr or error.stdout or error).strip().splitlines()
        return next((line for line in lines if line.startswith("ERROR")), lines[-1] if lines else str(error))
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None


def _run(command: list[str], timeout: float) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=timeout)
