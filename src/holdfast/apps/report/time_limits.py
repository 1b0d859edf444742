"""How long a report may take, and how long a model's limits make it take at least."""

from __future__ import annotations

import re

MINUTE = 60.0
USUAL = 30 * MINUTE
SECONDS_PER_COMMENT = 0.1
"""About as long as a comment takes when nothing has to wait, with much to spare."""
TOKENS_PER_COMMENT = 700
"""About as many as a short comment costs in all steps together."""
SPARE = 2


def time_limit_for(comments: int, model: str) -> float:
    """Seconds: half an hour, and more for large files and where the model's own limits of calls and
    tokens a minute make it necessary."""
    by_limits = least_time(model, comments, TOKENS_PER_COMMENT * comments)
    return max(USUAL, SECONDS_PER_COMMENT * comments, SPARE * by_limits)


def least_time(model: str, calls: int, tokens: int) -> float:
    """Seconds that so many calls and tokens take under the limits in a model's address; 0 if it has
    none."""
    return MINUTE * max(_per(calls, model, "rpm"), _per(tokens, model, "tpm"))


def _per(amount: int, model: str, limit: str) -> float:
    match = re.search(rf"[?&]{limit}=(\d+)", model)
    return amount / int(match[1]) if match and int(match[1]) else 0.0
