"""From the options of a command to the request of a run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.apps.report.analysts import ENCODER, LOCAL
from holdfast.cli.session import Session
from holdfast.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.apps.report.request import ReportRequest

SAME_NAMES = (
    "title",
    "question",
    "description",
    "language",
    "topics",
    "max_characters",
    "max_comments",
    "keep_moderated",
    "budget",
    "sort",
    "report_id",
    "review",
    "reviewer",
    "fresh",
)
"""Options that are called the same in the request."""
LARGEST_JOB = 100_000_000
"""Bytes of a job message."""


async def request_for(
    session: Session,
    app: Holdfast,
    file: str,
    tenant: str,
    options: dict[str, Any],
    reviewed: list[Any] | None = None,
) -> ReportRequest:
    """The request, with its files in the blob store, and the topics that people reviewed, if they
    did."""
    from holdfast.apps.report.request import ReportRequest
    from holdfast.apps.report.service import check_readable
    from holdfast.apps.report.uploads import upload
    from holdfast.model.codec import codec_for

    payloads = app.runtime.payloads
    fields = job_message(file)
    if fields is None:
        fields = request_fields(session, options)
        check_readable(file, fields)
        with open_file(file) as source:
            fields["file"] = await upload(
                payloads, tenant, "comments" if file == "-" else file, source
            )
        if options["votes"]:
            with open_file(options["votes"]) as source:
                fields["votes"] = await upload(payloads, tenant, options["votes"], source)
        if reviewed:
            fields["reviewed"] = reviewed
    return codec_for(ReportRequest).validate(fields)


def request_fields(session: Session, options: dict[str, Any]) -> dict[str, Any]:
    """The options as fields of the request."""
    model = options["model"] or session.loaded.settings.llm
    is_free = model in (*LOCAL, ENCODER)
    cruxes = options["cruxes"]
    return {
        **{name: options[name] for name in SAME_NAMES if name in options},
        "model": "local:" if model in LOCAL else model,
        "cruxes": cruxes if cruxes is not None else is_free or bool(options["votes"]),
        "given_topics": [_given_topic(text) for text in options["topic"]],
        "prompts": dict(_prompt(text) for text in options["prompt"]),
        "questions": list(options["questions"]),
        "columns": dict(_pair(text, "--column", "ROLE=NAME") for text in options["column"]),
        "mask": options["mask_pii"],
    }


def job_message(file: str) -> dict[str, Any] | None:
    """The job message of the earlier report worker, if that is what the file holds."""
    import msgspec

    if not file.endswith(".json"):
        return None
    with open_file(file) as source:
        text = source.read(LARGEST_JOB)
    try:
        message = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None  # reading it as comments says what is wrong
    is_job = isinstance(message, dict) and "config" in message and "data" in message
    return message if is_job else None


def open_file(file: str) -> Any:
    """A file for reading bytes; `-` is standard input."""
    if file == "-":
        return sys.stdin.buffer
    path = Path(file)
    if not path.is_file():
        raise NotFound(f"there is no file {file}" + (": it is a folder" if path.is_dir() else ""))
    return path.open("rb")


def _given_topic(text: str) -> dict[str, Any]:
    name, _, description = text.partition(":")
    return {"name": name.strip(), "description": description.strip()}


def _prompt(text: str) -> tuple[str, str]:
    name, file = _pair(text, "--prompt", "NAME=FILE")
    with open_file(file) as source:
        return name, source.read().decode()


def _pair(text: str, option: str, form: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name.strip() or not value.strip():
        raise InvalidInput(f"{option} {text}: write {form}")
    return name.strip(), value.strip()
