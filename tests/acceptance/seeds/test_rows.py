"""Every row has a test, or is listed as open."""

import pytest
from tests.acceptance.seeds.conftest import seeds


@pytest.mark.parametrize("seed", seeds(), ids=lambda seed: seed.number)
def test_every_row_is_tested_or_listed_as_open(seed):
    assert list(seed.problems()) == []
