"""A program that is not there: a skip on a laptop, a failure in CI."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from holdfast.testing.servers import NoSuchProgram


def or_skip(find: Callable[[], str]) -> str:
    try:
        return find()
    except NoSuchProgram as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))
