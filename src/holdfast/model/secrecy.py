"""Secrets are never shown and never stored: not in messages, not in tracebacks, not by
`config show`."""

from __future__ import annotations

import re

MASK = "***"

_USER_INFO = re.compile(r"(?<=://)([^:/?#@\s]*):.*@")
"""Up to the last @ of the line: a password with characters in it that should have been encoded is
hidden, too."""
_PARAMETER = re.compile(r"(?i)([?&][a-z_]*(?:password|passwd|pwd|secret|token|key)=)[^&#\s]*")

_SCHEME = re.compile(r"(?i)\b(bearer|basic)\s+[a-z0-9._~+/=-]{8,}")
_IS = r"""(["']?(?:\s*:\s*[\w.|\[\] ]+?)?\s*=(?!=)\s*|["']?\s*:\s*)"""
"""What stands between a name and its value: in text, in JSON, in Python with or without a type."""
_NAMED = re.compile(
    r"(?i)\b([\w.-]*(?:password|passwd|passphrase|pwd|secret|api[_-]?key|access[_-]?key"
    rf"|private[_-]?key|authorization|credential)){_IS}"
    r"""("[^"]*"|'[^']*'|[^\s,;)}\]]+)"""
)
_TOKEN = re.compile(
    rf"""(?i)\b([\w.-]*token){_IS}("[^"]{{12,}}"|'[^']{{12,}}'|[a-z0-9._~+/=-]{{12,}})"""
)
"""Short ones are left: many an error names an unexpected token."""
_VENDOR_KEY = re.compile(
    r"\b(?:(?:sk|pk|rk)[-_][A-Za-z0-9_-]{8,}|AIza[A-Za-z0-9_-]{10,}|gh[a-z]_[A-Za-z0-9]{16,}"
    r"|AKIA[A-Z0-9]{12,}|xox[a-z]-[A-Za-z0-9-]{8,}|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9._-]+)"
)
"""Keys and tokens that are known by how they begin."""


def redacted(text: str) -> str:
    """A URL, or text with URLs in it, fit to be shown."""
    return _PARAMETER.sub(rf"\1{MASK}", _USER_INFO.sub(rf"\1:{MASK}@", text))


def masked(text: str) -> str:
    """Any text, such as an error's message or a traceback, without what looks like a secret."""
    text = _VENDOR_KEY.sub(MASK, redacted(text))
    text = _SCHEME.sub(rf"\1 {MASK}", text)
    return _TOKEN.sub(rf"\1\2{MASK}", _NAMED.sub(rf"\1\2{MASK}", text))
