"""Settings that are understood and still look wrong: they contradict one another, or others can
read a password."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

from holdfast.model.lease import LeaseTimes
from holdfast.ports.health import Finding, Findings, make_finding
from holdfast.settings.fields import FIELDS
from holdfast.settings.loading import Loaded
from holdfast.settings.secrecy import redacted


async def findings(loaded: Loaded) -> Findings:
    for finding in _looked_at(loaded):
        yield finding


def _looked_at(loaded: Loaded) -> Iterator[Finding]:
    origins = [origin for origin in loaded.origins.values() if origin != "default"]
    yield make_finding(
        "settings", f"{len(origins)} given, {len(loaded.origins) - len(origins)} by default"
    )
    for warning in loaded.warnings:
        yield make_finding(
            "names",
            warning,
            warn=True,
            why="two names of one setting disagree: one of them does not do what it says",
            fix="remove one of them; `holdfast config show --origin` shows which one counts",
        )
    for useless in loaded.useless:
        yield make_finding(
            "names",
            str(useless),
            warn=True,
            why="somebody expects it to do something",
            fix=f"remove {useless.name}",
        )
    yield _lease(loaded.settings.lease)
    yield _servers(loaded)
    yield _secrets(loaded)


def _lease(times: LeaseTimes) -> Finding:
    """What can't work at all is refused when it is read."""
    tries = int((times.ttl - times.margin) / times.renew)
    return make_finding(
        "lease",
        f"lasts {times.ttl:g} s, renewed every {times.renew:g} s: {tries} tries before it is given "
        "up",
        warn=tries < 2,
        why="one renewal that comes late ends the work under way, and another worker begins it "
        "again",
        fix="set lease.renew to about a third of lease.ttl",
    )


def _servers(loaded: Loaded) -> Finding:
    servers = [f"{name} {loaded.shown(name)}" for name in SERVERS if not loaded.is_default(name)]
    if servers and not any(_is_server(url) for url in (loaded.settings.store, loaded.settings.bus)):
        return make_finding(
            "servers",
            f"{', '.join(servers)}, and there is no server",
            warn=True,
            why="they have no effect on a file",
            fix="remove them, or name a server as the store or the bus",
        )
    times = loaded.settings.lease
    spare = times.ttl - times.margin - times.renew
    return make_finding(
        "servers",
        ", ".join(servers) or "pool and timeouts as the adapters find right",
        warn=(loaded.settings.timeout.command or 0) >= spare,
        why="a renewal that waits so long for an answer comes too late: the work under way would "
        "be given up",
        fix=f"keep timeout.command below {spare:g} s, or make lease.ttl longer",
    )


SERVERS = ("pool.size", "timeout.connect", "timeout.command")


def _is_server(url: str) -> bool:
    return "://" in url and not url.startswith("sqlite:")


def _secrets(loaded: Loaded) -> Finding:
    open_files = sorted(
        {str(path) for path in _files_with_secrets(loaded) if path.stat().st_mode & stat.S_IROTH}
    )
    return make_finding(
        "passwords",
        f"everybody on this host can read {', '.join(open_files)}"
        if open_files
        else "none in files that all can read",
        warn=bool(open_files),
        why="whoever reads the store's password can read and change every run",
        fix=f"chmod o-r {' '.join(open_files)}",
    )


def _files_with_secrets(loaded: Loaded) -> Iterator[Path]:
    """The files that settings with a password came from; an origin is a file, or a file and a name
    in it."""
    for field in FIELDS:
        value = getattr(loaded.settings, field.name, None)
        if isinstance(value, str) and redacted(value) != value:
            origin = loaded.origins[field.name]
            words = origin.split(" ")
            ends = (Path(" ".join(words[:end])) for end in range(len(words), 0, -1))
            yield from [path for path in ends if path.is_file()][:1]
