"""What every command starts from: the global options, the settings, the pipelines, the store."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.errors import ConfigurationError, HoldfastError, NotFound

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.bootstrap import Options
    from holdfast.cli.output import Output
    from holdfast.client import AsyncClient
    from holdfast.model.pipeline import Pipeline
    from holdfast.ports.metrics import Metrics
    from holdfast.ports.store import Store
    from holdfast.services.discovery import Discovered
    from holdfast.services.local.pipelines import LocalPipelines
    from holdfast.services.service import Pipelines, Service
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
        self.local = False

    def remember(self, option: str, value: Any) -> None:
        """Take note of a global option."""
        match option:
            case "store" | "app" | "profile" | "url":
                self.flags[option] = value
            case "local":
                self.local = True
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
    def discovered(self) -> Discovered:
        """The pipelines: those that the settings name or, without any, those of the apps.

        Raises when one of them can't be imported, unless it belongs to another package's app.
        """
        from holdfast.services.discovery import discover

        return discover(self.loaded.settings.app or list(self._app_pipelines()))

    def _app_pipelines(self) -> Iterator[str]:
        from holdfast.bootstrap import apps
        from holdfast.services.discovery import discover

        for app in apps.usable():
            references = list(app.pipelines.values())
            try:
                discover(references)
            except HoldfastError as error:
                if app.name in apps.SHIPPED:
                    raise
                self.out.note(f"warning: the pipelines of app {app.name} are left out: {error}")
            else:
                yield from references

    @cached_property
    def known(self) -> Discovered:
        """The pipelines as far as they can be had: looking at runs works without the code that made
        them."""
        from holdfast.services.discovery import Discovered

        if not self.loaded.settings.app:
            return Discovered()
        try:
            return self.discovered
        except HoldfastError as error:
            self.out.note(f"warning: pipelines could not be loaded: {error}")
            return Discovered()

    def pipeline(self, name: str) -> Pipeline[Any]:
        return self._catalogue.find(name)

    @property
    def _catalogue(self) -> LocalPipelines:
        from holdfast.services.local.pipelines import LocalPipelines

        pipelines, origins = self.discovered.pipelines, self.discovered.origins
        return LocalPipelines(pipelines, origins, self._where_others_are)

    def refuse_nothing_to_do(self) -> None:
        """Raise if a worker would have neither pipelines nor projections."""
        if not self.discovered.pipelines and not self.app_options.projections:
            raise ConfigurationError(
                f"there are no pipelines and no projections to work on{self._where_others_are}"
            )

    @property
    def _where_others_are(self) -> str:
        """What to do about a pipeline that is not there, if no app was named."""
        from holdfast.bootstrap.apps import missing_extras

        if self.loaded.settings.app:
            return ""
        hints = ["--app, HOLDFAST_APP or holdfast.toml say where others are", *missing_extras()]
        return "".join(f"; {hint}" for hint in hints)

    @asynccontextmanager
    async def pipelines(self) -> AsyncIterator[Pipelines]:
        """Those of the service, or those that are found here; no store is opened for that."""
        if self.remote_url is None:
            yield self._catalogue
            return
        async with self.service() as service:
            yield service.pipelines

    # --- the service ------------------------------------------------------------------------------

    @property
    def remote_url(self) -> str | None:
        """The service that is asked; None: the store is opened here. A `--store` on the command
        line is meant, whatever the environment says about services."""
        if self.local or ("store" in self.flags and "url" not in self.flags):
            return None
        return self.loaded.settings.url

    @asynccontextmanager
    async def service(
        self, *, tenant: str | None = None, create: bool = False, all_pipelines: bool = False
    ) -> AsyncIterator[Service]:
        """What a command works with: a service of another process, or the same use cases on the
        store. `tenant` is whose runs are meant; `create` may make the store, `all_pipelines` needs
        the pipelines, also those of apps."""
        if self.remote_url is not None:
            async with self.remote(tenant=tenant) as client:
                yield client
            return
        if all_pipelines:
            self.discovered  # noqa: B018  an import error must not pass as a warning here
        pipelines = self.discovered if all_pipelines else self.known
        async with self.client(create=create, pipelines=pipelines.pipelines.values()) as holdfast:
            yield holdfast.service(tenant=tenant, actor=actor(), origins=pipelines.origins)

    @asynccontextmanager
    async def remote(self, *, tenant: str | None = None) -> AsyncIterator[AsyncClient]:
        """The service of another process, for what only that has."""
        from holdfast.client import AsyncClient

        assert self.remote_url is not None, "there is a service to ask"
        key = self.loaded.settings.api_key
        # "*" is whatever the key may see: an administrator sees here what a store shows.
        async with AsyncClient(self.remote_url, api_key=key, tenant=tenant or "*") as client:
            yield client

    def _refuse_url(self) -> None:
        if self.flags.get("url"):
            raise ConfigurationError("this command works on the store itself: leave out --url")

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
        self._refuse_url()
        self._refuse_missing()
        store = self.app_options.make_store()
        await store.open()
        try:
            yield store
        finally:
            await store.close()

    @asynccontextmanager
    async def client(
        self, *, create: bool = False, pipelines: Iterable[Pipeline[Any]] | None = None
    ) -> AsyncIterator[Holdfast]:
        """An app without a worker, for changing things. Lanes are left as they are: a run can be
        cancelled also while the code at hand declares its lane differently. With `create` it may be
        the first to use its store."""
        if not create:
            self._refuse_missing()
        if pipelines is None:
            pipelines = self.known.pipelines.values()
        app = self._app(pipelines, works=False, define_lanes=False)
        async with app:
            yield app

    def app(
        self,
        pipelines: Iterable[Pipeline[Any]],
        *,
        worker: bool,
        projections: tuple[str, ...] = (),
        metrics: Metrics | None = None,
    ) -> Holdfast:
        """`projections` are added to those of the settings; `metrics` is where counts go."""
        from holdfast.bootstrap.tracing import make_tracer

        options = self.app_options
        return self._app(
            pipelines,
            works=worker,
            projections=(*options.projections, *projections),
            metrics=metrics or options.metrics,
            tracer=options.tracer or make_tracer(self.loaded.settings),
        )

    def _app(self, pipelines: Iterable[Pipeline[Any]], **options: Any) -> Holdfast:
        self._refuse_url()
        from dataclasses import replace

        from holdfast.app import Holdfast

        return Holdfast.from_options(replace(self.app_options, **options), pipelines)

    def options(self) -> str:
        """The global options that the next command needs as well, for messages that name one."""
        from holdfast.settings import redacted

        words = [f"--url {url}"] if (url := self.flags.get("url")) else []
        words += [f"--store {redacted(store)}"] if (store := self.flags.get("store")) else []
        words += [f"--app {reference}" for reference in self.flags.get("app", ())]
        words += [f"--profile {profile}"] if (profile := self.flags.get("profile")) else []
        return "".join(f" {word}" for word in words)


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's coroutine, on uvloop where it is installed: the extras of the servers have
    it, and `fast`."""
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
