"""What tests of the LLM client share."""

from collections.abc import Iterator

import pytest
from tests.unit.llm.scene import Stage


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage()
    yield stage
    stage.world.close()


@pytest.fixture(params=["openai", "anthropic", "google"])
def vendor(request: pytest.FixtureRequest) -> str:
    return request.param
