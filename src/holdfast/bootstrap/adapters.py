"""The table of adapters: one entry each. Which adapter a URL means is decided here and nowhere
else.

A part of an adapter is named by where it is and by what it is given; it is imported when it is
first made, so that nobody needs the packages of adapters that are not used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, Literal

from msgspec import Struct

from holdfast.bootstrap.urls import file_path, not_installed, scheme_of, sqlite_path
from holdfast.errors import ConfigurationError
from holdfast.settings.secrecy import redacted

Port = Literal["store", "blobs", "bus", "documents", "mover", "records"]


class Part(Struct, frozen=True):
    """What implements a port: `module:name` inside `holdfast.adapters`, and the names of what it is
    given, in order: `url`, `path` (which the URL names), `clock`, `store_url`, `many_hosts`
    (whether the store is a server, so that workers may be anywhere), `collections` (of records),
    `topology` (which topics and subscriptions the settings want)."""

    where: str
    takes: tuple[str, ...] = ()


class Adapter(Struct, frozen=True):
    """Everything that is known about an adapter. A port that it does not implement is None."""

    schemes: tuple[str, ...]
    store: Part | None = None
    blobs: Part | None = None
    bus: Part | None = None
    documents: Part | None = None
    mover: Part | None = None
    """Reads and fills its store, past everybody else."""
    records: Part | None = None
    """Records on their own, beside no runs; every store has records, too."""
    health: Part | None = None
    """What can be said about its store or blobs; None: it lives in the memory of one process."""
    bus_health: Part | None = None
    documents_health: Part | None = None
    setup: Part | None = None
    """Creates what its bus needs."""
    repair: Part | None = None
    """Sets what its server can be told while it runs."""
    extra: str | None = None
    """What has to be installed for it: `pip install holdfast[EXTRA]`."""
    is_server: bool = False
    """Reached over the network; takes parameters after `?`."""
    path: Callable[[str], str] | None = None
    """The path that a URL of it names."""
    server_settings: tuple[str, ...] = ("pool", "connect", "timeout")
    """Parameters of its URL that the settings `pool` and `timeout` fill, if it is a server."""

    def make(self, part: Part, url: str, **given: Any) -> Any:
        """Import a part and call it. Says which package is missing."""
        arguments: Mapping[str, Any] = {
            "url": url,
            "path": self.path(url) if self.path is not None else None,
            **given,
        }
        factory = self.load(part, url)
        return factory(*[arguments[argument] for argument in part.takes])

    def load(self, part: Part, url: str) -> Any:
        """Import a part. Says which package is missing."""
        module, _, name = part.where.partition(":")
        try:
            return getattr(import_module(f"holdfast.adapters.{module}"), name)
        except ImportError as error:
            if self.extra is None:
                raise
            raise not_installed(url, self.extra) from error


ADAPTERS = (
    Adapter(
        ("memory",),
        store=Part("memory.store:MemoryStore", ("clock",)),
        blobs=Part("memory.blobs:MemoryBlobs"),
        bus=Part("inprocess.bus:InProcessBus"),
        documents=Part("memory.documents:MemoryDocuments", ("clock",)),
    ),
    Adapter(
        ("sqlite",),
        store=Part("sqlite.store:SqliteStore", ("path", "clock")),
        mover=Part("sqlite.mover:SqliteMover", ("path", "clock")),
        health=Part("sqlite.health:findings", ("path",)),
        path=sqlite_path,
    ),
    Adapter(
        ("file",),
        blobs=Part("files.blobs:FileBlobs", ("path",)),
        documents=Part("files.documents:FileDocuments", ("path", "clock")),
        health=Part("files.health:findings", ("path", "many_hosts")),
        path=file_path,
    ),
    Adapter(
        ("gs", "s3"),
        blobs=Part("buckets.blobs:BucketBlobs", ("url",)),
        documents=Part("buckets.documents:BucketDocuments", ("url", "clock")),
        health=Part("buckets.health:findings", ("url",)),
        documents_health=Part("buckets.health:findings", ("url",)),
        extra="buckets",
        is_server=True,
        server_settings=("connect", "timeout"),
    ),
    Adapter(
        ("firestore",),
        documents=Part("firestore.documents:FirestoreDocuments", ("url", "clock")),
        records=Part("firestore.records:FirestoreRecords", ("url", "collections")),
        documents_health=Part("firestore.health:findings", ("url",)),
        extra="firestore",
        is_server=True,
        server_settings=("timeout",),
    ),
    Adapter(
        ("postgresql", "postgres"),
        store=Part("postgres.store:PostgresStore", ("url", "clock")),
        mover=Part("postgres.mover:PostgresMover", ("url", "clock")),
        health=Part("postgres.health:findings", ("url",)),
        extra="postgres",
        is_server=True,
    ),
    Adapter(
        ("redis", "rediss"),
        store=Part("redis.store:RedisStore", ("url",)),  # its time is the server's
        bus=Part("redis.bus:RedisBus", ("url",)),
        documents=Part("redis.documents:RedisDocuments", ("url",)),
        mover=Part("redis.mover:RedisMover", ("url",)),
        health=Part("redis.health:findings", ("url",)),
        bus_health=Part("redis.health:bus_findings", ("url", "store_url")),
        repair=Part("redis.health:repair", ("url",)),
        extra="redis",
        is_server=True,
    ),
    Adapter(
        ("pubsub",),
        bus=Part("pubsub.bus:PubSubBus", ("url",)),
        bus_health=Part("pubsub.health:findings", ("url", "topology")),
        setup=Part("pubsub.setup:check", ("url", "topology", "change")),
        extra="pubsub",
        is_server=True,
        server_settings=("timeout",),
    ),
)


def server_settings(url: str) -> tuple[str, ...]:
    """The parameters of a URL that settings for servers fill."""
    scheme = scheme_of(url)
    known = (adapter for adapter in ADAPTERS if scheme in adapter.schemes and adapter.is_server)
    return next((adapter.server_settings for adapter in known), ())


def schemes(port: Port) -> list[str]:
    """Of the adapters that implement a port."""
    return [
        scheme
        for adapter in ADAPTERS
        if getattr(adapter, port) is not None
        for scheme in adapter.schemes
    ]


def adapter_for(url: str, port: Port, setting: str) -> Adapter:
    """The adapter of a URL that implements the port. `setting` is what an error calls it."""
    scheme = scheme_of(url)
    for adapter in ADAPTERS:
        if scheme in adapter.schemes and getattr(adapter, port) is not None:
            if "?" in url and not adapter.is_server:
                raise ConfigurationError(
                    f"{setting} = {redacted(url)!r}: this adapter takes no parameters after '?'"
                )
            return adapter
    known = schemes(port)
    close = get_close_matches(scheme or url, known, n=1)
    hint = f"; did you mean {close[0]}:?" if close else ""
    raise ConfigurationError(
        f"{setting} = {redacted(url)!r} is not understood: known are "
        f"{', '.join(f'{name}:' for name in known)}{hint}"
    )


def has_port(url: str, port: Port) -> bool:
    """Whether the adapter of a URL implements a port."""
    scheme = scheme_of(url)
    return any(getattr(a, port) is not None for a in ADAPTERS if scheme in a.schemes)


def is_server(url: str) -> bool:
    """Whether a URL names something that is reached over the network."""
    scheme = scheme_of(url)
    return any(adapter.is_server for adapter in ADAPTERS if scheme in adapter.schemes)
