"""Ends the servers that tests share."""

from tests.endings import end_all


def pytest_unconfigure() -> None:
    end_all()
