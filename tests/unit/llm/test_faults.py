"""Every fault of every vendor, over a real socket: what comes of it, how often it is asked, and
what is on the bill."""

import asyncio
import logging

import pytest
from tests.unit.llm.harness import GOOD, KEY, Claims, Harness, over_loopback

from holdfast.adapters.llm.errors import BadRequest, RateLimited
from holdfast.adapters.llm.transport import CutShort
from holdfast.errors import ConfigurationError, HoldfastError, Pause, Transient
from holdfast.ports.language_model import Declined, Malformed, Question, TooLong
from holdfast.testing.fakellm import KINDS, Fault, always, in_turn

ANSWER = Claims.model_validate(GOOD)
ONE, THREE = (1, 1), (3, 3)
"""Requests, and calls on the bill."""

# What a fault that never ends comes to: an answer, or an error, with the number of requests and of
# calls billed.
OUTCOMES: dict[str, tuple[type[HoldfastError] | None, tuple[int, int]]] = {
    "rate_limit": (RateLimited, (9, 0)),
    "unavailable": (RateLimited, (9, 0)),
    "overloaded": (RateLimited, (9, 0)),
    "error": (Transient, ONE),
    "bad_gateway": (Transient, ONE),
    "timeout": (Transient, ONE),
    "bad_request": (BadRequest, (1, 0)),
    "unknown_model": (ConfigurationError, (1, 0)),
    "forbidden": (ConfigurationError, (1, 0)),
    "unauthorised": (ConfigurationError, (1, 0)),
    "no_credit": (Pause, (1, 0)),
    "hang": (Transient, ONE),
    "reset": (Transient, ONE),
    "silence": (Transient, ONE),
    "cut": (CutShort, ONE),
    "slow": (None, ONE),
    "html": (Transient, ONE),
    "not_json": (Transient, ONE),
    "wrong_type": (None, ONE),
    "endless": (CutShort, ONE),
    "no_choices": (Transient, ONE),
    "no_usage": (None, ONE),
    "hidden_error": (RateLimited, (9, 0)),
    "malformed": (Malformed, THREE),
    "fenced": (None, ONE),
    "prose": (None, ONE),
    "truncated": (TooLong, THREE),
    "wrong_types": (Malformed, THREE),
    "extra_keys": (None, ONE),
    "missing_keys": (Malformed, THREE),
    "empty": (Malformed, THREE),
    "refusal": (Declined, ONE),
    "refusal_text": (Malformed, THREE),
    "foreign_ids": (None, ONE),
    "duplicate_ids": (None, ONE),
    "markup": (None, ONE),
    "many": (Malformed, THREE),
    "nan": (Malformed, THREE),
    "infinity": (Malformed, THREE),
    "two_answers": (Malformed, THREE),
    "surrogates": (Malformed, THREE),
    "nested": (Malformed, THREE),
}
PATIENT = {"rate_limit", "unavailable", "overloaded", "hidden_error"}
"""They are waited for, and have a test in virtual time."""


def outcome(vendor: str, kind: str) -> tuple[Claims | HoldfastError, Harness]:
    async def story(harness: Harness) -> tuple[Claims | HoldfastError, Harness]:
        try:
            return await harness.ask(), harness
        except HoldfastError as error:
            return error, harness

    fault = Fault(kind, 0.01 if kind == "slow" else None)
    return over_loopback(
        story, vendor, faults=always(fault), address={"timeout": 0.3 if kind == "hang" else 20}
    )


def test_every_fault_has_an_outcome():
    assert set(OUTCOMES) == set(KINDS)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in PATIENT])
def test_a_fault_that_never_ends(vendor, kind, caplog):
    caplog.set_level(logging.DEBUG)
    expected, (requests, billed) = OUTCOMES[kind]
    result, harness = outcome(vendor, kind)
    if expected is None:
        assert isinstance(result, Claims)
        assert [claim.weight for claim in result.claims] in ([2], [2, 2])
    else:
        assert type(result) is expected, result
        assert len(harness.fake.calls) == requests
        assert harness.ctx.spent.calls == billed
    assert_no_key_in(result, harness, caplog.text)


def assert_no_key_in(result: Claims | HoldfastError, harness: Harness, logged: str) -> None:
    """Neither in what was raised, nor in anything that travels along with it, nor in the log."""
    texts = [logged, repr(harness.model), repr(vars(harness.model)), repr(harness.model.address)]
    error = result if isinstance(result, BaseException) else None
    while error is not None:
        texts += [str(error), repr(error), repr(vars(error))]
        for name in ("request", "response"):
            assert not hasattr(error, name), "an error that holds the request holds the key"
        error = error.__cause__ or error.__context__
    assert not any(KEY in text or KEY[3:12] in text for text in texts)


@pytest.mark.parametrize("kind", ["rate_limit", "unavailable", "overloaded"])
def test_being_told_to_slow_down_is_waited_for_and_costs_nothing(vendor, kind):
    async def story(harness: Harness) -> Harness:
        assert await harness.ask() == ANSWER
        return harness

    harness = over_loopback(story, vendor, faults=in_turn(Fault(kind, 0.0)))
    assert harness.ctx.spent.calls == 1
    assert [call.status for call in harness.fake.calls][1:] == [200]


@pytest.mark.parametrize(
    "kind", ["malformed", "wrong_types", "missing_keys", "empty", "two_answers", "many"]
)
def test_a_bad_answer_is_repaired_and_both_are_paid(vendor, kind):
    async def story(harness: Harness) -> Harness:
        assert await harness.ask() == ANSWER
        return harness

    harness = over_loopback(
        story, vendor, faults=in_turn(kind, kind), address={"input_price": 1, "output_price": 1}
    )
    tokens = sum(call.input_tokens + call.output_tokens for call in harness.fake.calls)
    assert [call.turns for call in harness.fake.calls] == [1, 3, 3]
    assert harness.ctx.spent.total_tokens == tokens
    assert harness.ctx.spent.cost == pytest.approx(tokens / 1e6)
    assert (harness.ctx.spent.calls, harness.ctx.spent.unpriced) == (3, 0)


def test_an_answer_that_was_cut_off_is_given_more_room(vendor):
    long = {
        "claims": [{"id": f"c{n}", "text": "x" * 40, "weight": n} for n in range(20)],
        "note": None,
    }

    class Long:
        def answer(self, task, system, text, schema):
            return long

    async def story(harness: Harness) -> int:
        answer = await harness.ask(Question("s", "t", "claims", max_output=150))
        return len(answer.claims)

    assert over_loopback(story, vendor, brain=Long()) == 20


@pytest.mark.parametrize("kind", ["cut", "not_json", "no_choices"])
def test_an_answer_that_got_lost_is_billed_by_estimate(vendor, kind):
    _, harness = outcome(vendor, kind)
    assert harness.ctx.spent.calls == 1
    assert harness.ctx.spent.input_tokens > 20
    assert harness.ctx.spent.output_tokens > 0


@pytest.mark.parametrize("kind", ["reset", "hang", "error"])
def test_a_call_without_an_answer_counts_as_a_call_of_nothing(vendor, kind):
    _, harness = outcome(vendor, kind)
    assert (harness.ctx.spent.calls, harness.ctx.spent.total_tokens) == (1, 0)


@pytest.mark.parametrize("kind", sorted(PATIENT))
def test_a_server_that_is_always_busy(vendor, kind, virtual_time):
    harness = virtual_time.harness(vendor, faults=always(kind))
    expected, (requests, billed) = OUTCOMES[kind]
    with pytest.raises(expected):
        virtual_time.run(harness.ask())
    assert (len(harness.fake.calls), harness.ctx.spent.calls) == (requests, billed)


def test_a_wrong_key_is_refused_and_its_variable_named(vendor):
    async def story(harness: Harness) -> str:
        harness.fake._key = "another"
        with pytest.raises(ConfigurationError) as caught:
            await harness.ask()
        return str(caught.value)

    message = over_loopback(story, vendor)
    assert "HOLDFAST_FAKE_LLM_KEY" in message
    assert KEY not in message


def test_nobody_there_is_transient(vendor):
    async def story(harness: Harness) -> str:
        await harness.fake.__aexit__()
        with pytest.raises(Transient) as caught:
            await harness.ask()
        return str(caught.value)

    assert "127.0.0.1" in over_loopback(story, vendor)


def test_a_cancelled_call_leaves_nothing_behind(vendor):
    async def story(harness: Harness) -> None:
        tasks = [asyncio.create_task(harness.ask()) for _ in range(20)]
        while harness.fake.in_flight < 4:  # noqa: ASYNC110 - the server can't know that we wait
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        harness.fake.faults = always("fenced")
        answers = await asyncio.gather(*(harness.ask() for _ in range(20)))
        assert all(answer == ANSWER for answer in answers)
        assert harness.model._pacer._busy == 0

    over_loopback(story, vendor, faults=always("hang"), address={"in_flight": 4})
