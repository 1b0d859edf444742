"""A real browser for the acceptance tests: Debian's Chromium, driven by playwright.

Playwright's own download is never used. A laptop without Chromium skips, visibly; CI installs it or fails.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser, closed at the end."""
    path = _path()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


def _path() -> str:
    if found := _found():
        return found
    if not os.environ.get("CI"):
        pytest.skip("there is no Chromium on this machine: apt-get install chromium")
    if os.geteuid() == 0:
        _install()
    found = _found()
    if not found:
        pytest.fail("CI has no Chromium, so the report page was not looked at: apt-get install -y chromium")
    return found


def _found() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def _install() -> None:
    """Debian's package, by one test process at a time."""
    with open(Path(tempfile.gettempdir()) / "holdfast-chromium.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _found():
            for words in (["update", "-q"], ["install", "-y", "-q", "--no-install-recommends", "chromium"]):
                subprocess.run(["apt-get", *words], check=False, timeout=600, stdout=subprocess.DEVNULL)
