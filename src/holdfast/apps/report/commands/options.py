"""The options that the commands of `holdfast report` have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

READING = [
    click.option(
        "--column",
        multiple=True,
        metavar="ROLE=NAME",
        help="For example comment=Antwort. Repeatable.",
    ),
    click.option(
        "--question-column",
        "questions",
        multiple=True,
        metavar="NAME",
        help="A column with the answers to one question. Repeatable: a section for each.",
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
        help="Leave out longer comments, and count them.",
    ),
    click.option(
        "--max-comments",
        type=click.IntRange(1),
        default=50_000,
        show_default=True,
        help="Analyse a fair sample if there are more comments; the report says so.",
    ),
    click.option("--keep-moderated", is_flag=True, help="Keep comments that moderators rejected."),
]
ANALYSIS = [
    click.option("--title", default="", help="Title of the report. Default: the file's name."),
    click.option("--question", default="", help="What people were asked."),
    click.option("--description", default="", help="A sentence or two for readers."),
    click.option(
        "--language",
        default="",
        metavar="CODE",
        help="Language of the report, such as fr. Default: that of the comments.",
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
        "--topics",
        type=click.IntRange(0, 50),
        default=0,
        help="Number of topics. Default: as many as fit.",
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
    """What the analyst is to do."""
    return _decorated(function, ANALYSIS)


def _decorated(function: Any, options: list[Callable[[Any], Any]]) -> Any:
    for option in reversed(options):
        function = option(function)
    return function
