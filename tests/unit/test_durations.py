"""Durations as people write them."""

from datetime import timedelta

import pytest

from holdfast.errors import ConfigurationError
from holdfast.model.duration import humanise, seconds


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("90s", 90),
        ("30m", 1800),
        ("1h30m", 5400),
        ("250ms", 0.25),
        ("1.5h", 5400),
        ("2d", 172_800),
        (" 10S ", 10),
        ("15", 15),
        (7, 7),
        (0.5, 0.5),
        (timedelta(minutes=2), 120),
    ],
)
def test_a_duration_is_read_as_people_write_it(written, expected):
    assert seconds(written) == expected


@pytest.mark.parametrize(
    "nonsense", ["", "soon", "10 parsecs", "1h30", "m30", "-5s", True, None, [1]]
)
def test_what_is_no_duration_is_refused_with_examples(nonsense):
    with pytest.raises(ConfigurationError, match="write '90s', '30m', '1h30m'"):
        seconds(nonsense)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0123, "12 ms"),
        (1.25, "1.2 s"),
        (60, "1 min"),
        (200, "3 min 20 s"),
        (3600, "1 h"),
        (5400, "1 h 30 min"),
    ],
)
def test_a_duration_is_shown_as_people_say_it(value, text):
    assert humanise(value) == text
