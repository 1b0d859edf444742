"""The analysts that come with holdfast, by the name in `llm`."""

from __future__ import annotations

import os

from holdfast.bootstrap.urls import missing_extra
from holdfast.errors import ConfigurationError
from holdfast.ports.analyst import Analyst
from holdfast.ports.blobs import BlobStore
from holdfast.settings.secrecy import redacted

LOCAL = ("", "local", "local:")


class ShippedAnalysts:
    """The analysts that come with holdfast, each made when it is first asked for."""

    def __init__(self, blobs: BlobStore | None) -> None:
        self._blobs = blobs
        self._made: dict[str, Analyst] = {}

    def named(self, name: str) -> Analyst:
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name: str) -> Analyst:
        if name in LOCAL:
            return _local_analyst()
        return _llm_analyst(name, self._blobs)

    async def aclose(self) -> None:
        for analyst in self._made.values():
            if (close := getattr(analyst, "aclose", None)) is not None:
                await close()
        self._made.clear()


def check_analyst(name: str) -> None:
    """Raise what is wrong with the name of an analyst, or with its key, before any work is
    accepted."""
    if name not in LOCAL:
        from holdfast.adapters.llm.address import parse
        from holdfast.adapters.llm.secret import read_key

        read_key(parse(name), os.environ)


def _local_analyst() -> Analyst:
    try:
        from holdfast.adapters.local.analyst import LocalAnalyst
    except ModuleNotFoundError as error:
        raise missing_extra(error, "report", "llm = 'local:'") from error
    return LocalAnalyst()


def _llm_analyst(name: str, blobs: BlobStore | None) -> Analyst:
    if blobs is None:
        raise ConfigurationError(
            "asking a model needs a blob store for its answers: set HOLDFAST_BLOBS=file:./folder"
        )
    try:
        from holdfast.adapters.llm.address import parse
        from holdfast.adapters.llm.analysis.analyst import LLMAnalyst
        from holdfast.adapters.llm.answers import Answers
        from holdfast.adapters.llm.model import Model
    except ModuleNotFoundError as error:
        raise missing_extra(error, "llm", f"llm = {redacted(name)!r}") from error
    return LLMAnalyst(Model(parse(name)), Answers(blobs))
