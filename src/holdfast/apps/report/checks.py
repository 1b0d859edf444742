"""What `holdfast doctor` says about reports."""

from __future__ import annotations

from holdfast.apps.report.analysts import LOCAL
from holdfast.ports.health import Findings, make_finding
from holdfast.settings.values import Settings


async def local_analyst(settings: Settings) -> Findings:
    """That reports are made offline, where the settings name no model."""
    if settings.llm in LOCAL:
        yield make_finding("analyst", "local: works offline, without a key")
