"""What a call costs, and when nobody knows."""

import pytest

from holdfast.adapters.llm.address import parse
from holdfast.adapters.llm.prices import Prices
from holdfast.adapters.llm.protocol import Reply


@pytest.mark.parametrize(
    ("address", "dollars"),
    [
        ("openai:gpt-4o-mini", 0.15 + 0.60),
        ("anthropic:claude-haiku-4-5", 1 + 5),
        ("openai:gpt-4o-mini?input_price=2&output_price=3", 5),
        ("openai:nobody-knows?input_price=0&output_price=0", 0),
        ("openai:nobody-knows", None),
        ("http://localhost:11434/v1?model=llama3", None),
        ("http://localhost:11434/v1?model=gpt-4o-mini", None),
        ("https://api.groq.com/openai/v1?model=llama-3.3-70b-versatile", 0.59 + 0.79),
    ],
)
def test_the_users_own_figures_win_then_the_table_and_else_it_is_unknown(address, dollars):
    prices = Prices(parse(address))
    assert prices.of(1_000_000, 1_000_000) == (None if dollars is None else pytest.approx(dollars))
    assert prices.known is (dollars is not None)


def test_half_a_price_is_none():
    assert Prices(parse("openai:nobody-knows?input_price=1")).of(1, 1) is None


def test_cached_tokens_are_cheaper_and_writing_the_cache_is_dearer():
    openai = Prices(parse("openai:gpt-4o-mini"))
    full = openai.of(1_000_000, 0)
    cached = openai.of_reply(Reply("", 1_000_000, 0, cached_tokens=500_000), 1_000_000, 0)
    assert full == pytest.approx(0.15)
    assert cached == pytest.approx(0.1125)
    anthropic = Prices(parse("anthropic:claude-haiku-4-5"))
    assert anthropic.of_reply(
        Reply("", 1_000_000, 0, written_tokens=1_000_000), 1_000_000, 0
    ) == pytest.approx(1.25)


def test_a_vendor_that_counts_nonsense_does_not_make_a_call_free():
    prices = Prices(parse("openai:gpt-4o-mini"))
    odd = prices.of_reply(Reply("", 100, 1, cached_tokens=10_000, written_tokens=10_000), 100, 1)
    assert odd is not None
    assert odd > 0
