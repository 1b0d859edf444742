"""Declaring pipelines: what is wrong is said while it is declared, with the remedy."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from holdfast import Context, DefinitionError, Items, Lane, Pipeline
from holdfast.errors import ConfigurationError
from holdfast.ports.store import RunFilter
from holdfast.testing.world import at_once


class Request(BaseModel):
    n: int = 1


def refused(match):
    return pytest.raises(DefinitionError, match=match)


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "two words", "-x", "a" * 65, "ü"])
def test_a_pipeline_name_must_be_plain(name):
    with refused("1 to 64 letters"):
        Pipeline(name)


def test_a_step_name_must_be_plain_and_can_be_given():
    pipeline = Pipeline("p")
    with refused("pass name=..."):

        @pipeline.step
        def _bad() -> int: ...

    @pipeline.step(name="good")
    def _worse() -> int: ...

    assert list(pipeline.steps) == ["good"]


def test_two_steps_can_not_share_a_name():
    pipeline = Pipeline("p")

    @pipeline.step
    def a() -> int: ...

    with refused("already has a step 'a'; rename the function or pass name="):
        pipeline.step(a)


@pytest.mark.parametrize("name", ["ctx", "input", "request", "payload"])
def test_names_of_parameters_are_reserved(name):
    with refused("reserved for a parameter; pass name=... to rename it"):
        Pipeline("p").step(name=name)(lambda: 1)


# --- wiring ---------------------------------------------------------------------------------------


def test_an_unknown_parameter_is_named_with_the_step_that_was_meant():
    pipeline = Pipeline("p")

    @pipeline.step
    def clustering() -> int: ...

    with refused("asks for 'clusterin'.*did you mean 'clustering'"):

        @pipeline.step
        def claims(clusterin: int) -> int: ...


def test_a_cycle_can_not_be_written_and_the_message_says_how_to_get_out():
    pipeline = Pipeline("p")
    with refused("declared before they are used.*move the step it needs above it, or merge"):

        @pipeline.step
        def a(b: int) -> int: ...


def test_a_step_can_not_depend_on_itself():
    with refused("asks for 'a'"):

        @Pipeline("p").step
        def a(a: int) -> int: ...


def test_the_input_is_found_by_its_type_or_by_its_name():
    pipeline = Pipeline("p", input=Request)

    @pipeline.step
    def by_type(whatever: Request) -> int: ...

    @pipeline.step
    def by_name(payload: Any) -> int: ...

    assert pipeline.steps["by_type"].takes_input == "whatever"
    assert pipeline.steps["by_name"].takes_input == "payload"


def test_two_parameters_for_the_input_are_refused():
    pipeline = Pipeline("p", input=Request)
    with pytest.raises(DefinitionError):

        @pipeline.step
        def twice(request: Request, again: Request) -> int: ...


def test_a_parameter_with_a_default_that_names_a_step_is_given_its_result(run_pipeline):
    pipeline = Pipeline("p")

    @pipeline.step
    def a() -> int:
        return 1

    @pipeline.step
    def b(a: int | None = None) -> int | None:
        return a

    assert run_pipeline(pipeline) == 1


def test_other_defaults_are_left_alone(run_pipeline):
    pipeline = Pipeline("p")

    @pipeline.step
    def a(factor: int = 3) -> int:
        return factor

    assert run_pipeline(pipeline) == 3


@pytest.mark.parametrize("function", [lambda *args: 1, lambda **more: 1])
def test_parameters_without_a_name_of_their_own_are_refused(function):
    with refused("each parameter needs a name of its own"):
        Pipeline("p").step(name="a")(function)


def test_positional_only_parameters_are_refused():
    with refused("each parameter needs a name of its own"):

        @Pipeline("p").step
        def a(input, /) -> int: ...


# --- types ----------------------------------------------------------------------------------------


def test_a_result_that_is_no_json_is_refused_with_the_step_and_the_remedy():
    class Connection: ...

    with refused("step 'a' of pipeline 'p' returns .*use a pydantic model"):

        @Pipeline("p").step
        def a() -> Connection: ...


def test_an_input_that_is_no_json_is_refused():
    with refused("use a pydantic model"):
        Pipeline("p", input=asyncio.Event)


def test_an_annotation_that_can_not_be_resolved_says_what_to_do():
    with refused("can't be resolved.*import the type at module level"):

        @Pipeline("p").step
        def a() -> Nowhere: ...  # noqa: F821


def test_local_classes_are_found_although_annotations_are_strings(run_pipeline):
    class Local(BaseModel):
        n: int

    pipeline = Pipeline("p", input=Local)

    @pipeline.step
    def a(request: Local) -> Local:
        return Local(n=request.n + 1)

    @pipeline.step(max_attempts=1)
    def b(a: Local) -> int:
        return a.n + 1

    assert run_pipeline(pipeline, Local(n=1)) == 3


def test_who_uses_a_step_that_may_be_skipped_has_to_expect_none():
    pipeline = Pipeline("p")

    @pipeline.step(when=lambda input: input)
    def maybe() -> int: ...

    with refused(r"may be skipped \(when=...\): annotate it as 'int \| None'"):

        @pipeline.step
        def after(maybe: int) -> int: ...

    @pipeline.step
    def expects_it(maybe: int | None) -> int: ...

    @pipeline.step
    def streams_it(maybe: Items[int]) -> int: ...

    @pipeline.step
    def does_not_say(maybe) -> int: ...


# --- options --------------------------------------------------------------------------------------


def test_when_may_ask_only_for_what_there_is():
    with refused("when= of step 'a' asks for 'weather'.*may use input, request, payload"):

        @Pipeline("p").step(when=lambda weather: weather)
        def a() -> int: ...


@pytest.mark.parametrize(
    "declare",
    [lambda: Pipeline("p", max_attempts=0), lambda: Pipeline("p").step(max_attempts=0)(min)],
)
def test_attempts_count_tries(declare):
    with refused("max_attempts counts tries and must be at least 1"):
        declare()


def test_a_time_out_must_be_a_duration():
    with pytest.raises(ConfigurationError, match="write '90s'"):
        Pipeline("p", timeout="soon")


def test_a_pipeline_without_steps_has_no_result_and_says_so(lab):
    with refused("has no steps: declare one with @p.step"):
        _ = Pipeline("p").result_step


def test_a_pipeline_without_steps_is_refused_when_it_is_submitted(lab):
    engine, empty = lab(), Pipeline("p")
    with refused("has no steps: declare one with @p.step"):
        engine.submit(empty)
    with refused("has no steps: declare one with @p.step"):
        engine.call(engine.app.submit_many(empty, [1, 2]))
    assert not at_once(engine.store.runs(RunFilter()))


def test_result_has_to_name_a_step():
    pipeline = Pipeline("p", result="b")

    @pipeline.step
    def a() -> int: ...

    with refused("result='b' names no step; steps: a"):
        _ = pipeline.result_step


@pytest.mark.parametrize(
    ("lane", "match"),
    [
        ({"order": "lifo"}, "use 'parallel' or 'fifo'"),
        ({"head": "explode"}, "use 'block', 'skip' or"),
    ],
)
def test_a_lane_has_a_known_order_and_policy(lane, match):
    with refused(match):
        Lane("x", **lane)


# --- functions stay functions ---------------------------------------------------------------------


def test_a_step_stays_the_function_it_was():
    pipeline = Pipeline("p")

    def plain(input: int) -> int:
        return input + 1

    async def coroutine(plain: int, ctx: Context | None = None) -> int:
        return plain + 1

    assert pipeline.step(plain) is plain
    assert pipeline.step(max_attempts=2)(coroutine) is coroutine
    assert plain(1) == 2
    assert asyncio.run(coroutine(2)) == 3
