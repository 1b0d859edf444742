"""Statements that deny each other are told apart; other wordings of the same are not."""

import pytest

from holdfast.apps.report.model.contradiction import contradict

OPPOSITES = [
    ("Parking should be free", "Parking should not be free"),
    ("We need more buses", "We need fewer buses"),
    ("I support the new flats", "I oppose the new flats"),
    ("Taxes should be increased", "Taxes shouldn't be increased"),
    ("The bridge is safe", "The bridge is dangerous"),
    ("Allow dogs in the park", "Ban dogs from the park"),
    ("Never trust the council", "Trust the council"),
    ("Wir brauchen mehr Bäume", "Wir brauchen keine Bäume"),
    ("Die Straße soll gesperrt werden", "Die Straße soll nicht gesperrt werden"),
    ("Il faut fermer la rue", "Il ne faut pas fermer la rue"),
    ("Hay que cerrar la calle", "No hay que cerrar la calle"),
    ("應該開放", "不應該開放"),
]
SAME = [
    ("Parking should be free", "Make parking free"),
    ("We need more buses", "More buses are needed"),
    ("Don't close the street", "Never close the street"),
    ("Keep the street open", "Don't close the street"),
    ("不應該開放", "我反對開放"),
    ("Il ne faut pas fermer la rue", "On ne doit jamais fermer la rue"),
]


@pytest.mark.parametrize(("first", "second"), OPPOSITES)
def test_opposites_contradict_both_ways(first, second):
    assert contradict(first, second)
    assert contradict(second, first)


@pytest.mark.parametrize(("first", "second"), SAME)
def test_other_words_for_the_same_do_not(first, second):
    assert not contradict(first, second)
    assert not contradict(second, first)
