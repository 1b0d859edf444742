"""Finding pipelines by reference: `module:attribute`, `file.py:attribute`, or a whole module or
file."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from os import sep
from pathlib import Path
from sysconfig import get_paths
from traceback import extract_tb
from types import ModuleType
from typing import Any

from msgspec import Struct, field

from holdfast.errors import ConfigurationError, DefinitionError, HoldfastError
from holdfast.model.pipeline import Pipeline


class Discovered(Struct):
    """The pipelines by name, the reference that gave each, and the app that was found among them,
    if any."""

    pipelines: dict[str, Pipeline[Any]] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    app: Any = None


def discover(references: Sequence[str]) -> Discovered:
    """Import what the references name. Raises ConfigurationError or DefinitionError, with the
    place."""
    discovered = Discovered()
    for reference in references:
        value = _resolve(reference)
        if _is_app(value):
            discovered.app = value
        for pipeline in _pipelines(value, reference):
            _add(discovered, pipeline, reference)
    return discovered


def _add(discovered: Discovered, pipeline: Pipeline[Any], reference: str) -> None:
    before = discovered.pipelines.setdefault(pipeline.name, pipeline)
    if before is not pipeline:
        first = discovered.origins[pipeline.name]
        raise ConfigurationError(
            f"{first} and {reference} both define {pipeline.name!r}: rename one of them"
        )
    discovered.origins.setdefault(pipeline.name, reference)


def _is_app(value: Any) -> bool:
    """Whether it is a `Holdfast`; that class lives above this layer, so it is known by what it can
    do."""
    return not isinstance(value, type) and hasattr(value, "submit") and hasattr(value, "pipelines")


def _pipelines(value: Any, reference: str) -> Iterator[Pipeline[Any]]:
    if isinstance(value, Pipeline):
        yield value
    elif isinstance(value, ModuleType):
        yield from _all_in(value, reference)
    elif _is_app(value):
        yield from value.pipelines.values()
    elif isinstance(value, Mapping):
        yield from _checked(value.values(), reference)
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
        yield from _checked(value, reference)
    else:
        raise ConfigurationError(
            f"{reference} is a {type(value).__name__}: it must be a Pipeline, a list or dict of "
            "them, or a Holdfast"
        )


def _checked(values: Iterable[Any], reference: str) -> Iterator[Pipeline[Any]]:
    for value in values:
        if not isinstance(value, Pipeline):
            raise ConfigurationError(
                f"{reference} holds {type(value).__name__}, which is not a Pipeline"
            )
        yield value


def _all_in(module: ModuleType, reference: str) -> Iterator[Pipeline[Any]]:
    pipelines = {id(value): value for value in vars(module).values() if isinstance(value, Pipeline)}
    if not pipelines:
        raise ConfigurationError(f"{reference} defines no pipeline at its top level")
    yield from pipelines.values()


# --- importing ------------------------------------------------------------------------------------


def _resolve(reference: str) -> Any:
    module_or_file, _, attribute = reference.partition(":")
    module = (
        _from_file(Path(module_or_file), reference)
        if module_or_file.endswith(".py")
        else _from_module(module_or_file, reference)
    )
    value: Any = module
    for part in attribute.split(".") if attribute else ():
        if not hasattr(value, part):
            raise ConfigurationError(_missing(reference, module, part))
        value = getattr(value, part)
    return value


def _missing(reference: str, module: ModuleType, attribute: str) -> str:
    names = [name for name in vars(module) if not name.startswith("_")]
    close = get_close_matches(attribute, names, n=1)
    pipelines = [name for name in names if isinstance(getattr(module, name), Pipeline)]
    hint = (
        f"; did you mean {close[0]!r}?"
        if close
        else f" (pipelines in it: {', '.join(pipelines) or 'none'})"
    )
    return f"{reference}: there is no {attribute!r} in {module.__file__ or module.__name__}{hint}"


def _from_module(name: str, reference: str) -> ModuleType:
    _put_first(Path.cwd())
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise ConfigurationError(
                f"{reference}: there is no module {error.name!r}; is it installed, or in the "
                "current folder? "
                f"For a file write {name.replace('.', '/')}.py:attribute"
            ) from error
        raise _explained(error, reference) from error
    except Exception as error:
        raise _explained(error, reference) from error


def _from_file(path: Path, reference: str) -> ModuleType:
    if not path.is_file():
        raise ConfigurationError(f"{reference}: there is no file {path.absolute()}")
    path = path.resolve()
    loaded = sys.modules.get(path.stem)
    if loaded is not None and getattr(loaded, "__file__", None) == str(path):
        return loaded
    _put_first(path.parent)
    # A file named like a module that is loaded already (types.py) gets a name of its own.
    name = path.stem if loaded is None else f"holdfast_app_{path.stem}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigurationError(f"{reference}: {path} can't be imported")
    module = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise _explained(error, reference) from error
    return module


def _put_first(folder: Path) -> None:
    """Let the file's neighbours be imported, as `python file.py` would."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _explained(error: Exception, reference: str) -> HoldfastError:
    """The error with the line of the user's code that caused it."""
    if isinstance(error, SyntaxError) and error.filename:
        return ConfigurationError(f"{error.filename}:{error.lineno}: {error.msg}")
    location = _location(error) or reference
    if isinstance(error, DefinitionError):
        return DefinitionError(f"{location}: {error}")
    return ConfigurationError(f"{location}: {type(error).__name__}: {error}")


def _location(error: Exception) -> str | None:
    """The last line of the user's own code or, if there is none, of a package that is installed."""
    holdfast, paths = str(Path(__file__).resolve().parents[1]), get_paths()
    python = (holdfast, "<frozen", *(f"{paths[name]}{sep}" for name in ("stdlib", "platstdlib")))
    packages = (f"{paths['purelib']}{sep}", f"{paths['platlib']}{sep}")
    frames = list(reversed(extract_tb(error.__traceback__)))
    for others in ((*python, *packages), python):
        for frame in frames:
            if not frame.filename.startswith(others):
                return f"{frame.filename}:{frame.lineno}"
    return None
