"""Comments in which people only describe themselves: a vote on them says who voted, not what they
think."""

from __future__ import annotations

import re

_DESCRIBES = re.compile(
    r"(?:i (?:identify|consider myself|grew up|played|canvass|live (?:in|near)"
    r"|work (?:at|in|for|as)"
    r"|own|used to|drive|rent|voted|studied|am an?|was an?|was (?:born|raised)|have (?:an?|been|had"
    r"|never|\d+|two|three|children|kids)|have (?:already )?(?:used|taken|tried))"
    r"|i'm an?|i've (?:been|had|used|never)"
    r"|ich (?:bin eine?|wohne|arbeite|lebe)|je (?:suis une?|vis|travaille|habite)"
    r"|(?:yo )?(?:soy una?|vivo|trabajo))\b"
    r"|我(?:是|有|曾|住|開過|开过|搭過|搭过|坐過|坐过)",
    re.IGNORECASE,
)
_LONGEST = 120
"""Who goes on after that says more than who they are."""


def describes_author(text: str) -> bool:
    """Whether a comment says what its author is or does, and nothing that others could think."""
    bare = " ".join(text.replace("’", "'").split())
    return len(bare) <= _LONGEST and bool(_DESCRIBES.match(bare)) and "should" not in bare
