"""Secrets are never shown and never stored: not in messages, not in tracebacks, not by
`config show`."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable

MASK = "***"

_remembered: OrderedDict[str, None] = OrderedDict()
MAX_REMEMBERED = 1000
MIN_REMEMBERED = 6
"""Characters: shorter texts stand in too many words."""

# What is masked comes from anywhere and may be long. So that no text takes more time than in
# proportion to its length, a pattern begins where its first fixed word is, and never goes back over
# what it has taken.

_UP_TO_AT = re.compile(r"^.*@", re.MULTILINE)
"""A line up to its last @: behind it there is no login."""
_USER_INFO = re.compile(r"(?<=://)(?:([^:/?#@\s]*):|[^:/?#@\s]+@).*@")
"""Up to the last @ of the line: a password with characters in it that should have been encoded is
hidden, too. Who has an @ in the name is hidden with it: it may be a part of the password."""
_MISSPELT = re.compile(r"(?i)\b((?:postgres(?:ql)?|rediss?|https?):/?)(?!/)[^/?#@\s]*:.*@")
"""The same of an address with a slash too few."""
_PARAMETER = re.compile(r"(?i)([?&][a-z_]*(?:password|passwd|pwd|secret|token|key)=)[^&#\s]*")

_SCHEME = re.compile(r"(?i)\b(bearer|basic)\s+[a-z0-9._~+/=-]{8,}")
_IS = r"""(["']?(?:\s*+:\s*+[\w.|\[\] ]*+)?\s*+=(?!=)\s*+|["']?\s*+:\s*+)"""
"""What stands between a name and its value: in text, in JSON, in Python with or without a type."""
_NAMED = re.compile(
    r"(?i)(password|passwd|passphrase|pwd|secret|api[_-]?key|access[_-]?key"
    rf"|private[_-]?key|authorization|credential){_IS}"
    r"""("[^"]*"|'[^']*'|[^\s,;)}\]]+)"""
)
_TOKEN = re.compile(rf"""(?i)(token){_IS}("[^"]{{12,}}"|'[^']{{12,}}'|[a-z0-9._~+/=-]{{12,}})""")
"""Short ones are left: many an error names an unexpected token."""
_VENDOR_KEY = re.compile(
    r"\b(?:(?:sk|pk|rk)[-_][A-Za-z0-9_-]{8,}|AIza[A-Za-z0-9_-]{10,}|gh[a-z]_[A-Za-z0-9]{16,}"
    r"|hfk_[0-9a-z]{12}_[0-9a-z]{20,}|AKIA[A-Z0-9]{12,}|xox[a-z]-[A-Za-z0-9-]{8,})"
)
"""Keys that are known by how they begin."""
_WEB_TOKEN = re.compile(r"\beyJ[A-Za-z0-9_-]{8,}+(\.[A-Za-z0-9._-]+)?")
"""A JSON Web Token; without its second part it is none."""


def _hidden(login: re.Match[str]) -> str:
    return f"{MASK}@" if login[1] is None else f"{login[1]}:{MASK}@"


def redacted(text: str) -> str:
    """A URL, or text with URLs in it, fit to be shown."""
    return _PARAMETER.sub(rf"\1{MASK}", _UP_TO_AT.sub(_without_logins, text))


def _without_logins(line: re.Match[str]) -> str:
    return _MISSPELT.sub(rf"\1{MASK}@", _USER_INFO.sub(_hidden, line[0]))


def remember(secrets: Iterable[str]) -> None:
    """Mask these texts, too, from now on, in this process: secrets that came with messages."""
    for secret in secrets:
        if len(secret) >= MIN_REMEMBERED:
            _remembered[secret] = None
    while len(_remembered) > MAX_REMEMBERED:
        _remembered.popitem(last=False)


def masked(text: str) -> str:
    """Any text, such as an error's message or a traceback, without what looks like a secret or is
    known to be one."""
    for secret in list(_remembered):
        text = text.replace(secret, MASK)
    text = _VENDOR_KEY.sub(MASK, redacted(text))
    text = _WEB_TOKEN.sub(lambda token: MASK if token[1] else token[0], text)
    text = _SCHEME.sub(rf"\1 {MASK}", text)
    return _TOKEN.sub(rf"\1\2{MASK}", _NAMED.sub(rf"\1\2{MASK}", text))
