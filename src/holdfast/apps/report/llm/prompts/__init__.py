"""The instructions we give to a model, one text file for each, and what may take their place."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

from holdfast.apps.report.model.brief import PROMPTS, Brief
from holdfast.apps.report.model.document import PromptUsed

OURS = ("rules", "merging", "extending", "requote")
REVIEWS = ("review_names", "review_findings")
"""Prompts that nobody replaces: they keep comments data, or hold our own steps together; `REVIEWS`
are those of a second model."""

PLACEHOLDER = re.compile(r"\$\{\s*\w+\s*\}")


@cache
def own_prompt(name: str) -> str:
    """Our own wording."""
    return resources.files(__name__).joinpath(f"{name}.txt").read_text("utf-8").strip()


def prompt(name: str, brief: Brief) -> str:
    """The wording in use. Where a replacement has a `${placeholder}`, it is told that the data
    comes below."""
    replacement = brief.prompts.get(name, "").strip() if name in PROMPTS else ""
    return PLACEHOLDER.sub("(given below)", replacement) if replacement else own_prompt(name)


def prompts_used(brief: Brief) -> list[PromptUsed]:
    """All of them, for the report's appendix."""
    return [
        PromptUsed(name, text := prompt(name, brief), customised=text != own_prompt(name))
        for name in (*PROMPTS, *OURS, *(REVIEWS if brief.reviewer else ()))
    ]
