"""The table of settings: name, meaning, how it is read, and the other names it is known by."""

from __future__ import annotations

from typing import Any, NamedTuple

from holdfast.settings.parsing import (
    Parser,
    choice,
    connections,
    count,
    duration,
    server_timeout,
    size,
    text,
    texts,
)
from holdfast.settings.values import Settings

PREFIX = "HOLDFAST_"


class Field(NamedTuple):
    """One setting. In TOML `lease.ttl` is `ttl` in the table `[lease]`."""

    name: str
    help: str
    parse: Parser = text
    aliases: tuple[str, ...] = ()
    is_path: bool = False
    """Whether a relative path in it belongs to the folder of the file that it was read from."""

    @property
    def environment(self) -> str:
        return PREFIX + self.name.replace(".", "_").upper()

    @property
    def names(self) -> tuple[str, ...]:
        """Its names in the environment; the first that is set wins."""
        return (self.environment, *self.aliases)

    @property
    def default(self) -> Any:
        value: Any = Settings()
        for part in self.name.split("."):
            value = getattr(value, part)
        return value


FIELDS: tuple[Field, ...] = (
    Field(
        "store",
        "Where runs, checkpoints, events and locks live: sqlite:///file.db, "
        "postgresql://host/database, "
        "redis://host:6379/0, or memory: for tests.",
        aliases=("DATABASE_URL",),
        is_path=True,
    ),
    Field(
        "blobs",
        "Where large values and artifacts live: file:./folder or memory:. Default: beside the "
        "store.",
        is_path=True,
    ),
    Field("bus", "Messages from and to other systems: none, redis://host:6379/0 or memory:."),
    Field(
        "llm",
        "The language model that steps ask, and that analyses comments for reports: openai:MODEL, "
        "anthropic:MODEL, google:MODEL, or openai:MODEL?base_url=… for any server that speaks "
        "OpenAI's protocol. local: is none: reports are made offline.",
    ),
    Field(
        "app",
        "Where pipelines are found: module:attribute or file.py:attribute; a Pipeline, a list or "
        "dict of "
        "them, or a Holdfast; without an attribute all of a module. In the environment separated "
        "by commas.",
        texts,
        is_path=True,
    ),
    Field("tenant", "The tenant of runs that are started without --tenant."),
    Field("concurrency", "Runs that one worker has in flight at once.", count),
    Field(
        "max_bytes",
        "Sum of the inputs' sizes that one worker has in flight, for example 500MiB.",
        size,
    ),
    Field("grace", "How long steps under way may go on after a worker was told to stop.", duration),
    Field("lease.ttl", "How long a lease lasts when it is not renewed.", duration),
    Field("lease.renew", "How often leases are renewed.", duration),
    Field("lease.margin", "How long before its end a lease is no longer trusted.", duration),
    Field("lease.sweep", "How often the runs of vanished workers are looked for.", duration),
    Field(
        "retention.finished",
        "How long succeeded and cancelled runs are kept, and answers of language models.",
        duration,
    ),
    Field("retention.failed", "How long failed runs and open dead letters are kept.", duration),
    Field(
        "pool.size",
        "Connections that a process keeps to the server of its store or bus, unless the URL says "
        "pool=. Default: 4 to "
        "PostgreSQL, 2 to Redis.",
        connections,
    ),
    Field(
        "timeout.connect",
        "How long connecting to a server may take, unless the URL says connect=. Default: as "
        "timeout.command.",
        server_timeout,
    ),
    Field(
        "timeout.command",
        "How long a server may take to answer before it counts as away, unless the URL says "
        "timeout=. Default: 10s for "
        "PostgreSQL, 5s for Redis.",
        server_timeout,
    ),
    Field(
        "log.level",
        "What the program logs: debug, info, warning or error.",
        choice(
            "debug",
            "info",
            "warning",
            "error",
            also={"warn": "warning", "critical": "error", "fatal": "error"},
        ),
        aliases=("LOG_LEVEL",),
    ),
    Field(
        "log.format",
        "How log lines look: text or json.",
        choice("text", "json"),
        aliases=("LOG_FORMAT",),
    ),
    Field("profile", "Which [profiles.NAME] table of the settings files is laid over the rest."),
)

BY_NAME: dict[str, Field] = {field.name: field for field in FIELDS}
BY_ENVIRONMENT: dict[str, Field] = {name: field for field in FIELDS for name in field.names}
