"""Arranging a batch: few statements, and each run's commands in their order."""

import random

import pytest

from holdfast.adapters.sqlite.batch import ALONE, TOGETHER, arrange
from holdfast.model import commands as c


def progress(run):
    return c.SaveProgress(run, 1, "{}")


def log(run):
    return c.LogLine(run, 1, "info", "s", "m")


def checkpoint(run):
    return c.SaveCheckpoint(run, 1, "s", "", "1", "x", "y", "z", "{}")


def settle(run):
    return c.Settle(run, 1, "succeeded")


def submit(run):
    return c.Submit(run, "t", "p", "l", "1", "f")


MAKERS = (progress, log, checkpoint, settle, submit)


def shape(commands):
    return [(group.kind.__name__, group.places) for group in arrange(commands)]


def test_every_command_has_its_place():
    known = set(TOGETHER) | set(ALONE)
    assert known == set(c.Command.__args__)
    assert not set(TOGETHER) & set(ALONE)


def test_nothing_is_arranged_into_nothing():
    assert shape([]) == []


def test_commands_of_a_type_about_different_runs_become_one_group():
    assert shape([settle("a"), log("b"), settle("c"), log("d")]) == [
        ("Settle", [0, 2]),
        ("LogLine", [1, 3]),
    ]


def test_a_command_never_overtakes_an_earlier_one_of_its_run():
    assert shape([log("a"), settle("b"), settle("a"), log("a")]) == [
        ("LogLine", [0]),
        ("Settle", [1, 2]),
        ("LogLine", [3]),
    ]


def test_nothing_moves_across_a_command_that_stands_alone():
    assert shape([log("a"), c.Sweep(), log("b")]) == [
        ("LogLine", [0]),
        ("Sweep", [1]),
        ("LogLine", [2]),
    ]


def test_commands_that_stand_alone_keep_their_order():
    assert shape([c.Sweep(), c.Sweep()]) == [("Sweep", [0]), ("Sweep", [1])]


@pytest.mark.parametrize("seed", range(20))
def test_in_any_batch_each_runs_commands_take_effect_in_their_order(seed):
    chance = random.Random(seed)
    commands = [
        c.Sweep() if chance.random() < 0.05 else chance.choice(MAKERS)(chance.choice("abcd"))
        for _ in range(200)
    ]
    order = [place for group in arrange(commands) for place in group.places]
    assert sorted(order) == list(range(200))
    position = {place: index for index, place in enumerate(order)}
    for run in "abcd":
        places = [n for n, command in enumerate(commands) if _concerns(command, run)]
        assert [position[place] for place in places] == sorted(position[place] for place in places)


def _concerns(command, run):
    return isinstance(command, c.Sweep) or run == (
        getattr(command, "run", None) or getattr(command, "id", None)
    )
