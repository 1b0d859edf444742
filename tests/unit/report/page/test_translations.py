"""Words, numbers, dates and plurals, in every language of the page."""

import json
import re
from importlib.resources import files
from pathlib import Path

import pytest

from holdfast.apps import report
from holdfast.apps.report import local
from holdfast.apps.report.translations import LANGUAGES, Translations

HOME = Path(str(files(report)))
PAGE = HOME / "page"
MESSAGES = Path(str(files(local))) / "messages.json"
every_language = pytest.mark.parametrize("code", LANGUAGES)
NARROW, WIDE = "\u202f", "\u00a0"


def words_of(code: str) -> dict:
    return json.loads((HOME / "translations" / f"{code}.json").read_text("utf-8"))["words"]


def forms(text: str | dict[str, str]) -> list[str]:
    return list(text.values()) if isinstance(text, dict) else [text]


@every_language
def test_every_dictionary_says_everything(code: str) -> None:
    assert words_of(code).keys() == words_of("en").keys()


@every_language
def test_translations_put_in_the_same_values(code: str) -> None:
    for key, text in words_of(code).items():
        names = {
            name for form in forms(words_of("en")[key]) for name in re.findall(r"{(\w+)}", form)
        }
        placeholders = {name for form in forms(text) for name in re.findall(r"{(\w+)}", form)}
        assert placeholders <= names, key
        assert names - placeholders <= {"n"}, key  # some languages have a word for one and two
        assert isinstance(text, str) or "other" in text, key


def test_every_word_that_the_templates_and_the_script_ask_for_is_there() -> None:
    words = words_of("en")
    templates = "".join(path.read_text("utf-8") for path in (PAGE / "templates").glob("*.html"))
    assert set(re.findall(r'\bt\("([^"]+)"[,)]', templates)) <= words.keys()
    names = set(re.findall(r'say\("(\w+)"', (PAGE / "page.js").read_text("utf-8")))
    assert {f"js.{key}" for key in names} <= words.keys()


def test_no_word_is_left_unused() -> None:
    texts = "".join(
        path.read_text("utf-8")
        for path in HOME.rglob("*")
        if path.suffix in (".html", ".js", ".py")
    )
    families = (
        "basis coverage dots.each figure funnel.of glossary groups groups.all js.theme key "
        "loss order print sort stage unit view"
    )
    for key in words_of("en"):
        grouped = any(key.startswith((family + ".", family + "_")) for family in families.split())
        assert grouped or f'"{key.removeprefix("js.")}"' in texts, key


@pytest.mark.parametrize(
    ("code", "thousand", "million", "share"),
    [
        ("en", "1,234", "1,234,567", "12%"),
        ("fr", f"1{NARROW}234", f"1{NARROW}234{NARROW}567", f"12{NARROW}%"),
        ("de", "1.234", "1.234.567", f"12{WIDE}%"),
        ("es", "1234", "1.234.567", f"12{WIDE}%"),
        ("ja", "1,234", "1,234,567", "12%"),
        ("zh", "1,234", "1,234,567", "12%"),
        ("ar", "1,234", "1,234,567", "12%"),
    ],
)
def test_numbers_are_written_as_people_write_them(
    code: str, thousand: str, million: str, share: str
) -> None:
    say = Translations(code)
    assert (say.number(1234), say.number(1_234_567), say.percent(0.1234)) == (
        thousand,
        million,
        share,
    )


@pytest.mark.parametrize(
    ("code", "date"),
    [
        ("en", "3 May 2026, 14:05 UTC"),
        ("fr", "3 mai 2026 à 14:05 UTC"),
        ("de", "3. Mai 2026, 14:05 UTC"),
        ("es", "3 de mayo de 2026, 14:05 UTC"),
        ("ja", "2026年5月3日 14:05 UTC"),
        ("zh", "2026年5月3日 14:05 UTC"),
        ("ar", "3 مايو 2026، 14:05 UTC"),
    ],
)
def test_dates_are_written_as_people_write_them(code: str, date: str) -> None:
    assert Translations(code).date("2026-05-03T16:05:31+02:00") == date


def test_what_is_no_date_is_shown_as_it_is() -> None:
    assert Translations("en").date("last spring") == "last spring"


@pytest.mark.parametrize(
    ("code", "counted"),
    [
        ("en", {0: "0 people", 1: "1 person", 2: "2 people"}),
        ("fr", {0: "0 personne", 1: "1 personne", 2: "2 personnes"}),
        ("ja", {1: "1人", 2: "2人"}),
        ("zh", {1: "1人", 2: "2人"}),
        (
            "ar",
            {
                0: "لا أحد",
                1: "شخص واحد",
                2: "شخصان",
                3: "3 أشخاص",
                11: "11 شخصًا",
                100: "100 شخص",
                103: "103 أشخاص",
            },
        ),
    ],
)
def test_plurals_follow_the_language(code: str, counted: dict[int, str]) -> None:
    assert {n: Translations(code)("n.people", n=n) for n in counted} == counted


def test_an_unknown_language_is_served_in_english() -> None:
    assert Translations("ko-KR").code == "en"
    assert Translations("").code == "en"


def test_a_language_is_served_whatever_its_region() -> None:
    assert Translations("zh-TW").code == Translations("zh").code == "zh"


def test_page_and_findings_know_the_same_languages() -> None:
    assert json.loads(MESSAGES.read_text("utf-8")).keys() == set(LANGUAGES)


def test_what_a_dictionary_lacks_is_said_in_english_with_english_plurals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    say = Translations("ja")
    monkeypatch.setattr(say, "_own", say._own | {"words": {}})
    assert (say("findings"), say("n.people", n=1)) == ("Key findings", "1 person")


def test_names_that_we_have_no_word_for_stay_as_they_are() -> None:
    assert Translations("de").named("loss", "empty") == "leer"
    assert Translations("de").named("loss", "struck by lightning") == "struck by lightning"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.42, "0.4 s"), (12.3, "12 s"), (103.4, "1 min 43 s"), (7384, "2 h 3 min")],
)
def test_durations_are_as_exact_as_people_need(seconds: float, text: str) -> None:
    assert Translations("en").duration(seconds) == text


def test_values_are_never_taken_for_placeholders() -> None:
    assert Translations("en")("method.generated", analyst="{0.__class__} {n}").startswith(
        "{0.__class__} {n} read"
    )
