"""Our style and script, and the policy that lets in these and nothing else."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files

from markupsafe import Markup


@dataclass(frozen=True, slots=True)
class Assets:
    style: Markup
    running: Markup
    """The style of the printed page's running header, which holds the title."""
    early: Markup
    """What must happen before the page is drawn: the theme, and that scripts run at all."""
    script: Markup

    @classmethod
    def of(cls, title: str) -> Assets:
        running = f"@page{{@top-left{{content:{css_string(title)}}}}}"
        return cls(
            *(
                Markup(text)  # noqa: S704 - our own files, nothing of a user's
                for text in (_file("page.css"), running, _file("early.js"), _file("page.js"))
            )
        )

    @property
    def policy(self) -> str:
        """For the Content-Security-Policy: nothing from anywhere, but these four."""
        styles, scripts = _sources(self.style, self.running), _sources(self.early, self.script)
        return (
            f"default-src 'none'; style-src {styles}; script-src {scripts}; img-src data:; "
            "base-uri 'none'; form-action 'none'"
        )


def css_string(text: str) -> str:
    """Any text as a string of CSS, in which only letters and digits of ASCII stand for
    themselves."""
    return '"' + "".join(c if c.isascii() and c.isalnum() else f"\\{ord(c):x} " for c in text) + '"'


def _sources(*texts: str) -> str:
    return " ".join(
        f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in texts
    )


@cache
def _file(name: str) -> str:
    return (files(__package__ or "") / name).read_text("utf-8")
