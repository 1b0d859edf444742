"""What `holdfast doctor` says about transcription."""

from __future__ import annotations

from holdfast.apps.transcription.transcribers import AppTranscribers
from holdfast.errors import HoldfastError
from holdfast.ports.health import Findings, make_finding
from holdfast.settings.values import Settings


async def transcriber(settings: Settings) -> Findings:
    """Whether the transcriber that the settings name can work here."""
    name = settings.transcription.transcriber
    try:
        AppTranscribers().named(name).check("en")
    except HoldfastError as error:
        yield make_finding(
            "transcriber",
            f"{name} can't work here",
            warn=True,
            why="recordings can't be transcribed; other pipelines do not need it",
            fix=str(error),
        )
        return
    offline = " works offline, without a key; English only" if name == "moonshine" else " has a key"
    yield make_finding("transcriber", name + offline)
