"""What `holdfast doctor` says about reports."""

from __future__ import annotations

from importlib.util import find_spec

from holdfast.apps.report.analysts import LOCAL
from holdfast.ports.health import Findings, make_finding
from holdfast.settings.values import Settings

NEEDS = ("numpy", "scipy", "safetensors", "tokenizers", "wordllama")


async def local_analyst(settings: Settings) -> Findings:
    """Whether reports can be made offline, where that is what the settings say."""
    if settings.llm not in LOCAL:
        return
    missing = [name for name in NEEDS if find_spec(name) is None]
    yield make_finding(
        "analyst",
        f"local:, which lacks {', '.join(missing)}"
        if missing
        else "local: works offline, without a key",
        warn=bool(missing),
        why="reports can't be made; other pipelines do not need it",
        fix="pip install 'holdfast[report]'",
    )
