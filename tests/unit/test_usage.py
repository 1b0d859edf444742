"""What work consumed."""

from holdfast.model.usage import Usage


def test_nothing_is_falsy_and_one_free_call_is_not():
    free = Usage()
    assert not free
    free.count(0, 0, 0.0)
    assert free


def test_calls_add_up():
    usage = Usage()
    usage.count(10, 2, 0.5)
    usage.count(5, 1, 0.25)
    assert usage == Usage(15, 3, 0.75, 2)
    assert usage.total_tokens == 18


def test_a_call_of_unknown_price_is_counted_apart_from_a_free_one():
    usage = Usage()
    usage.count(10, 2, None)
    usage.count(10, 2, 0.0)
    assert (usage.calls, usage.unpriced, usage.cost) == (2, 1, 0.0)


def test_two_usages_are_summed_without_changing_either():
    first, second = Usage(1, 2, 0.5, 1, 0), Usage(10, 20, 1.0, 2, 1)
    assert first + second == Usage(11, 22, 1.5, 3, 1)
    assert first == Usage(1, 2, 0.5, 1, 0)


def test_taking_away_never_goes_below_nothing():
    assert Usage(1, 1, 0.1, 1, 0) - Usage(5, 5, 5.0, 5, 5) == Usage()
    assert Usage(5, 4, 3.0, 2, 1) - Usage(1, 1, 1.0, 1, 1) == Usage(4, 3, 2.0, 1, 0)
