"""Layering: for each setting the first place that gives it wins, and the answer remembers which one
that was.

    command line  >  environment  >  .env  >  secrets  >  $HOLDFAST_CONFIG or ./holdfast.toml  >
    [tool.holdfast] of the nearest pyproject.toml  >  ~/.config/holdfast/config.toml  >  default

Inside a file, the chosen profile lies over the rest of that file.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins

from holdfast.errors import ConfigurationError
from holdfast.model.leadership import Leaders
from holdfast.model.lease import LeaseTimes
from holdfast.model.options import PipelineOptions, Retention
from holdfast.settings import places
from holdfast.settings.fields import BY_NAME, FIELDS, Field
from holdfast.settings.parsing import dollars, ratio
from holdfast.settings.places import Given, Layer
from holdfast.settings.secrecy import redacted
from holdfast.settings.values import (
    Compat,
    Events,
    Http,
    Jobs,
    Locks,
    Logs,
    MetricsSettings,
    Pool,
    PubSub,
    Push,
    Settings,
    Timeouts,
    Traces,
    Transcription,
    Webhooks,
)
from holdfast.settings.without_effect import REASONS

DEFAULT = "default"

log = logging.getLogger("holdfast.settings")


class Useless(Struct, frozen=True):
    """A name that was given and changes nothing, with what may be shown of its value."""

    name: str
    value: str
    origin: str
    reason: str

    def __str__(self) -> str:
        return f"{self.origin} has no effect: {self.reason}"


class Loaded(Struct, frozen=True):
    """The settings, where each came from, and what looked odd on the way."""

    settings: Settings
    origins: dict[str, str]
    warnings: list[str]
    useless: list[Useless] = []

    def log_useless(self) -> None:
        """Say which names have no effect: once, when something starts."""
        for name in self.useless:
            log.warning("%s", name)

    def is_default(self, name: str) -> bool:
        """Whether nobody has set it; for a table (`lease`), nothing in it."""
        return all(
            origin == DEFAULT
            for known, origin in self.origins.items()
            if known == name or known.startswith(f"{name}.")
        )

    def given(self, table: str = "") -> dict[str, Any]:
        """What somebody has set, by name; with a table (`lease`), what is set in it."""
        prefix = f"{table}." if table else ""
        values = getattr(self.settings, table) if table else self.settings
        names = [
            name.removeprefix(prefix)
            for name, origin in self.origins.items()
            if origin != DEFAULT and name.startswith(prefix)
        ]
        return {name: getattr(values, name) for name in names if "." not in name}

    def shown(self, name: str) -> str:
        """A value fit to be shown."""
        value: Any = self.settings
        for part in name.split("."):
            value = getattr(value, part)
        if BY_NAME[name].is_secret:
            return "***" if value else ""
        if isinstance(value, tuple):
            return ", ".join(map(str, value))
        if isinstance(value, dict):
            return redacted(json.dumps(to_builtins(value))) if value else ""
        if isinstance(value, float):
            is_plain = BY_NAME[name].parse in (ratio, dollars)
            return f"{value:g}" if is_plain else _written(value)
        return "" if value is None else redacted(str(value))


def _written(seconds: float) -> str:
    """A duration as one would write it in a file."""
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= length and seconds % length == 0:
            return f"{seconds / length:g}{unit}"
    return f"{seconds:g}s"


def load(
    flags: Mapping[str, Any] | None = None,
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Loaded:
    """Read all places. `flags` are values given in the call, by the names of `FIELDS`."""
    env = os.environ if env is None else env
    cwd = cwd or Path.cwd()
    layers = _layers(flags or {}, env, cwd)
    profile = _first(layers, "profile")
    stack = [values for layer in layers for values in _with_profile(layer, profile)]
    _check_profile(layers, profile)
    chosen = {field.name: _choose(stack, field, cwd) for field in FIELDS}
    settings = _build({name: value for name, (value, _) in chosen.items()})
    return Loaded(
        settings,
        {name: origin for name, (_, origin) in chosen.items()},
        [warning for field in FIELDS if (warning := _disagreement(stack, field))],
        [
            _useless(given)
            for layer in layers
            for given in layer.without_effect
            if not REASONS[given.name].unless(settings)
        ],
    )


def _useless(given: Given) -> Useless:
    entry = REASONS[given.name]
    value = "***" if entry.is_secret else redacted(str(given.value))
    return Useless(given.name, value, given.origin, entry.reason)


def _layers(flags: Mapping[str, Any], env: Mapping[str, str], cwd: Path) -> list[Layer]:
    return [
        places.from_flags(flags),
        places.from_variables(env, "environment"),
        places.from_dotenv(cwd / ".env"),
        places.from_secrets(_secret_folders(env)),
        *_files(env, cwd),
    ]


def _secret_folders(env: Mapping[str, str]) -> list[Path]:
    chosen = env.get(places.SECRETS)
    return [Path(chosen)] if chosen else [Path(folder) for folder in places.SECRET_FOLDERS]


def _files(env: Mapping[str, str], cwd: Path) -> list[Layer]:
    layers: list[Layer] = []
    config = cwd / env.get(places.CONFIG, "holdfast.toml")
    if config.is_file():
        layers.append(places.from_toml(config))
    elif env.get(places.CONFIG):
        raise ConfigurationError(f"{places.CONFIG} names {config}, and there is no such file")
    nearest = next(
        (d / "pyproject.toml" for d in (cwd, *cwd.parents) if (d / "pyproject.toml").is_file()),
        None,
    )
    if nearest is not None:
        layers.append(places.from_toml(nearest, table=("tool", "holdfast")))
    home = Path(env.get("XDG_CONFIG_HOME") or Path(env.get("HOME", "~")).expanduser() / ".config")
    if (personal := home / "holdfast" / "config.toml").is_file():
        layers.append(places.from_toml(personal))
    return layers


# --- choosing -------------------------------------------------------------------------------------


def _first(layers: list[Layer], name: str) -> str | None:
    return next(
        (str(layer.values[name][0].value) for layer in layers if name in layer.values), None
    )


def _with_profile(layer: Layer, profile: str | None) -> list[dict[str, list[Given]]]:
    over = layer.profiles.get(profile) if profile else None
    return [over, layer.values] if over is not None else [layer.values]


def _check_profile(layers: list[Layer], profile: str | None) -> None:
    known = sorted({name for layer in layers for name in layer.profiles})
    if profile is not None and profile not in known:
        listed = ", ".join(known) or "none are defined"
        raise ConfigurationError(
            f"profile {profile!r} is not defined (known: {listed}): add [profiles.{profile}] to "
            "holdfast.toml"
        )


def _choose(stack: list[dict[str, list[Given]]], field: Field, cwd: Path) -> tuple[Any, str]:
    for values in stack:
        if field.name in values:
            given = values[field.name][0]
            return _parsed(field, given, cwd), given.origin
    return field.default, DEFAULT


def _parsed(field: Field, given: Given, cwd: Path) -> Any:
    try:
        value = field.parser(given.name)(given.value)
    except ConfigurationError as error:
        raise ConfigurationError(
            f"{field.name} ({given.origin}): {redacted(str(error))}"
        ) from error
    if not field.is_path or given.folder is None or given.folder == cwd:
        return value
    if isinstance(value, tuple):
        return tuple(_anchored(part, given.folder) for part in value)
    return _anchored(value, given.folder)


def _anchored(value: str, folder: Path) -> str:
    """A relative path in a file is meant relative to that file, wherever the program is started."""
    for scheme in ("sqlite:///", "file:"):
        path = value.removeprefix(scheme)
        if path != value and not path.startswith("/"):
            return f"{scheme}{folder.absolute() / path}"
    file, _, attribute = value.partition(":")
    if file.endswith(".py"):
        return f"{folder.absolute() / file}{':' if attribute else ''}{attribute}"
    return value


def _disagreement(stack: list[dict[str, list[Given]]], field: Field) -> str | None:
    """Two names of one setting with different values are most likely a mistake."""
    named = [given for values in stack for given in values.get(field.name, []) if given.name]
    others = (given for given in named[1:] if given.name != named[0].name)
    other = next((given for given in others if _differs(field, given, named[0])), None)
    if other is None:
        return None
    return (
        f"{other.origin} is ignored: {field.name} comes from {named[0].origin}, which says "
        "something else"
    )


def _differs(field: Field, given: Given, winner: Given) -> bool:
    """Compared as they are read: 30000 ms and 30s are the same."""
    try:
        return field.parser(given.name)(given.value) != field.parser(winner.name)(winner.value)
    except ConfigurationError:
        return True


def _build(values: dict[str, Any]) -> Settings:
    def table(name: str) -> dict[str, Any]:
        return {
            key.partition(".")[2]: value
            for key, value in values.items()
            if key.startswith(f"{name}.")
        }

    plain = {name: value for name, value in values.items() if "." not in name}
    return Settings(
        **plain,
        events=Events(**table("events")),
        lease=LeaseTimes(**table("lease")),
        leader=Leaders(**table("leader")),
        http=Http(**table("http")),
        locks=Locks(**table("locks")),
        metrics=MetricsSettings(**table("metrics")),
        traces=Traces(**table("traces")),
        jobs=Jobs(**table("jobs")),
        transcription=Transcription(**table("transcription")),
        compat=Compat(**table("compat")),
        webhooks=Webhooks(**table("webhooks")),
        pubsub=PubSub(**table("pubsub")),
        push=Push(**table("push")),
        pipeline=PipelineOptions(**table("pipeline")),
        retention=Retention(**table("retention")),
        pool=Pool(**table("pool")),
        timeout=Timeouts(**table("timeout")),
        log=Logs(**table("log")),
    )
