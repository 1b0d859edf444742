"""What the URLs of all adapters have in common: how they are read, and how it is said that one
can't be used."""

from __future__ import annotations

from urllib.parse import unquote

from holdfast.errors import ConfigurationError
from holdfast.settings.secrecy import redacted


def scheme_of(url: str) -> str:
    """What stands before the first colon; empty when there is none."""
    scheme, colon, _ = url.partition(":")
    return scheme if colon else ""


def sqlite_path(url: str) -> str:
    if not url.startswith("sqlite:///") or len(url) == len("sqlite:///"):
        raise ConfigurationError(
            f"store = {redacted(url)!r}: write sqlite:///file.db, or "
            "sqlite:////absolute/path/file.db"
        )
    if url == "sqlite:///:memory:":
        raise ConfigurationError(f"store = {url!r}: use memory: for a store that is not kept")
    return unquote(url[len("sqlite:///") :])


def file_path(url: str) -> str:
    path = url.removeprefix("file:").removeprefix("//")
    if not path:
        raise ConfigurationError(f"{url!r} names no folder: write file:./folder")
    return unquote(path)


def not_installed(url: str, extra: str) -> ConfigurationError:
    return ConfigurationError(
        f"{redacted(url)!r} needs the package that comes with `pip install holdfast[{extra}]`"
    )
