"""The analysts that come with holdfast, by the name in `llm`."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from holdfast.bootstrap.urls import missing_extra
from holdfast.ports.analyst import Analyst
from holdfast.ports.health import Findings, found
from holdfast.ports.language_model import LanguageModels
from holdfast.settings.values import Settings

LOCAL = ("", "local", "local:")
LOCAL_NEEDS = ("numpy", "scipy", "safetensors", "tokenizers", "wordllama")


class ShippedAnalysts:
    """The analysts that come with holdfast, each made when it is first asked for."""

    def __init__(self, models: LanguageModels) -> None:
        self._models = models
        self._made: dict[str, Analyst] = {}

    def named(self, name: str) -> Analyst:
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def check(self, name: str) -> None:
        if name not in LOCAL:
            self._models.named(name).check_configuration()

    def _make(self, name: str) -> Analyst:
        if name in LOCAL:
            return _local_analyst()
        from holdfast.adapters.llm.analysis.analyst import LLMAnalyst

        return LLMAnalyst(self._models.named(name))


def analysts(use: Callable[[type[Any]], Any]) -> ShippedAnalysts:
    return ShippedAnalysts(use(LanguageModels))


def _local_analyst() -> Analyst:
    try:
        from holdfast.adapters.local.analyst import LocalAnalyst
    except ModuleNotFoundError as error:
        raise missing_extra(error, "report", "llm = 'local:'") from error
    return LocalAnalyst()


async def local_findings(settings: Settings) -> Findings:
    if settings.llm not in LOCAL:
        return
    missing = [name for name in LOCAL_NEEDS if find_spec(name) is None]
    yield found(
        "analyst",
        f"local:, which lacks {', '.join(missing)}"
        if missing
        else "local: works offline, without a key",
        warn=bool(missing),
        why="reports can't be made; other pipelines do not need it",
        fix="pip install 'holdfast[report]'",
    )
