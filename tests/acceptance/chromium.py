"""A real browser for the acceptance tests: Debian's Chromium, driven by playwright.

Playwright's own download is never used. A laptop without Chromium skips, visibly; CI fails.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

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
    if program := _installed():
        return program
    if not os.environ.get("CI"):
        pytest.skip("there is no Chromium on this machine: `make browser` installs it")
    pytest.fail(
        "CI has no Chromium, so the report page was not looked at: `make browser` installs it"
    )


def _installed() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)
