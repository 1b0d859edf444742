"""A program that is not there: a skip on a laptop, a failure in CI."""

from __future__ import annotations

import os
import shutil
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


def program(name: str, remedy: str) -> str:
    """A program of the system. Debian puts some where only root looks."""

    def find() -> str:
        program = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
        if program is None:
            raise NoSuchProgram(f"no {name}: {remedy}")
        return program

    return or_skip(find)


def openssl() -> str:
    """What makes certificates."""
    return program("openssl", "`apt-get install openssl`")
