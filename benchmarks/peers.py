"""The peers' own environment, so that nothing of theirs reaches ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".venv-peers"
PYTHON = FOLDER / "bin" / "python"
PACKAGES = ("dbos==3.3.0", "apsw==3.54.1.0", "uvloop==0.23.0", "msgspec==0.22.0")
_STAMP = FOLDER / "benchmarks-installed.txt"


def ready() -> str | None:
    """Create the environment where it is missing. Returns why there is none, or None."""
    wanted = "\n".join(PACKAGES)
    if PYTHON.exists() and _STAMP.exists() and _STAMP.read_text() == wanted:
        return None
    try:
        subprocess.run([sys.executable, "-m", "venv", str(FOLDER)], check=True, capture_output=True, timeout=120)
        install = [str(PYTHON), "-m", "pip", "install", "--quiet", *PACKAGES]
        subprocess.run(install, check=True, capture_output=True, text=True, timeout=600)
    except subprocess.CalledProcessError as error:
        return str(error.stderr or error).strip().splitlines()[-1]
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    _STAMP.write_text(wanted)
    return None
