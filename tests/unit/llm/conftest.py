"""What tests of the LLM client share."""

from collections.abc import Iterator

import pytest
from tests.unit.llm.harness import VirtualTime


@pytest.fixture
def virtual_time() -> Iterator[VirtualTime]:
    virtual_time = VirtualTime()
    yield virtual_time
    virtual_time.world.close()


@pytest.fixture(params=["openai", "anthropic", "google"])
def vendor(request: pytest.FixtureRequest) -> str:
    return request.param
