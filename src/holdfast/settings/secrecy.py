"""Passwords in URLs are never shown: not in messages, not by `config show`."""

from __future__ import annotations

import re

_USER_INFO = re.compile(r"(?<=://)([^:/?#@\s]*):.*@")
"""Up to the last @ of the line: a password with characters in it that should have been encoded is
hidden, too."""
_PARAMETER = re.compile(r"(?i)([?&][a-z_]*(?:password|passwd|pwd|secret|token|key)=)[^&#\s]*")


def redacted(text: str) -> str:
    """A URL, or text with URLs in it, fit to be shown."""
    return _PARAMETER.sub(r"\1***", _USER_INFO.sub(r"\1:***@", text))
