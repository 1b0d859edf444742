"""The words of the page in the reader's language, and how that language writes numbers, dates and
plurals."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

LANGUAGES = ("en", "fr", "de", "es", "ja", "zh", "ar")
NO_BREAK = "\u00a0"


def _arabic(n: float) -> str:
    if n in (0, 1, 2):
        return ("zero", "one", "two")[int(n)]
    rest = n % 100
    return "few" if 3 <= rest <= 10 else "many" if 11 <= rest <= 99 else "other"


_ONE: Callable[[float], str] = lambda n: "one" if n == 1 else "other"  # noqa: E731
_PLURALS: dict[str, Callable[[float], str]] = {
    "fr": lambda n: "one" if n < 2 else "other",
    "ja": lambda n: "other",
    "zh": lambda n: "other",
    "ar": _arabic,
}


class Translations:
    """The dictionary of one language. What it lacks is said in English."""

    def __init__(self, language: str) -> None:
        self.code = next(
            (code for code in LANGUAGES if language.lower().split("-")[0] == code), "en"
        )
        self._own, self._english = _dictionary(self.code), _dictionary("en")
        self.dir: str = self._own["dir"]
        self._formats: dict[str, str] = self._english["formats"] | self._own["formats"]

    def __call__(self, key: str, **values: object) -> str:
        """What to say, with values put in. `n` decides between singular and plural."""
        code, template = self._said(key)
        if isinstance(template, dict):
            count = values["n"]
            assert isinstance(count, int | float)
            template = template.get(_PLURALS.get(code, _ONE)(count), template["other"])
        return template.format(**{name: self._shown(value) for name, value in values.items()})

    def named(self, kind: str, name: str) -> str:
        """Our word for one of a set, such as a reason; the name itself if we have none."""
        key = f"{kind}.{name}"
        return self(key) if key in self._english["words"] else name

    def person(self, name: str) -> str:
        """A name as readers see it: a bare number becomes "Participant 305"."""
        return self("participant", id=name) if name.isdecimal() else name

    def number(self, value: float, digits: int = 0) -> str:
        whole, _, rest = f"{abs(value):.{digits}f}".partition(".")
        if len(whole) >= int(self._formats["group_from"]):
            whole = f"{int(whole):,}".replace(",", self._formats["group"])
        return (
            ("−" if value < 0 else "") + whole + (self._formats["decimal"] + rest if rest else "")
        )

    def percent(self, share: float) -> str:
        """A share in whole percent. Nearly all is not all: only all is 100."""
        return self._formats["percent"].format(
            n=self.number(min(round(share * 100), 99 if share < 1 else 100))
        )

    def money(self, dollars: float | None) -> str:
        """A cost in US dollars. One that nobody knows is unknown, never nothing."""
        if dollars is None:
            return self("unknown")
        return self._formats["money"].format(
            n=self.number(dollars, 2 if dollars >= 1 or not dollars else 4)
        )

    def date(self, iso: str) -> str:
        """A moment as people write it. What is no date is shown as it is."""
        try:
            when = datetime.fromisoformat(iso)
        except ValueError:
            return iso
        when = when.astimezone(UTC) if when.tzinfo else when
        month = (self._own.get("months") or self._english["months"])[when.month - 1]
        return self._formats["date"].format(
            day=when.day, month=month, year=when.year, time=f"{when:%H:%M}"
        )

    def duration(self, seconds: float) -> str:
        if seconds < 60:
            return self("seconds", n=self.number(seconds, 1 if seconds < 10 else 0))
        if seconds < 3600:
            return self("minutes", n=self.number(seconds // 60), s=self.number(seconds % 60))
        return self("hours", n=self.number(seconds // 3600), m=self.number(seconds % 3600 // 60))

    def for_script(self) -> dict[str, Any]:
        """The words that the script says."""
        keys = [key for key in self._english["words"] if key.startswith("js.")]
        return {key.removeprefix("js."): self._said(key)[1] for key in keys}

    def _said(self, key: str) -> tuple[str, Any]:
        translated = self._own["words"].get(key)
        return (self.code, translated) if translated else ("en", self._english["words"][key])

    def _shown(self, value: object) -> object:
        return self.number(value) if isinstance(value, int) else value


@cache
def _dictionary(code: str) -> dict[str, Any]:
    return json.loads(
        (files(__package__ or "") / "translations" / f"{code}.json").read_text("utf-8")
    )
