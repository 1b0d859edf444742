"""The servers that are asked, each in a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from benchmarks import peers

ROOT = Path(__file__).resolve().parents[2]
PIPELINES = Path(__file__).with_name("pipelines.py")


def holdfast_command(store: str, port: int) -> list[str]:
    arguments = ["--store", store, "--app", str(PIPELINES), "serve", "--port", str(port)]
    return [sys.executable, "-m", "holdfast", *arguments]


def app_command(module: str, port: int, environment: str) -> list[str]:
    quiet = ["--no-access-log", "--log-level", "warning"]
    where = f"benchmarks.http.{module}:app"
    return [peers.python(environment), "-m", "uvicorn", where, "--port", str(port), *quiet]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def served(system: str, store: str) -> Iterator[str]:
    """The URL of a server that answers."""
    port = free_port()
    if system == "holdfast":
        command = holdfast_command(store, port)
    else:
        environment = "postgres" if store.startswith("postgresql") else peers.OURS
        if reason := peers.ready(environment):
            raise RuntimeError(f"{system} can't be had: {reason}")
        module = "procrastinate_app" if system == "procrastinate" else "bare"
        command = app_command(module, port, environment)
    # FastAPI and uvicorn are ours also where the peer has an environment of its own.
    path = os.pathsep.join([str(ROOT), str(ROOT / "src"), sysconfig.get_path("purelib"), *sys.path])
    variables = os.environ | {
        "BENCH_STORE": store,
        "PYTHONPATH": path,
        "HOLDFAST_LOG_LEVEL": "warning",
    }
    process = subprocess.Popen(command, env=variables, cwd=ROOT)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_until_it_answers(process, f"{url}/openapi.json")
        yield url
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_it_answers(process: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urlopen(url, timeout=5).read()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"it does not answer: {process.args}")
