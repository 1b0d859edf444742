"""A failed step's error says where in the user's code it happened: of bounded length, without the
engine's own frames, without secrets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from holdfast import Context, Permanent, Pipeline, Transient
from holdfast.engine.tracebacks import LEFT_OUT, MAX_LENGTH, traceback_text
from holdfast.model.run import ErrorInfo
from holdfast.model.secrecy import masked


def raised(function: Callable[[], Any]) -> BaseException:
    try:
        function()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def failed(lab: Any, pipeline: Pipeline[Any], input: Any = None) -> ErrorInfo:
    engine = lab(pipeline)
    run = engine.submit(pipeline, input)
    engine.drain()
    error = engine.info(run).error
    assert error is not None
    return error


def the_cause() -> None:
    raise Permanent("it broke")


# --- what is kept ---------------------------------------------------------------------------------


def a_coroutine_step(pipeline: Pipeline[Any]) -> None:
    @pipeline.step
    async def s() -> None:
        the_cause()


def a_blocking_step(pipeline: Pipeline[Any]) -> None:
    @pipeline.step
    def s() -> None:
        the_cause()


def an_item(pipeline: Pipeline[Any]) -> None:
    async def item(n: int) -> None:
        the_cause()

    @pipeline.step
    async def s(ctx: Context) -> list[None]:
        return await ctx.map(item, [1, 2, 3])


def an_item_too_many(pipeline: Pipeline[Any]) -> None:
    async def item(n: int) -> None:
        the_cause()

    @pipeline.step
    async def s(ctx: Context) -> list[None]:
        return await ctx.map(item, [1, 2, 3], on_error="collect", max_failures=1)


def an_inner_step(pipeline: Pipeline[Any]) -> None:
    def inner() -> None:
        the_cause()

    @pipeline.step
    async def s(ctx: Context) -> None:
        await ctx.step("inner", inner)


def a_condition(pipeline: Pipeline[Any]) -> None:
    @pipeline.step(when=lambda input: the_cause())
    async def s() -> None: ...


@pytest.mark.parametrize(
    "declare",
    [a_coroutine_step, a_blocking_step, an_item, an_item_too_many, an_inner_step, a_condition],
    ids=lambda declare: declare.__name__,
)
def test_the_traceback_leads_to_the_line_and_through_nothing_of_the_engine(
    lab: Any, declare: Callable[[Pipeline[Any]], None]
) -> None:
    pipeline = Pipeline("p")
    declare(pipeline)
    error = failed(lab, pipeline)
    assert error.step == "s"
    assert error.traceback is not None
    assert ", in the_cause\n" in error.traceback
    assert 'raise Permanent("it broke")' in error.traceback
    assert "holdfast/engine" not in error.traceback
    assert "threading.py" not in error.traceback


def test_a_step_that_was_stopped_says_where_it_was(lab: Any) -> None:
    pipeline = Pipeline("p")

    async def stuck() -> None:
        await asyncio.sleep(3600)

    @pipeline.step(timeout="1s", max_attempts=1)
    async def s() -> None:
        await stuck()

    traceback = failed(lab, pipeline).traceback
    assert traceback is not None
    assert ", in stuck\n" in traceback
    assert "StepTimeout: it took longer than 1.0 s" in traceback.splitlines()[-1]


def test_causes_are_kept() -> None:
    def fails() -> None:
        try:
            {}["x"]
        except KeyError as error:
            raise Permanent("no x") from error

    traceback = traceback_text(raised(fails))
    assert traceback is not None
    assert traceback.index("KeyError: 'x'") < traceback.index("direct cause")
    assert traceback.endswith("Permanent: no x")


def test_errors_of_a_group_are_kept(lab: Any) -> None:
    pipeline = Pipeline("p")

    async def fail(n: int) -> None:
        raise ValueError(f"number {n}")

    @pipeline.step(max_attempts=1)
    async def s() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail(1))
            group.create_task(fail(2))

    traceback = failed(lab, pipeline).traceback
    assert traceback is not None
    assert "ValueError: number 1" in traceback
    assert "ValueError: number 2" in traceback


def test_there_is_none_where_all_of_it_would_be_the_engines(lab: Any) -> None:
    pipeline = Pipeline("p")

    @pipeline.step
    async def s() -> int:
        return "three"  # type: ignore[return-value]

    error = failed(lab, pipeline)
    assert "does not fit its declared type" in error.message
    assert error.traceback is None


def test_a_step_that_is_tried_again_shows_the_traceback_of_its_last_try(lab: Any) -> None:
    pipeline = Pipeline("p")

    @pipeline.step
    async def s() -> None:
        raise Transient("busy", retry_after=30)

    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.advance(5)
    record = engine.info(run).progress.steps["s"]
    assert "Transient: busy" in record.error.traceback


def test_a_traceback_that_is_not_there_is_left_out_of_what_is_stored() -> None:
    """Programs of earlier versions read it as before."""
    assert msgspec.json.encode(ErrorInfo("E", "m", "s")) == b'{"name":"E","message":"m","step":"s"}'
    stored = b'{"name":"E","message":"m"}'
    assert msgspec.json.decode(stored, type=ErrorInfo) == ErrorInfo("E", "m")


def test_an_error_that_can_not_be_shown_still_fails_the_run(lab: Any) -> None:
    class Broken(Permanent):
        def __str__(self) -> str:
            raise ZeroDivisionError

    pipeline = Pipeline("p")

    @pipeline.step
    async def s() -> None:
        raise Broken

    error = failed(lab, pipeline)
    assert (error.name, error.message) == (
        "Broken",
        "its message can't be shown: ZeroDivisionError",
    )
    assert error.traceback is not None


# --- how long -------------------------------------------------------------------------------------


def test_the_innermost_frames_are_kept_of_a_long_one() -> None:
    functions: dict[str, Any] = {}
    for number in range(300):  # different ones, or Python would fold them into a line
        then = f"f{number - 1}()" if number else "the_cause()"
        exec(f"def f{number}(): {then}", {"the_cause": the_cause} | functions, functions)
    traceback = traceback_text(raised(functions["f299"]))
    assert traceback is not None
    assert len(traceback) <= MAX_LENGTH
    assert traceback.startswith(LEFT_OUT)
    assert ", in f0\n" in traceback
    assert ", in f299\n" not in traceback
    assert traceback.endswith("Permanent: it broke")


def test_a_long_message_does_not_push_the_frames_out() -> None:
    def fails() -> None:
        raise Permanent("x" * 1_000_000)

    traceback = traceback_text(raised(fails))
    assert traceback is not None
    assert len(traceback) <= MAX_LENGTH
    assert ", in fails\n" in traceback
    assert traceback.endswith("xxx …")


# --- secrets --------------------------------------------------------------------------------------


def test_no_secret_is_in_the_error_of_a_run(lab: Any) -> None:
    pipeline = Pipeline("p")

    def connect(url: str, password: str) -> None:
        raise ConnectionError(f"no answer from {url} with password={password}")

    @pipeline.step(max_attempts=1)
    async def s() -> None:
        connect("postgresql://ann:geheim@db/app", password="geheim")

    error = failed(lab, pipeline)
    assert "geheim" not in msgspec.json.encode(error).decode()
    assert error.message == "no answer from postgresql://ann:***@db/app with password=***"
    assert error.traceback is not None
    assert 'connect("postgresql://ann:***@db/app", password=***)' in error.traceback


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer geheim-geheim",
        "headers={'Authorization': 'Basic geheimgeheim'}",
        'api_key="geheim"',
        "OPENAI_API_KEY=geheim",
        '{"client_secret": "geheim"}',
        "def f(password: str = 'geheim'): ...",
        "token=geheimgeheimgeheim",
        '"access_token": "geheimgeheimgeheim"',
        "Incorrect API key provided: sk-proj-geheim123.",
        "redis://:geheim@h/0",
        "https://h/x?api_key=geheim&y=1",
        "eyJgeheimgeheim.eyJgeheim.geheim",
    ],
)
def test_what_looks_like_a_secret_is_masked(text: str) -> None:
    assert "geheim" not in masked(text)
    assert "***" in masked(text)


@pytest.mark.parametrize(
    "text",
    [
        "unexpected token: '}'",
        "used 500 tokens: 400 in, 100 out",
        "max_tokens=4096",
        "if token == other: pass",
        "key='claims' is unknown",
        "the password is too short",
        "https://example.org/a:b@c",
    ],
)
def test_what_is_no_secret_is_left(text: str) -> None:
    assert masked(text) == text
