"""The HTTP API: `/v1`, health, and the routes of apps.

    from holdfast.api import create_app

    api = create_app(Holdfast("sqlite:///holdfast.db", pipelines=[report]))   # an ASGI application

Routers of apps take what they need from here: `Reader`, `Submitter`, `Operator` and `Admin` are
dependencies that check the caller's scope and give its `Access`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_EXPORTS = {
    "Access": "access",
    "Admin": "access",
    "Operator": "access",
    "PageReader": "access",
    "Problem": "problems",
    "Reader": "access",
    "Submitter": "access",
    "answer": "answers",
    "create_app": "app",
    "documented": "documentation",
    "read_body": "bodies",
}

__all__ = [
    "Access",
    "Admin",
    "Operator",
    "PageReader",
    "Problem",
    "Reader",
    "Submitter",
    "answer",
    "create_app",
    "documented",
    "read_body",
]


def __getattr__(name: str) -> Any:
    """Import on first use; without the extra, say which one it is."""
    if name not in _EXPORTS:
        raise AttributeError(f"module 'holdfast.api' has no attribute {name!r}")
    from holdfast.api.extra import require_extra

    require_extra()
    value = getattr(import_module(f"holdfast.api.{_EXPORTS[name]}"), name)
    globals()[name] = value
    return value


if TYPE_CHECKING:
    from holdfast.api.access import Access as Access
    from holdfast.api.access import Admin as Admin
    from holdfast.api.access import Operator as Operator
    from holdfast.api.access import PageReader as PageReader
    from holdfast.api.access import Reader as Reader
    from holdfast.api.access import Submitter as Submitter
    from holdfast.api.answers import answer as answer
    from holdfast.api.app import create_app as create_app
    from holdfast.api.bodies import read_body as read_body
    from holdfast.api.documentation import documented as documented
    from holdfast.api.problems import Problem as Problem
