"""What a live check found: the words in which adapters tell `holdfast doctor` how they are.

An adapter has a module `health` whose functions are asynchronous generators of findings. They look
and leave nothing behind, answer within the adapter's timeouts, and raise the adapter's own errors
when they can't go on."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Literal

from msgspec import Struct

Status = Literal["ok", "warn", "fail"]

SCHEMA = "schema"
"""The check that is ok when a store can be opened as it is: nothing refuses it, nothing has to be
created."""


class Finding(Struct, frozen=True, kw_only=True):
    """One check: what was seen, why it matters, and how to fix it. `why` and `fix` may be empty
    when all is well."""

    area: str = ""
    check: str
    status: Status = "ok"
    seen: str
    why: str = ""
    fix: str = ""


Findings = AsyncGenerator[Finding, None]


def make_finding(
    check: str, seen: str, *, fail: bool = False, warn: bool = False, why: str = "", fix: str = ""
) -> Finding:
    """A finding whose status follows from two questions: does it break something, might it?"""
    status: Status = "fail" if fail else "warn" if warn else "ok"
    return Finding(check=check, status=status, seen=seen, why=why, fix=fix)


# --- checks that several adapters make ------------------------------------------------------------

SLOW = 0.05
SKEW = 2.0


def round_trip(times: list[float], connected: float) -> Finding:
    """From the seconds of a few small questions, and of connecting."""
    usual = sorted(times)[len(times) // 2]
    return make_finding(
        "reachable",
        f"answers in {milliseconds(usual)} (connected in {milliseconds(connected)})",
        warn=usual > SLOW,
        why="every batch of claims, checkpoints and results is one round trip, and a run waits "
        "for several",
        fix="run the workers nearer to the server, in the same zone or network",
    )


def clock_difference(ahead: float) -> Finding:
    """From how many seconds the server's clock is ahead of ours."""
    where = "ahead of" if ahead > 0 else "behind"
    return make_finding(
        "clock",
        f"{milliseconds(abs(ahead))} {where} this host's",
        warn=abs(ahead) > SKEW,
        why="leases are safe, since each side measures on its own; the times that people see "
        "would not fit together",
        fix="let both hosts keep time by NTP (chrony, systemd-timesyncd)",
    )


def open_air(is_remote: bool, is_encrypted: bool) -> Finding:
    return make_finding(
        "encryption",
        "TLS" if is_encrypted else "none, to another host" if is_remote else "none, on this host",
        warn=is_remote and not is_encrypted,
        why="the password and all inputs and results can be read by anybody between here and there",
        fix="use TLS: sslmode=verify-full in a postgresql:// URL, rediss:// instead of redis://",
    )


def abandoned(runs: int) -> Finding:
    """From how many running runs nobody renews the lease of."""
    return make_finding(
        "leases",
        f"{runs} running runs whose lease ended more than a minute ago"
        if runs
        else "no run was left behind",
        warn=runs > 0,
        why="their workers are gone and no other worker sweeps: they go on as soon as one is "
        "started",
        fix="start a worker: `holdfast worker`",
    )


def is_remote(host: str) -> bool:
    return not (host in ("", "localhost", "::1") or host.startswith(("/", "127.")))


def milliseconds(seconds: float) -> str:
    value = seconds * 1000
    return (
        f"{value:.2f} ms"
        if value < 10
        else f"{value:.0f} ms"
        if value < 10_000
        else f"{seconds:.0f} s"
    )


def bytes_of(size: float) -> str:
    """A size as people read it."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit in ("B", "KiB") else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
