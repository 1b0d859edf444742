"""What `holdfast report` is asked for: its options, and the request they make."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.session import Session
from holdfast.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.pipelines.report.request import ReportRequest

READING = [
    click.option(
        "--column",
        multiple=True,
        metavar="ROLE=NAME",
        help="For example comment=Antwort. Repeatable.",
    ),
    click.option(
        "--votes",
        metavar="FILE",
        help="Who voted how: a matrix participant × comment (Polis export).",
    ),
    click.option(
        "--mask-pii",
        is_flag=True,
        help="Mask e-mail addresses, phone numbers and the like in texts.",
    ),
    click.option(
        "--max-characters",
        type=click.IntRange(1),
        default=10_000,
        show_default=True,
        help="Longer comments are kept out, and counted.",
    ),
    click.option(
        "--max-comments",
        type=click.IntRange(1),
        default=50_000,
        show_default=True,
        help="Of more comments a fair sample is analysed, and that is said.",
    ),
    click.option("--keep-moderated", is_flag=True, help="Also comments that moderators rejected."),
]
ANALYSIS = [
    click.option("--title", default="", help="Of the report. Default: the file's name."),
    click.option("--question", default="", help="What people were asked."),
    click.option("--description", default="", help="A sentence or two for readers."),
    click.option(
        "--language",
        default="",
        metavar="CODE",
        help="Of the report, such as fr. Default: the comments'.",
    ),
    click.option(
        "--model",
        metavar="MODEL",
        help="local:, openai:MODEL, anthropic:MODEL … Default: setting llm.",
    ),
    click.option(
        "--cruxes/--no-cruxes",
        default=None,
        help="Find what divides people. Default: if that is free.",
    ),
    click.option(
        "--topics", type=click.IntRange(0, 50), default=0, help="How many. Default: as many as fit."
    ),
    click.option(
        "--topic",
        multiple=True,
        metavar="NAME[: TEXT]",
        help="A topic that must be there. Repeatable.",
    ),
    click.option(
        "--prompt",
        multiple=True,
        metavar="NAME=FILE",
        help="Replace a prompt by a text. Repeatable.",
    ),
]


def reading_options(function: Any) -> Any:
    """How a file is read."""
    return _decorated(function, READING)


def analysis_options(function: Any) -> Any:
    """What is asked of the analyst."""
    return _decorated(function, ANALYSIS)


def _decorated(function: Any, options: list[Callable[[Any], Any]]) -> Any:
    for option in reversed(options):
        function = option(function)
    return function


async def request_for(
    session: Session, holdfast: Holdfast, file: str, tenant: str, wish: dict[str, Any]
) -> ReportRequest:
    """The request, with its files in the blob store."""
    from holdfast.model.codec import codec_for
    from holdfast.pipelines.report.request import ReportRequest
    from holdfast.services.reports import check_readable
    from holdfast.services.uploads import upload

    payloads = holdfast.runtime.payloads
    asked = seed_job(file)
    if asked is None:
        asked = asked_for(session, wish)
        check_readable(file, asked)
        with opened(file) as source:
            asked["file"] = await upload(
                payloads, tenant, "comments" if file == "-" else file, source
            )
        if wish["votes"]:
            with opened(wish["votes"]) as source:
                asked["votes"] = await upload(payloads, tenant, wish["votes"], source)
    return codec_for(ReportRequest).validate(asked)


def asked_for(session: Session, wish: dict[str, Any]) -> dict[str, Any]:
    """The options, in the request's words."""
    model = wish["model"] or session.loaded.settings.llm
    free = model in ("local", "local:")
    same = {name: wish[name] for name in SAME if name in wish}
    return {
        **same,
        "model": "local:" if free else model,
        "cruxes": wish["cruxes"] if wish["cruxes"] is not None else free or bool(wish["votes"]),
        "given_topics": [_given(text) for text in wish["topic"]],
        "prompts": dict(_prompt(text) for text in wish["prompt"]),
        "columns": dict(_pair(text, "--column", "ROLE=NAME") for text in wish["column"]),
        "mask": wish["mask_pii"],
    }


SAME = (
    "title", "question", "description", "language", "topics", "max_characters", "max_comments", "keep_moderated",
    "budget", "sort", "report_id", "fresh",
)  # fmt: skip
"""Options that are called the same in the request."""


def seed_job(file: str) -> dict[str, Any] | None:
    """The job message of seed 000, if that is what the file holds."""
    import msgspec

    if not file.endswith(".json"):
        return None
    with opened(file) as source:
        text = source.read(LARGEST_JOB)
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None  # reading it as comments says what is wrong
    return found if isinstance(found, dict) and "config" in found and "data" in found else None


LARGEST_JOB = 100_000_000


def opened(file: str) -> Any:
    if file == "-":
        return sys.stdin.buffer
    path = Path(file)
    if not path.is_file():
        raise NotFound(f"there is no file {file}" + (": it is a folder" if path.is_dir() else ""))
    return path.open("rb")


def _given(text: str) -> dict[str, Any]:
    name, _, description = text.partition(":")
    return {"name": name.strip(), "description": description.strip()}


def _prompt(text: str) -> tuple[str, str]:
    name, file = _pair(text, "--prompt", "NAME=FILE")
    with opened(file) as source:
        return name, source.read().decode()


def _pair(text: str, option: str, shape: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name.strip() or not value.strip():
        raise InvalidInput(f"{option} {text}: write {shape}")
    return name.strip(), value.strip()
