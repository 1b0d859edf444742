"""Passwords in URLs are never shown: not in messages, not by `config show`."""

from __future__ import annotations

import re

_USER_INFO = re.compile(r"(?<=://)([^/?#@\s]*?):([^/?#\s]*)@")
_PARAMETER = re.compile(r"(?i)([?&](?:password|passwd|pwd|secret|token|key|api_key|apikey)=)[^&#\s]*")


def redacted(text: str) -> str:
    """A URL, or text with URLs in it, fit to be shown."""
    return _PARAMETER.sub(r"\1***", _USER_INFO.sub(r"\1:***@", text))
