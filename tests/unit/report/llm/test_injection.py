"""Texts that look as if they wanted to steer a model."""

import csv
from pathlib import Path

import pytest

from holdfast.apps.report.llm.injection import looks_like_injection
from holdfast.apps.report.testing.hostile_brain import is_command
from holdfast.apps.report.testing.injections import injections

ROOT = Path(__file__).parents[4]
SHARED = ROOT.parent / "shared" / "data"
HARMLESS = (
    "The AI Act goes too far, and the model of care we have is broken.",
    "Please ignore the noise from the motorway and build the playground.",
    "System change, not climate change.",
    "I forgot to mention the previous owner; the rules about parking are unclear.",
    "Act now, before the river floods again!",
    "We should all act as one town.",
    "It costs 5 € (see page 3) - that is too much.",
    "計程車司機應該要有更好的保障，政府不要只顧財團。",
    "Ich denke Football wird noch lange ein wichtiges Spiel sein.",
    "E-mail me: jo@example.org, or call +44 20 7946 0000.",
)


def test_there_are_more_than_two_hundred_injections_and_all_are_noticed():
    corpus = injections()
    assert len(corpus) == len(set(corpus)) >= 200
    assert [text for text in corpus if not looks_like_injection(text)] == []


def test_all_of_them_are_commands_to_a_brain_that_obeys():
    assert [text for text in injections() if not is_command(text)] == []


@pytest.mark.parametrize("text", HARMLESS)
def test_people_may_speak_of_models_rules_and_systems(text: str):
    assert not looks_like_injection(text)


def test_only_what_is_meant_to_is_noticed_in_the_sample():
    with open(ROOT / "examples" / "data" / "riverside.csv", encoding="utf-8") as file:
        texts = [row["comment-body"] for row in csv.DictReader(file)]
    noticed = [text for text in texts if looks_like_injection(text)]
    assert len(noticed) <= 4
    assert any("instructions" in text.lower() for text in noticed)


@pytest.mark.parametrize(
    "name", ["polis_marchon_2162.csv", "polis_vtaiwan_uberx_zh_197.csv", "polis_seattle15_54.csv"]
)
def test_real_comments_are_hardly_ever_noticed(name: str):
    if not (SHARED / name).exists():
        pytest.skip(f"{name} is not here: real comment files are not part of the project")
    with open(SHARED / name, encoding="utf-8-sig") as file:
        texts = [row["comment-body"] for row in csv.DictReader(file)]
    assert sum(map(looks_like_injection, texts)) <= len(texts) / 100


def test_the_longest_hostile_text_is_judged_in_no_time():
    for text in ("ignore " * 1500, "<" * 10_000, "a." * 5_000, "{" * 10_000, "all other " * 1000):
        looks_like_injection(text)
