"""What every command starts from: the global options, the settings, the pipelines, the store."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.errors import HoldfastError, NotFound, Permanent, UnknownPipeline

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.bootstrap import Options
    from holdfast.cli.output import Output
    from holdfast.model.pipeline import Pipeline
    from holdfast.model.run import Run
    from holdfast.ports.store import Store
    from holdfast.services.discovery import Found
    from holdfast.settings import Loaded

T = TypeVar("T")


class Session:
    """One call of the command. Everything is made when it is first asked for: `--help` needs
    nothing."""

    def __init__(self) -> None:
        self.flags: dict[str, Any] = {}
        """Settings given on the command line, by their names."""
        self.format = "table"
        self.color = "auto"
        self.no_input = False

    def remember(self, option: str, value: Any) -> None:
        """Take note of a global option."""
        match option:
            case "store" | "app" | "profile":
                self.flags[option] = value
            case "json":
                self.format = "json"
            case "output":
                self.format = value
            case "color" | "no_input":
                setattr(self, option, value)

    @cached_property
    def loaded(self) -> Loaded:
        """The settings. What looked odd is said once, on stderr."""
        from holdfast.settings import load

        loaded = load(self.flags)
        for warning in loaded.warnings:
            self.out.note(f"warning: {warning}")
        return loaded

    @cached_property
    def out(self) -> Output:
        from holdfast.cli.output import Output

        return Output(self.format, self.color)

    # --- pipelines --------------------------------------------------------------------------------

    @cached_property
    def found(self) -> Found:
        """The pipelines: those that the settings name or, without any, those of the apps.

        Raises when one of them can't be imported, unless it belongs to another package's app.
        """
        from holdfast.services.discovery import discover

        return discover(self.loaded.settings.app or list(self._app_pipelines()))

    def _app_pipelines(self) -> Iterator[str]:
        from holdfast.bootstrap import apps
        from holdfast.services.discovery import discover

        for app in apps.installed():
            references = list(app.pipelines.values())
            try:
                discover(references)
            except HoldfastError as error:
                if app.name in apps.SHIPPED:
                    raise
                self.out.note(f"warning: the pipelines of app {app.name} are left out: {error}")
            else:
                yield from references

    def declared_steps(self, run: Run) -> list[str]:
        """The step names of a run's pipeline in order, if it is known here."""
        from holdfast.bootstrap import apps

        pipeline = self.known.pipelines.get(run.pipeline) or apps.find_pipeline(run.pipeline)
        return list(pipeline.steps) if pipeline is not None else []

    @cached_property
    def known(self) -> Found:
        """The pipelines as far as they can be had: looking at runs works without the code that made
        them."""
        from holdfast.services.discovery import Found

        if not self.loaded.settings.app:
            return Found()
        try:
            return self.found
        except HoldfastError as error:
            self.out.note(f"warning: pipelines could not be loaded: {error}")
            return Found()

    def pipeline(self, name: str) -> Pipeline[Any]:
        from difflib import get_close_matches

        pipelines = self.found.pipelines
        if name in pipelines:
            return pipelines[name]
        close = get_close_matches(name, pipelines, n=1)
        hint = (
            f"did you mean {close[0]!r}?" if close else f"known: {', '.join(pipelines) or 'none'}"
        )
        where = (
            ""
            if self.loaded.settings.app
            else "; --app, HOLDFAST_APP or holdfast.toml say where others are"
        )
        raise UnknownPipeline(f"there is no pipeline {name!r}; {hint}{where}")

    # --- the store --------------------------------------------------------------------------------

    @cached_property
    def app_options(self) -> Options:
        """What the app is made of: as the code declares it, with the settings laid over it."""
        from holdfast.bootstrap import Options

        declared = self.known.app.options if self.known.app else Options()
        return declared.with_settings(self.loaded)

    def _refuse_missing(self) -> None:
        """Looking must not create an empty store: it would hide a mistyped name."""
        from holdfast.bootstrap import missing_file

        url = self.app_options.store_url
        if url is not None and (path := missing_file(url)) is not None:
            raise NotFound(
                f"there is no store at {path} yet: `holdfast run` or `holdfast worker` creates it; "
                "pass --store if it is elsewhere"
            )

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Store]:
        """The store, for looking at it. Quicker to start than an app."""
        self._refuse_missing()
        store = self.app_options.make_store()
        await store.open()
        try:
            yield store
        finally:
            await store.close()

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Holdfast]:
        """An app without a worker, for changing things. Lanes are left as they are: a run can be
        cancelled also while the code at hand declares its lane differently."""
        self._refuse_missing()
        app = self._app(self.known.pipelines.values(), works=False, define_lanes=False)
        async with app:
            yield app

    def app(self, pipelines: Iterable[Pipeline[Any]], *, worker: bool) -> Holdfast:
        return self._app(pipelines, works=worker)

    def _app(self, pipelines: Iterable[Pipeline[Any]], **options: bool) -> Holdfast:
        from dataclasses import replace

        from holdfast.app import Holdfast

        return Holdfast.from_options(replace(self.app_options, **options), pipelines)

    def options(self) -> str:
        """The global options that the next command needs as well, for messages that name one."""
        from holdfast.settings import redacted

        words = [f"--store {redacted(store)}"] if (store := self.flags.get("store")) else []
        words += [f"--app {reference}" for reference in self.flags.get("app", ())]
        words += [f"--profile {profile}"] if (profile := self.flags.get("profile")) else []
        return "".join(f" {word}" for word in words)


async def stored_text(holdfast: Holdfast, stored: str | None, what: str) -> str:
    """The JSON behind a stored value, which may live in the blob store."""
    text = await holdfast.runtime.payloads.fetch(stored or "null")
    if text is None:
        raise Permanent(f"{what} is missing from the blob store")
    return text


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's coroutine, on uvloop where it is installed (`pip install holdfast[fast]`)."""
    import asyncio

    try:
        from uvloop import new_event_loop
    except ImportError:
        new_event_loop = asyncio.new_event_loop
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(work)


def actor() -> str:
    """Who is doing this: kept with every change."""
    import getpass
    import socket

    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # no such user in this container
        user = "unknown"
    return f"{user}@{socket.gethostname()}"


def is_interactive() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()
