"""Values that no store can hold: refused where they are given, and what comes through all the same
ends its own run, with the cause, and nothing else."""

import logging
from decimal import Decimal

import pytest

from holdfast import Context, Pipeline, RunFailed, Transient
from holdfast.engine.gate import Gate
from holdfast.errors import (
    ConfigurationError,
    InvalidInput,
    NotFound,
    StoreUnavailable,
    Unwritable,
)
from holdfast.model.codec import codec_for
from holdfast.model.commands import SaveCheckpoint, SaveProgress, Settle
from holdfast.model.duration import seconds
from holdfast.model.retry import Retry
from holdfast.ports.store import RunFilter
from holdfast.testing.world import at_once

NAN, INF = float("nan"), float("inf")


class Integer:
    """A whole number of somebody else's, as numpy's are."""

    def __index__(self):
        return 3


class Text(str):
    """The same of a text."""


class Real:
    def __float__(self):
        return 0.5


def one_step(work, result=None):
    pipeline = Pipeline("p", input=str)

    @pipeline.step(max_attempts=1)
    async def act(input: str, ctx: Context) -> result:
        return await work(ctx)

    return pipeline


def innocent():
    pipeline = Pipeline("innocent", input=int)

    @pipeline.step
    async def add(input: int) -> int:
        return input + 1

    return pipeline


# --- where they are given -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"priority": 2**31},
        {"priority": -(2**40)},
        {"priority": 1.5},
        {"priority": True},
        {"delay": -1},
        {"delay": NAN},
        {"delay": INF},
        {"delay": 1e12},
        {"key": "half \ud800 a pair"},
        {"key": "a\0b"},
        {"key": 7},
        {"tenant": "\udcff"},
        {"labels": {"a": "\udcff"}},
        {"labels": {"a": 1}},
        {"labels": {1: "a"}},
        {"labels": ["a"]},
        {"tenant": 7},
        {"delay": 10**400},
    ],
)
def test_a_submission_with_what_cant_be_stored_is_refused_at_its_line(lab, options):
    engine = lab(innocent())
    with pytest.raises((InvalidInput, ConfigurationError)):
        engine.submit(innocent(), 1, **options)
    assert at_once(engine.store.outbox(0)) == []


def test_texts_of_others_become_plain_ones(lab):
    engine = lab(innocent())
    run = engine.submit(
        innocent(), 1, tenant=Text("t"), key=Text("k"), labels={Text("a"): Text("b")}
    )
    info = engine.info(run)
    assert [type(text) for text in (info.tenant, info.key, *info.labels.popitem())] == [str] * 4


@pytest.mark.parametrize(
    "where", [{"tenant": "\ud800"}, {"labels": {"a": "\udcff"}}, {"key": "\ud800"}]
)
def test_runs_are_looked_for_by_texts(where):
    with pytest.raises(InvalidInput, match="looked for by texts"):
        RunFilter(**where)


def test_no_dead_letter_is_found_by_what_is_no_text(lab):
    with pytest.raises(NotFound):
        lab(innocent()).operate("dead_letter", "\ud800")


@pytest.mark.parametrize("value", [NAN, INF, {"a": [NAN]}, [1.0, -INF, None], "\ud800"])
def test_an_input_or_result_that_json_does_not_know_is_refused(lab, value):
    pipeline = Pipeline("p")

    @pipeline.step
    async def act(input):
        return value

    engine = lab(pipeline)
    with pytest.raises(InvalidInput, match="can't be stored"):
        engine.submit(pipeline, value)
    run = engine.submit(pipeline, 1)
    engine.drain()
    with pytest.raises(RunFailed, match="does not fit its declared type"):
        engine.result(run)


def test_null_and_the_words_for_what_is_no_number_can_be_stored():
    codec = codec_for(dict[str, float | str | None])
    assert codec.encode({"a": None, "b": "NaN", "c": "-Infinity", "d": 1.5})


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda ctx: ctx.progress(2**70), "done"),
        (lambda ctx: ctx.progress(1, -1), "total"),
        (lambda ctx: ctx.progress("many"), "done"),
        (lambda ctx: ctx.usage(input_tokens=2**64), "input_tokens"),
        (lambda ctx: ctx.usage(output_tokens=1.5), "output_tokens"),
        (lambda ctx: ctx.usage(cost=NAN), "cost"),
        (lambda ctx: ctx.usage(cost=-1.0), "cost"),
        (lambda ctx: ctx.usage(cost="much"), "cost"),
    ],
)
def test_a_step_that_counts_what_is_no_number_fails_at_that_line(lab, call, named):
    async def work(ctx):
        call(ctx)

    pipeline = one_step(work)
    engine = lab(pipeline)
    run = engine.submit(pipeline, "a")
    engine.drain()
    error = engine.info(run).error
    assert (error.name, error.step) == ("InvalidInput", "act")
    assert named in error.message
    assert "call(ctx)" in error.traceback


def test_numbers_of_others_become_plain_ones(lab):
    async def work(ctx):
        ctx.progress(Integer(), Integer())
        ctx.usage(input_tokens=Integer(), cost=Decimal("0.25"))
        ctx.usage(cost=Real())

    pipeline = one_step(work)
    engine = lab(pipeline)
    run = engine.submit(pipeline, "a")
    engine.drain()
    record = engine.steps(run)["act"]
    assert (record.done, record.total, record.usage.input_tokens, record.usage.cost) == (
        3,
        3,
        3,
        0.75,
    )


@pytest.mark.parametrize("wait", [NAN, INF, -1, 1e12, "soon", None.__class__])
def test_an_error_asks_for_a_time_that_ends(wait):
    with pytest.raises(InvalidInput, match="retry_after"):
        Transient("busy", retry_after=wait)


def test_an_error_may_ask_with_any_number():
    assert Transient("busy", retry_after=Decimal("1.5")).retry_after == 1.5


@pytest.mark.parametrize("wait", [NAN, INF, -0.5, 1e12])
def test_a_duration_ends(wait):
    with pytest.raises(ConfigurationError, match=r"negative|endless"):
        seconds(wait)


@pytest.mark.parametrize(
    "options", [{"factor": NAN}, {"factor": 1e6}, {"base": -1.0}, {"maximum": INF}]
)
def test_the_delays_of_retries_end(options):
    with pytest.raises(ConfigurationError):
        Retry(**options)


@pytest.mark.parametrize("name", ["", "\ud800", "a\0b", "n" * 2000, 7])
def test_a_lock_has_a_name_that_can_be_stored(lab, name):
    engine = lab(innocent())
    with pytest.raises(InvalidInput, match="lock"):
        engine.app.lock(name)


# --- errors survive -------------------------------------------------------------------------------


class Broken(Exception):
    def __str__(self):
        return "caf\udce9\0 😀" + "x" * 100_000


def test_an_error_with_odd_characters_ends_the_run_with_that_error(lab):
    async def work(ctx):
        ctx.log.info("odd \udcff", number=10**400, nothing=object(), **{"\udcff": "\ud800"})
        raise Broken("\udcff")

    pipeline = one_step(work)
    engine = lab(pipeline)
    run = engine.submit(pipeline, "a")
    engine.drain()
    info = engine.info(run)
    assert (info.state, info.attempts, info.error.name) == ("failed", 1, "Broken")
    assert info.error.message.startswith("caf\\udce9\0 😀xxx")
    assert "raise Broken" in info.error.traceback
    [line] = at_once(engine.store.logs(run.id))
    assert (line.message, '"\\\\udcff"' in line.fields) == ("odd \\udcff", True)


# --- what comes through all the same --------------------------------------------------------------


def hostile_in_store(monkeypatch, kind, field, is_bad):
    """Let the engine give the store something that it should have refused."""
    send = Gate.persist

    async def persist(self, command):
        if isinstance(command, kind) and is_bad(command):
            command = type(command)(**{**_fields(command), field: "\ud800"})
        return await send(self, command)

    monkeypatch.setattr(Gate, "persist", persist)


def _fields(command):
    return {name: getattr(command, name) for name in command.__struct_fields__}


def two_steps():
    pipeline = Pipeline("two", input=int)

    @pipeline.step
    async def first(input: int) -> int:
        return input

    @pipeline.step
    async def second(first: int) -> int:
        return first

    return pipeline


def test_a_checkpoint_that_cant_be_written_fails_its_step_at_once(lab, monkeypatch):
    hostile_in_store(monkeypatch, SaveCheckpoint, "value", lambda _: True)
    pipeline, other = two_steps(), innocent()
    engine = lab(pipeline, other)
    bad, good = engine.submit(pipeline, 1), engine.submit(other, 1)
    engine.drain()
    info = engine.info(bad)
    assert (info.state, info.attempts) == ("failed", 1)
    assert (info.error.name, info.error.step) == ("Unwritable", "first")
    assert "SaveCheckpoint.value" in info.error.message
    assert engine.result(good) == 2
    assert engine.events(good) == ["run.queued", "run.started", "step.completed", "run.completed"]


@pytest.mark.parametrize("field", ["result", "progress", "error"])
def test_an_outcome_that_cant_be_written_becomes_a_failure_that_says_so(lab, monkeypatch, field):
    outcomes = []
    hostile_in_store(
        monkeypatch, Settle, field, lambda command: not outcomes and not outcomes.append(1)
    )
    engine = lab(innocent())
    run = engine.submit(innocent(), 1)
    engine.drain()
    info = engine.info(run)
    assert (info.state, info.attempts, info.error.name) == ("failed", 1, "Unwritable")
    assert f"Settle.{field}" in info.error.message


def test_progress_that_cant_be_written_is_left_out_and_logged(lab, caplog):
    engine = lab(innocent())
    committer = engine.app.runtime.committer

    async def post():
        committer.post(SaveProgress("r1", 1, "\ud800"))
        await committer.drain()

    with caplog.at_level(logging.WARNING):
        engine.call(post())
    assert "left out" in caplog.text
    assert "SaveProgress.progress" in caplog.text


def test_only_what_is_out_of_reach_is_unavailable(lab):
    engine = lab(innocent())

    async def send():
        await engine.app.runtime.committer.send(SaveProgress("r1", 1, "\ud800"))

    with pytest.raises(Unwritable) as error:
        engine.call(send())
    assert not isinstance(error.value, StoreUnavailable)
