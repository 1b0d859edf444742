"""The language models that holdfast can ask, by address, and how long their answers are kept."""

from __future__ import annotations

import asyncio
import logging
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from holdfast.bootstrap.providers import Factory, Use
from holdfast.engine.metering import Meter
from holdfast.engine.shared_rates import SharedRate
from holdfast.errors import ConfigurationError, StoreUnavailable
from holdfast.model.clock import Clock
from holdfast.ports.blobs import BlobStore
from holdfast.ports.records import Records
from holdfast.settings.secrecy import redacted

if TYPE_CHECKING:
    from holdfast.adapters.llm.address import ModelAddress
    from holdfast.adapters.llm.language_model import HttpLanguageModel
    from holdfast.bootstrap.options import Options

log = logging.getLogger("holdfast.llm")

NONE = ("", "local", "local:")
"""Values of the setting `llm` that name no language model: what is made offline needs none."""
NEEDS = ("httpx2", "genai_prices")
PORT = "holdfast.ports.language_model"


def language_model_providers(
    options: Options, blobs: BlobStore | None, records: Records, meter: Meter | None
) -> dict[str, Factory]:
    """How the ports are made. Answers are cached in the blobs, for as long as finished runs are
    kept; in records processes share the rate limits of vendors."""
    return {
        f"{PORT}:LanguageModels": lambda use: HttpLanguageModels(options, blobs, records, meter),
        f"{PORT}:LanguageModel": lambda use: _configured(options.llm, use),
    }


def _configured(llm: str | None, use: Use) -> Any:
    from holdfast.ports.language_model import LanguageModels
    from holdfast.settings import load

    address = load().settings.llm if llm is None else llm
    if address in NONE:
        raise ConfigurationError(
            "a step asks a language model, and none is configured: set HOLDFAST_LLM, for example "
            "to openai:gpt-4o-mini"
        )
    return use(LanguageModels).named(address)


class HttpLanguageModels:
    """`LanguageModels` over HTTP, each made when it is first asked for."""

    def __init__(
        self, options: Options, blobs: BlobStore | None, records: Records, meter: Meter | None
    ) -> None:
        self._options = options
        self._blobs = blobs
        self._records = records
        self._meter = meter
        self._models: dict[str, HttpLanguageModel] = {}

    def named(self, address: str) -> HttpLanguageModel:
        if address not in self._models:
            self._models[address] = self._make(address)
        return self._models[address]

    def _make(self, address: str) -> HttpLanguageModel:
        from holdfast.adapters.llm.address import parse
        from holdfast.adapters.llm.answer_cache import AnswerCache
        from holdfast.adapters.llm.client import ModelClient
        from holdfast.adapters.llm.language_model import HttpLanguageModel

        parsed = parse(address)
        counted = self._meter.model_asked if self._meter else None
        options, allowance = self._options, self._allowance(parsed)
        client = ModelClient(parsed, shared=allowance, counted=counted, tracer=options.tracer)
        check_extra(address)
        cache = AnswerCache(self._blobs, options.clock, options.retention.finished)
        return HttpLanguageModel(client, cache)

    def _allowance(self, address: ModelAddress) -> SharedRate | None:
        """What all processes of the store may send together, if the address names a limit."""
        limits = address.requests_per_minute, address.tokens_per_minute
        if limits == (None, None):
            return None
        return SharedRate(self._records, f"{address.name} {address.base_url}", *limits)

    async def aclose(self) -> None:
        for model in self._models.values():
            await model.aclose()
        self._models.clear()


def check_extra(address: str) -> None:
    """Raise ConfigurationError with what to install, if a package that models need is missing."""
    if missing := [name for name in NEEDS if find_spec(name) is None]:
        raise ConfigurationError(
            f"llm = {redacted(address)!r} needs {' and '.join(missing)}, not installed yet: "
            "pip install 'holdfast[llm]'"
        )


async def prune_answers(blobs: BlobStore, clock: Clock, retention: float, every: float) -> None:
    """Delete cached answers that are older than `retention`, every so many seconds, until this is
    cancelled. Two processes that do it at once do no harm."""
    while True:
        await asyncio.sleep(every)
        from holdfast.adapters.llm.answer_cache import AnswerCache

        try:
            await AnswerCache(blobs, clock, retention).prune()
        except StoreUnavailable as error:
            log.warning("can't delete old answers: %s", error)
