"""The extra that the HTTP API comes with."""

from __future__ import annotations

from importlib.util import find_spec

from holdfast.errors import ConfigurationError

MODULES = ("fastapi", "uvicorn")


def require_extra() -> None:
    """Raise ConfigurationError with what to install, if it is missing."""
    missing = [name for name in MODULES if find_spec(name) is None]
    if missing:
        raise ConfigurationError(
            f"the HTTP API needs {' and '.join(missing)}: pip install 'holdfast[serve]'"
        )
