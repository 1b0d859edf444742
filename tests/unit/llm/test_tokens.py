"""Guessing tokens: close, and rather too many."""

import pytest

from holdfast.model.tokens import estimate_call, estimate_tokens


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("", 0, 0),
        ("The quick brown fox jumps over the lazy dog. " * 20, 200, 280),
        ("Die Straßenbahn fährt nachts nicht mehr, und das ärgert uns. " * 20, 290, 400),
        ("我们需要更多的公园和自行车道。", 12, 20),
        ("もっと公園が必要です。", 8, 14),
        ("Нам нужно больше парков и велодорожек.", 12, 24),
        ("😀" * 10, 10, 20),
    ],
)
def test_a_guess_is_close(text, least, most):
    assert least <= estimate_tokens(text) <= most


def test_a_call_is_a_little_more_than_its_texts():
    assert estimate_call("a" * 360, "b" * 360) == 200 + 12
