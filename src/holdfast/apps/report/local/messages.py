"""The few words of its own that the local analyst uses around people's words, in the languages of
the report page: `messages.json`, by language and key."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from importlib.resources import files

from holdfast.apps.report.translations import Translations

ENGLISH = "en"


@cache
def _messages() -> dict[str, dict[str, str]]:
    return json.loads((files(__package__ or "") / "messages.json").read_text("utf-8"))


def base_language(language: str) -> str:
    """A language without its region: `zh-TW` is `zh`."""
    return language.replace("_", "-").split("-")[0].lower()


def message(language: str, key: str, **values: object) -> str:
    """A phrase in a language, English where there is none; counts as that language writes them."""
    english = _messages()[ENGLISH]
    translated = _messages().get(base_language(language), english)
    write = _number_writer(language)
    shown = {
        name: write(value) if isinstance(value, int) else value for name, value in values.items()
    }
    return translated.get(key, english[key]).format(**shown)


@cache
def _number_writer(language: str) -> Callable[[float], str]:
    return Translations(language).number


def listed(language: str, phrases: list[str]) -> str:
    """ "a, b and c"."""
    if len(phrases) < 2:
        return "".join(phrases)
    return message(language, "comma").join(phrases[:-1]) + message(language, "and") + phrases[-1]


def with_people(language: str, people: int) -> str:
    """ " (7 people)", to put behind a claim."""
    return message(language, "one" if people == 1 else "people", count=people)


def people_count(language: str, people: int) -> str:
    """ "7 people"."""
    return message(language, "one plain" if people == 1 else "people plain", count=people)
