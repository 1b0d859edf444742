"""The places where settings may be given, each read into raw values that know where they came
from."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from holdfast.errors import ConfigurationError
from holdfast.settings.fields import BY_ENVIRONMENT, BY_NAME, PREFIX
from holdfast.settings.without_effect import REASONS

CONFIG = "HOLDFAST_CONFIG"
PROFILE = "HOLDFAST_PROFILE"
REDIS_HOST = "REDIS_HOST"
REDIS_PARTS = ("REDIS_PORT", "REDIS_PASSWORD", "REDIS_TLS")
"""What goes with `REDIS_HOST` into one address."""
SECRETS = "HOLDFAST_SECRETS_DIR"
SECRET_FOLDERS = ("/run/secrets", "/etc/holdfast/secrets")
_KNOWN = {CONFIG, SECRETS, *BY_ENVIRONMENT, *REASONS}


class Given(NamedTuple):
    """A raw value and where it was found. `name` is the variable, when it came from one."""

    value: Any
    origin: str
    name: str = ""
    folder: Path | None = None


class Layer(NamedTuple):
    """One place: the values it gives by setting, all names used for each, its profiles, and what
    it gives under names that change nothing."""

    values: dict[str, list[Given]]
    profiles: dict[str, dict[str, list[Given]]] = {}  # noqa: RUF012  (never changed)
    without_effect: tuple[Given, ...] = ()


def from_flags(flags: Mapping[str, Any]) -> Layer:
    """What was given in the call or on the command line; None means not given."""
    values = {name: value for name, value in flags.items() if value not in (None, (), [])}
    return Layer({name: [Given(value, "command line")] for name, value in values.items()})


def from_variables(variables: Mapping[str, str], origin: str) -> Layer:
    """The environment, or anything with the same names in it."""
    given = variables
    if url := _redis_url(variables):
        variables = {**variables, REDIS_HOST: url}
    values: dict[str, list[Given]] = {}
    for name, field in BY_ENVIRONMENT.items():
        if variables.get(name, "").strip():
            values.setdefault(field.name, []).append(
                Given(variables[name], f"{origin} {name}", name)
            )
    for name in variables:
        if name.startswith(PREFIX) and name not in _KNOWN:
            known = [
                known.removeprefix(PREFIX) for known in BY_ENVIRONMENT if known.startswith(PREFIX)
            ]
            hint = _hint(name.removeprefix(PREFIX), known, PREFIX)
            raise ConfigurationError(f"{origin} {name} is not a setting{hint}")
    useless = [name for name in _without_effect(given) if given.get(name, "").strip()]
    without_effect = (Given(given[name], f"{origin} {name}", name) for name in useless)
    return Layer(values, without_effect=tuple(without_effect))


def _without_effect(variables: Mapping[str, str]) -> list[str]:
    """Names that change nothing, given what else is there."""
    lonely = () if variables.get(REDIS_HOST, "").strip() else REDIS_PARTS
    return [name for name in REASONS if name not in REDIS_PARTS or name in lonely]


def _redis_url(variables: Mapping[str, str]) -> str | None:
    """The address of a server that is given in parts."""
    host = variables.get(REDIS_HOST, "").strip()
    if not host:
        return None
    scheme = "rediss" if variables.get("REDIS_TLS", "").lower() in ("1", "true", "yes") else "redis"
    password = variables.get("REDIS_PASSWORD", "")
    owner = f":{quote(password, safe='')}@" if password else ""
    return f"{scheme}://{owner}{host}:{variables.get('REDIS_PORT', '').strip() or 6379}/0"


def from_dotenv(path: Path) -> Layer:
    """`NAME=value` lines, comments and quotes allowed; names that are not ours are left alone."""
    if not path.is_file():
        return Layer({})
    return from_variables(dict(_assignments(_read(path))), str(path))


def _assignments(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        if equals and not name.startswith("#"):
            yield name.strip(), _unquoted(value.strip())


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        return value[1:-1]
    return value.split(" #")[0].rstrip()


def from_secrets(folders: list[Path]) -> Layer:
    """Files named like the variables (in any case), as container platforms mount them."""
    variables: dict[str, str] = {}
    for folder in folders:
        for path in sorted(folder.iterdir()) if folder.is_dir() else []:
            name = path.name.upper()
            if path.is_file() and (name in BY_ENVIRONMENT or name.startswith(PREFIX)):
                variables.setdefault(name, _read(path).strip())
    return from_variables(variables, "secret")


def from_toml(path: Path, *, table: tuple[str, ...] = ()) -> Layer:
    """A settings file, or one table of a file that belongs to others as well."""
    content: Any = parse_toml(path)
    for part in table:
        content = content.get(part, {})
    where = f"{path} [{'.'.join(table)}]" if table else str(path)
    profiles = content.pop("profiles", {})
    return Layer(
        _flat(content, where, path.parent),
        {
            name: _flat(values, f"{where} profile {name}", path.parent)
            for name, values in profiles.items()
        },
    )


def parse_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(_read(path))
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path} is not valid TOML: {error}") from error


def _flat(
    content: Mapping[str, Any], where: str, folder: Path, prefix: str = ""
) -> dict[str, list[Given]]:
    values: dict[str, list[Given]] = {}
    for key, value in content.items():
        name = prefix + key
        if isinstance(value, dict) and any(known.startswith(f"{name}.") for known in BY_NAME):
            values.update(_flat(value, where, folder, f"{name}."))
        elif name in BY_NAME:
            values[name] = [Given(value, where, folder=folder)]
        else:
            raise ConfigurationError(
                f"{where}: {name!r} is not a setting{_hint(name, list(BY_NAME))}"
            )
    return values


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigurationError(f"{path} can't be read: {reason}") from error


def _hint(name: str, known: list[str], prefix: str = "") -> str:
    """The closest known name, or all of them. A common prefix is left out of the comparison."""
    close = get_close_matches(name, known, n=1)
    if close:
        return f"; did you mean {prefix}{close[0]}?"
    return f"; known are {', '.join(prefix + other for other in sorted(known))}"
