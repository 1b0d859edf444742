"""What steps find under a type with `ctx.use`: each made on first use, so that a pipeline that
never asks for it imports nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from threading import RLock
from typing import Any

from holdfast.bootstrap import apps
from holdfast.errors import ConfigurationError
from holdfast.model.app import App

Use = Callable[[type[Any]], Any]
Factory = Callable[[Use], Any]


class Providers(Mapping[type[Any], Any]):
    """What the caller gave, else what holdfast itself has, else what an app provides.

    Apps name port types as strings, which are compared with the type that is asked for: none is
    imported for it. Any thread may call."""

    def __init__(
        self, given: Mapping[type[Any], Any], own: Mapping[str, Factory] | None = None
    ) -> None:
        self.given = dict(given)
        self._own = own or {}
        self._made: dict[type[Any], Any] = {}
        self._lock = RLock()

    def __getitem__(self, port: type[Any]) -> Any:
        if port in self.given:
            return self.given[port]
        with self._lock:
            if port not in self._made:
                self._made[port] = self._factory(port)(self.__getitem__)
            return self._made[port]

    def __contains__(self, port: object) -> bool:
        name = _name(port)
        return port in self.given or name in self._own or _provider(name) is not None

    def __iter__(self) -> Iterator[type[Any]]:
        """Those that were given or made so far."""
        return iter({**self.given, **self._made})

    def __len__(self) -> int:
        return len({**self.given, **self._made})

    def _factory(self, port: type[Any]) -> Factory:
        name = _name(port)
        if name in self._own:
            return self._own[name]
        provider = _provider(name)
        if provider is None:
            raise ConfigurationError(
                f"this app provides no {port.__name__}: Holdfast(…, provide={{{port.__name__}: …}})"
            )
        app, factory = provider
        return apps.load_part(app, factory)

    async def aclose(self) -> None:
        """Close what can be closed. What was made here is made anew when it is used again."""
        made, self._made = self._made, {}
        async with AsyncExitStack() as closing:  # one that raises leaves no other open
            for provided in [*self.given.values(), *made.values()]:
                if (close := getattr(provided, "aclose", None)) is not None:
                    closing.push_async_callback(close)


def _name(port: object) -> str:
    return f"{getattr(port, '__module__', '')}:{getattr(port, '__qualname__', '')}"


def _provider(name: str) -> tuple[App, str] | None:
    """The app that provides a port, and the name of its factory."""
    for app in apps.installed():
        if name in app.providers:
            return app, app.providers[name]
    return None
