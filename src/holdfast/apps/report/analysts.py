"""Who analyses, by name: the local analyst, or one that asks the language model of that address."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.apps.report.analyst import Analyst
from holdfast.errors import ConfigurationError
from holdfast.ports.language_model import LanguageModels

LOCAL = ("", "local", "local:")
ENCODER = "local:minilm"
"""Local, too, with a sentence encoder."""


class ReportAnalysts:
    """`Analysts`, each made when it is first asked for."""

    def __init__(self, models: LanguageModels) -> None:
        self._models = models
        self._analysts: dict[str, Analyst] = {}

    def named(self, name: str) -> Analyst:
        if name not in self._analysts:
            self._analysts[name] = self._make(name)
        return self._analysts[name]

    def check(self, name: str) -> None:
        if name == ENCODER:
            _local_encoder()
        elif name not in LOCAL:
            self._models.named(name).check_configuration()

    def _make(self, name: str) -> Analyst:
        if name in (*LOCAL, ENCODER):
            return _local_analyst(name.partition(":")[2])
        from holdfast.apps.report.llm.analyst import LLMAnalyst

        return LLMAnalyst(self._models.named(name))


def make_analysts(use: Callable[[type[Any]], Any]) -> ReportAnalysts:
    """What `ctx.use(Analysts)` gives."""
    return ReportAnalysts(use(LanguageModels))


def _local_encoder() -> None:
    """That the encoder is there, before anything begins."""
    from holdfast.apps.report.local.sentence_encoder import encoder_folder

    encoder_folder()


def _local_analyst(encoder: str) -> Analyst:
    try:
        from holdfast.apps.report.local.analyst import LocalAnalyst
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"llm = 'local:' needs {error.name}, which is not installed: "
            "pip install 'holdfast[report]'"
        ) from error
    return LocalAnalyst(encoder)
