"""An app: a subject with everything about it, named so that nothing is imported before it is
used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """What an app offers. Each part is a `module:attribute` string that is imported on first use.

    Third parties declare theirs under the entry-point group `holdfast.apps`, by the app's name.
    More kinds of parts become fields with a default when something uses them."""

    name: str
    """Also the name of its command: `holdfast NAME`."""
    help: str = ""
    """One line for `holdfast --help`."""
    extra: str = ""
    """What to `pip install` for it, for example `holdfast[report]`."""
    needs: tuple[str, ...] = ()
    """The modules that come with the extra. Without one of them the command says what to
    install."""
    commands: str = ""
    """A click command or group."""
    pipelines: Mapping[str, str] = field(default_factory=dict)
    """Name → `Pipeline`."""
    providers: Mapping[str, str] = field(default_factory=dict)
    """Port type → function that makes what steps find with `ctx.use(PortType)`. It is called once,
    with a function that gives other ports: `def make(use): return Mine(use(LanguageModels))`."""
    log_formats: Mapping[str, str] = field(default_factory=dict)
    """Value of the setting `log.format` → `logging.Formatter`. Its `debug` names the loggers whose
    DEBUG lines it writes, too."""
    projections: Mapping[str, str] = field(default_factory=dict)
    """Name → `MessageProjection` or `DocumentProjection`, run by processes that name it in their
    settings or in `Holdfast(projections=[…])`."""
    routes: tuple[str, ...] = ()
    """`fastapi.APIRouter`s that `holdfast serve` includes beside `/v1`, with the paths that they
    have: `holdfast.api` gives their functions the caller and what it may do."""
    demo: str = ""
    """What `holdfast serve --demo` shows of it: an asynchronous function from the open `Holdfast`
    and a folder to lines for people, in which `{url}` is where the service answers."""
    checks: Mapping[str, str] = field(default_factory=dict)
    """Area of `holdfast doctor` → function from `Settings` to `Findings`."""
