"""A claim is what a sentence says, without what leads up to it."""

import pytest

from holdfast.apps.report.local.statements import as_statement, shortened


@pytest.mark.parametrize(
    ("sentence", "claim"),
    [
        ("I think that the bus is too expensive.", "The bus is too expensive."),
        ("I believe we need more trees", "We need more trees"),
        ("I believe in peace and justice", "I believe in peace and justice"),
        ("Well, honestly, the park is dirty.", "The park is dirty."),
        ("Yes, because it leverages the work of many.", "It leverages the work of many."),
        ("Because it rains, we stay at home today.", "Because it rains, we stay at home today."),
        ("  - but there must be accountability  for all", "There must be accountability for all"),
        (
            "And I, I try to get the, get the message out there",
            "I try to get the message out there",
        ),
        (
            "marginalised women, women in poverty and girls",
            "Marginalised women, women in poverty and girls",
        ),
        ("Combine tags with AND and OR", "Combine tags with AND and OR"),
        ("It is very, very important", "It is very, very important"),
        ("“Compromise is not weakness.”", "Compromise is not weakness."),
        ('"Girls suffer more than boys.', "Girls suffer more than boys."),
        ('"Liberal" is no insult', '"Liberal" is no insult'),
        (
            "Boxing (e.g., kickboxing) should be banned",
            "Boxing (e.g., kickboxing) should be banned",
        ),
        (
            "we make room for the next person, , who can benefit",
            "We make room for the next person, who can benefit",
        ),
        ("我覺得UberX管理制度不夠透明。", "UberX管理制度不夠透明。"),
        ("Je pense que le bus est trop cher.", "Le bus est trop cher."),
        ("Creo que faltan árboles en la plaza.", "Faltan árboles en la plaza."),
        ("Ich denke, dass wir mehr Bäume brauchen.", "Ich denke, dass wir mehr Bäume brauchen."),
        ("I think so", "I think so"),
    ],
)
def test_introductions_stutter_and_stray_marks_go(sentence, claim):
    assert as_statement(sentence) == claim


def test_what_is_too_long_ends_with_a_clause_or_a_word():
    assert shortened("Short enough.", 20) == "Short enough."
    assert (
        shortened("We should plant trees, repair the roads and build schools", 30)
        == "We should plant trees …"
    )
    assert shortened("a" * 50, 20) == "a" * 20 + "…"


def test_a_minus_before_a_figure_belongs_to_it():
    assert as_statement("-2 degrees is too cold") == "-2 degrees is too cold"
    assert as_statement("- the pool is too cold") == "The pool is too cold"
