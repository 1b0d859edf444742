"""The scripts: static texts, put together once from the files in `lua/`, and known to the server by
their hash."""

from __future__ import annotations

from functools import cache
from hashlib import sha1
from importlib import resources

from msgspec import Struct

LOCKS = ("base", "locks")
SAVES = ("base", "changes", "document", "execution")
CLAIMS = ("base", "changes", "document", "intake", "inbox", "claiming")
WORK = (*CLAIMS, "execution")
ALL = (*WORK, "locks", "letters", "failing", "outbox", "retention", "operations")


class Script(Struct, frozen=True):
    text: str
    sha: str


class Scripts(Struct, frozen=True):
    """All scripts of a store."""

    saves: Script
    """Applies batches of what attempts write, up to their success."""
    claims: Script
    """Applies batches of submits and claims."""
    work: Script
    """Applies batches of both."""
    locks: Script
    """Applies batches of what holders of locks do all the time."""
    all: Script
    """Applies batches of any commands."""
    reads: Script
    adopt: Script


@cache
def scripts(clock: str = "clock") -> Scripts:
    """`clock` is the file that tells the time: the server's clock, or that of a test."""
    return Scripts(
        _script("prelude", clock, *SAVES, "batch"),
        _script("prelude", clock, *CLAIMS, "batch"),
        _script("prelude", clock, *WORK, "batch"),
        _script("prelude", clock, *LOCKS, "batch"),
        _script("prelude", clock, *ALL, "batch"),
        _script("prelude", clock, "reads"),
        _script("adopt"),
    )


@cache
def mover_scripts(clock: str = "clock") -> dict[str, Script]:
    """What only a mover calls: how to hold a store, and how to fill one."""
    filling = ("base", "changes", "document", "locks")
    return {
        "holding": _script("prelude", clock, *ALL, "holding"),
        "filling": _script("prelude", clock, *filling, "filling"),
    }


def _script(*names: str) -> Script:
    """Each file is a function inside the one before. What it takes from outside is then at hand for
    its functions, which are made anew at every call, instead of being looked for among all locals
    of the script for each of them."""
    folder = resources.files("holdfast.adapters.redis").joinpath("lua")
    files = [folder.joinpath(*f"{name}.lua".split("/")).read_text() for name in names]
    text = "\nreturn (function()\n".join(files) + "\nend)()" * (len(files) - 1)
    return Script(text, sha1(text.encode(), usedforsecurity=False).hexdigest())


class BusScripts(Struct, frozen=True):
    """All scripts of a bus."""

    begin: Script
    publish: Script
    take: Script
    finish: Script
    tidy: Script


@cache
def bus_scripts() -> BusScripts:
    return BusScripts(*[_script(f"bus/{name}") for name in BusScripts.__struct_fields__])
