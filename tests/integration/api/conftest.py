from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.api.live import STORES, LiveApi, store_url


@pytest.fixture(params=STORES)
def api(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LiveApi]:
    """The service on every store."""
    with LiveApi(store_url(request.param, tmp_path)) as live:
        yield live


@pytest.fixture(scope="module")
def memory_api() -> Iterator[LiveApi]:
    """One service for the tests of a module that do not care about the store."""
    with LiveApi() as live:
        yield live
