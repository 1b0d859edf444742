"""The scripts: static texts, put together once from the files in `lua/`, and known to the server by
their hash.

A file is a module: it names what it needs with `require` and returns what it offers. All modules of
a script are functions in its text, and only those that a call requires are executed."""

from __future__ import annotations

from functools import cache
from hashlib import sha1
from importlib import resources

from msgspec import Struct

MODULES = (
    "keys", "meta", "writes", "run", "indexes", "submit", "claim", "attempts", "settle", "locks",
    "decisions",
)  # fmt: skip

_LOADER = """
local loaded, modules = {}, {}
local function require(name)
  if loaded[name] == nil then
    loaded[name] = modules[name]()
  end
  return loaded[name]
end
"""


class Script(Struct, frozen=True):
    text: str
    sha: str


class Scripts(Struct, frozen=True):
    """All scripts of a store."""

    batch: Script
    """Applies commands."""
    now: Script
    """Tells the time."""
    greet: Script
    """Lets the store know which server it is on."""


@cache
def scripts(clock: str = "clock") -> Scripts:
    """`clock` is the file that tells the time: the server's clock, or that of a test."""
    return Scripts(
        _with_modules("batch", clock, MODULES),
        _with_modules("now", clock, ("keys", "meta")),
        _script(_text("greet")),
    )


def _with_modules(main: str, clock: str, names: tuple[str, ...]) -> Script:
    files = {"clock": clock, **{name: name for name in names}}
    modules = [
        f"modules['{name}'] = function()\n{_text(file)}\nend\n" for name, file in files.items()
    ]
    return _script(_LOADER + "".join(modules) + _text(main))


def _text(name: str) -> str:
    folder = resources.files("holdfast.adapters.redis").joinpath("lua")
    return folder.joinpath(*f"{name}.lua".split("/")).read_text()


def _script(text: str) -> Script:
    return Script(text, sha1(text.encode(), usedforsecurity=False).hexdigest())


class BusScripts(Struct, frozen=True):
    """All scripts of a bus."""

    begin: Script
    take: Script
    finish: Script
    tidy: Script


@cache
def bus_scripts() -> BusScripts:
    return BusScripts(*[_script(_text(f"bus/{name}")) for name in BusScripts.__struct_fields__])


@cache
def document_script() -> Script:
    """Writes a document over a lower version of itself."""
    return _script(_text("documents/write"))
