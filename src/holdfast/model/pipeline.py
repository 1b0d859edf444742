"""A pipeline: typed steps, wired by their parameter names, checked while they are declared."""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from difflib import get_close_matches
from typing import Any, Generic, TypeVar, Union, get_args, get_origin, get_type_hints, overload

from holdfast.errors import DefinitionError
from holdfast.model.checkpoint import MAX_VALIDATION_FAILURES
from holdfast.model.codec import Codec, codec_for
from holdfast.model.duration import Duration, seconds
from holdfast.model.items import Items
from holdfast.model.lane import DEFAULT_LANE, Lane
from holdfast.model.names import NAME, NAME_RULE
from holdfast.model.options import PipelineOptions
from holdfast.model.projection import DocumentProjection, MessageProjection, Projection
from holdfast.model.retry import Retry

In = TypeVar("In")
F = TypeVar("F", bound=Callable[..., Any])

CONTEXT = "ctx"
INPUT_NAMES = ("input", "request", "payload")


class Step:
    """One step as declared: the function, what it is given, and how it may be repeated."""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        result: Codec,
        *,
        needs: tuple[str, ...],
        streams: dict[str, Codec],
        takes_input: str | None,
        takes_context: bool,
        when: Condition | None,
        max_attempts: int,
        timeout: float,
        retry: Retry,
        version: str,
    ) -> None:
        self.function = function
        self.name = name
        self.result = result
        self.needs = needs
        self.streams = streams
        self.takes_input = takes_input
        self.takes_context = takes_context
        self.when = when
        self.max_attempts = max_attempts
        self.timeout = timeout
        self.retry = retry
        self.version = version
        self.is_async = inspect.iscoroutinefunction(function)
        self.waits_for = frozenset(needs) | (frozenset(when.needs) if when else frozenset())
        """The steps that must have ended before this one starts."""

    def __repr__(self) -> str:
        return f"<Step {self.name}>"


class Condition:
    """`when=`: decides from the input and earlier results whether an optional step runs."""

    def __init__(
        self, function: Callable[..., Any], needs: tuple[str, ...], takes_input: str | None
    ) -> None:
        self.function = function
        self.needs = needs
        self.takes_input = takes_input


class Pipeline(Generic[In]):
    """A named set of typed steps.

        report = Pipeline("report", input=ReportRequest, timeout="30m")

        @report.step
        async def clustering(request: ReportRequest, ctx: Context) -> Taxonomy: ...

        @report.step(max_attempts=5)
        async def claims(request: ReportRequest, clustering: Taxonomy, ctx: Context) -> Claims: ...

    The result of a run is the result of the last step declared, or of the step named by `result=`.
    """

    def __init__(
        self,
        name: str,
        *,
        input: type[In] | Any = Any,
        timeout: Duration = "30m",
        max_attempts: int = 5,
        lane: Lane | str = DEFAULT_LANE,
        unique: bool = False,
        result: str | None = None,
        version: str = "1",
        key: Callable[[In], str | None] | None = None,
        labels: Callable[[In], Mapping[str, str]] | None = None,
        timeout_for: Callable[[In], Duration] | None = None,
    ) -> None:
        if not NAME.fullmatch(name):
            raise DefinitionError(f"pipeline name {name!r} is not usable: {NAME_RULE}")
        if max_attempts < 1:
            raise DefinitionError(
                f"pipeline {name!r}: max_attempts counts tries and must be at least 1"
            )
        self.name = name
        self.input: Codec = codec_for(input)
        self.timeout = seconds(timeout)
        self.timeout_for = timeout_for
        """How long an attempt with a certain input may take, if that is longer than `timeout`."""
        self.max_validation_failures = MAX_VALIDATION_FAILURES
        self.max_attempts = max_attempts
        self.lane = Lane(lane) if isinstance(lane, str) else lane
        self.unique = unique
        self.version = version
        self.key = key
        """The idempotency key of an input that came without one: the same key finds the run that is
        there."""
        self.labels = labels
        """What runs of an input are found by; labels that are given with it win."""
        self.steps: dict[str, Step] = {}
        self.projections: list[Projection] = []
        self._result = result

    def time_limit(self, value: In) -> float:
        """Seconds that an attempt may take with this input."""
        if self.timeout_for is None:
            return self.timeout
        return max(self.timeout, seconds(self.timeout_for(value)))

    def with_options(self, options: PipelineOptions) -> Pipeline[In]:
        """The same pipeline, changed as the settings say."""
        if options == PipelineOptions():
            return self
        changed = copy(self)
        if options.timeout is not None:
            changed.timeout, changed.timeout_for = options.timeout, None
        changed.max_attempts = options.max_attempts or self.max_attempts
        changed.max_validation_failures = (
            options.max_validation_failures or self.max_validation_failures
        )
        if options.backoff is not None:
            changed.steps = {name: _retried(s, options.backoff) for name, s in self.steps.items()}
        return changed

    @property
    def result_step(self) -> Step:
        """The step whose result is the result of the run."""
        if not self.steps:
            raise DefinitionError(
                f"pipeline {self.name!r} has no steps: declare one with @{self.name}.step"
            )
        if self._result is None:
            return next(reversed(self.steps.values()))
        if self._result not in self.steps:
            raise DefinitionError(
                f"pipeline {self.name!r}: result={self._result!r} names no step; steps: "
                f"{', '.join(self.steps)}"
            )
        return self.steps[self._result]

    @overload
    def step(self, function: F) -> F: ...

    @overload
    def step(
        self,
        *,
        name: str | None = None,
        when: Callable[..., Any] | None = None,
        max_attempts: int = 3,
        timeout: Duration = "10m",
        retry: Retry | None = None,
        version: str = "1",
    ) -> Callable[[F], F]: ...

    def step(
        self,
        function: Any = None,
        *,
        name: str | None = None,
        when: Callable[..., Any] | None = None,
        max_attempts: int = 3,
        timeout: Duration = "10m",
        retry: Retry | None = None,
        version: str = "1",
    ) -> Any:
        """Declare a step. The function itself is returned unchanged: it stays callable and typed.

        `version` is part of every checkpoint: raise it when a changed step must not reuse old
        results."""
        local_names = sys._getframe(1).f_locals

        def declare(function: F) -> F:
            step_name = name or function.__name__
            self._check_name(step_name, max_attempts)
            wiring = _Wiring(self, step_name, function, local_names)
            self.steps[step_name] = Step(
                function,
                step_name,
                wiring.result,
                needs=wiring.needs,
                streams=wiring.streams,
                takes_input=wiring.takes_input,
                takes_context=wiring.takes_context,
                when=_condition(self, step_name, when) if when else None,
                max_attempts=max_attempts,
                timeout=seconds(timeout),
                retry=retry or Retry(),
                version=version,
            )
            return function

        return declare(function) if function is not None else declare

    @overload
    def publishes(self, function: F) -> F: ...

    @overload
    def publishes(
        self,
        *,
        name: str | None = None,
        events: Iterable[str] = (),
        history: bool = True,
        to: Any = None,
    ) -> Callable[[F], F]: ...

    def publishes(
        self,
        function: Any = None,
        *,
        name: str | None = None,
        events: Iterable[str] = (),
        history: bool = True,
        to: Any = None,
    ) -> Any:
        """Declare messages that leave when something has happened to a run: a pure function from a
        `CommittedEvent` to `Outgoing` messages. `events` are the types that it is about (all of
        this pipeline by default); without `history` it begins with what happens from now on."""

        def declare(function: F) -> F:
            self._project(
                MessageProjection(
                    name=name or self._projection_name(function),
                    function=function,
                    pipeline=self.name,
                    to=to,
                    events=frozenset(events),
                    history=history,
                )
            )
            return function

        return declare(function) if function is not None else declare

    @overload
    def documents(self, function: F) -> F: ...

    @overload
    def documents(
        self,
        *,
        name: str | None = None,
        results: bool = False,
        on_progress: bool = True,
        to: Any = None,
    ) -> Callable[[F], F]: ...

    def documents(
        self,
        function: Any = None,
        *,
        name: str | None = None,
        results: bool = False,
        on_progress: bool = True,
        to: Any = None,
    ) -> Any:
        """Declare documents that other systems read: a function from a `RunSnapshot` to `Document`
        and `Removal` values. With `results` it also sees the results of steps; without
        `on_progress` they are written at events only."""

        def declare(function: F) -> F:
            self._project(
                DocumentProjection(
                    name=name or self._projection_name(function),
                    function=function,
                    pipeline=self.name,
                    to=to,
                    results=results,
                    on_progress=on_progress,
                )
            )
            return function

        return declare(function) if function is not None else declare

    def _projection_name(self, function: Callable[..., Any]) -> str:
        return f"{self.name}.{function.__name__}"

    def _project(self, projection: Projection) -> None:
        if any(known.name == projection.name for known in self.projections):
            raise DefinitionError(
                f"pipeline {self.name!r} already has a projection {projection.name!r}; rename the "
                "function or pass name=..."
            )
        self.projections.append(projection)

    def _check_name(self, name: str, max_attempts: int) -> None:
        if not NAME.fullmatch(name):
            raise DefinitionError(
                f"step name {name!r} in pipeline {self.name!r} is not usable: {NAME_RULE}; pass "
                "name=... to give the step another name than its function"
            )
        if similar := next(
            (s for s in self.steps if s != name and s.lower() == name.lower()), None
        ):
            raise DefinitionError(
                f"pipeline {self.name!r} has a step {similar!r}: {name!r} differs by capitals "
                "alone, and nobody could tell them apart"
            )
        if name in self.steps:
            raise DefinitionError(
                f"pipeline {self.name!r} already has a step {name!r}; rename the function or pass "
                "name=..."
            )
        if name == CONTEXT or name in INPUT_NAMES:
            raise DefinitionError(
                f"step name {name!r} is reserved for a parameter; pass name=... to rename it"
            )
        if max_attempts < 1:
            raise DefinitionError(
                f"step {name!r}: max_attempts counts tries and must be at least 1"
            )

    def is_input(self, parameter: str, annotation: Any) -> bool:
        """Whether a parameter asks for the run's input: by the type declared for it, or by an
        agreed name."""
        by_type = self.input.type is not Any and annotation == self.input.type
        return parameter not in self.steps and (by_type or parameter in INPUT_NAMES)

    def __repr__(self) -> str:
        return f"<Pipeline {self.name}: {' '.join(self.steps)}>"


def _retried(step: Step, backoff: float) -> Step:
    changed = copy(step)
    maximum = max(step.retry.maximum, backoff)
    changed.retry = Retry(backoff, step.retry.factor, maximum)
    return changed


class _Wiring:
    """Reads a step's signature: which parameter is the input, which are results of steps declared
    above."""

    def __init__(
        self,
        pipeline: Pipeline[Any],
        step: str,
        function: Callable[..., Any],
        names: dict[str, Any],
    ):
        hints = _hints(step, function, names)
        parameters = _parameters(step, function)
        self.takes_context = CONTEXT in parameters
        self.takes_input: str | None = None
        needs: list[str] = []
        self.streams: dict[str, Codec] = {}
        for parameter in parameters:
            annotation = hints.get(parameter, Any)
            if parameter == CONTEXT:
                continue
            if parameter in pipeline.steps:
                _check_optional(pipeline, step, parameter, annotation)
                if _is_items(annotation):
                    self.streams[parameter] = codec_for(*get_args(annotation) or (Any,))
                else:
                    needs.append(parameter)
            elif pipeline.is_input(parameter, annotation):
                self._take_input(step, parameter)
            elif not parameters[parameter]:
                raise DefinitionError(unknown_parameter(pipeline, step, parameter))
        self.needs = tuple(needs)
        self._check_result(pipeline, step, hints)

    def _take_input(self, step: str, parameter: str) -> None:
        if self.takes_input is not None:
            raise DefinitionError(
                f"step {step!r} asks for the input twice, as {self.takes_input!r} and as "
                f"{parameter!r}: one is enough"
            )
        self.takes_input = parameter

    def _check_result(self, pipeline: Pipeline[Any], step: str, hints: dict[str, Any]) -> None:
        try:
            self.result = codec_for(hints.get("return", Any))
        except DefinitionError as error:
            raise DefinitionError(
                f"step {step!r} of pipeline {pipeline.name!r} returns {error}"
            ) from error


def unknown_parameter(pipeline: Pipeline[Any], step: str, parameter: str) -> str:
    close = get_close_matches(parameter, pipeline.steps, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    declared = ", ".join(pipeline.steps) or "none yet"
    return (
        f"step {step!r} of pipeline {pipeline.name!r} asks for {parameter!r}, which is neither the "
        "input "
        f"({pipeline.input.name}) nor a step declared above it (declared: {declared}){hint} Steps "
        "are declared "
        "before they are used, so that no cycle can be written: move the step it needs above it, "
        "or merge "
        "two steps that need each other."
    )


def _hints(step: str, function: Callable[..., Any], names: dict[str, Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function, localns=names)
    except NameError as error:
        raise DefinitionError(
            f"step {step!r}: an annotation can't be resolved ({error}); import the type at module "
            "level"
        ) from error


def _parameters(step: str, function: Callable[..., Any]) -> dict[str, bool]:
    """The names of the parameters, and whether each has a default of its own."""
    parameters = inspect.signature(function).parameters
    for parameter in parameters.values():
        if parameter.kind in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
            parameter.POSITIONAL_ONLY,
        ):
            raise DefinitionError(
                f"step {step!r} declares {parameter}: a step is given its input and results by "
                "name, "
                "so each parameter needs a name of its own"
            )
    return {
        name: parameter.default is not parameter.empty for name, parameter in parameters.items()
    }


def _is_items(annotation: Any) -> bool:
    return annotation is Items or get_origin(annotation) is Items


def _check_optional(pipeline: Pipeline[Any], step: str, parameter: str, annotation: Any) -> None:
    """A step that may be skipped gives None, and the type of whoever uses it has to say so."""
    if pipeline.steps[parameter].when is None or annotation is Any or _is_items(annotation):
        return
    if get_origin(annotation) in (Union, types.UnionType) and type(None) in get_args(annotation):
        return
    raise DefinitionError(
        f"step {step!r} uses {parameter!r}, which may be skipped (when=...): annotate it as "
        f"'{getattr(annotation, '__name__', annotation)} | None'"
    )


def _condition(pipeline: Pipeline[Any], step: str, when: Callable[..., Any]) -> Condition:
    needs: list[str] = []
    takes_input: str | None = None
    for parameter in inspect.signature(when).parameters:
        if parameter in pipeline.steps:
            needs.append(parameter)
        elif parameter in INPUT_NAMES:
            takes_input = parameter
        else:
            raise DefinitionError(
                f"when= of step {step!r} asks for {parameter!r}: it may use "
                f"{', '.join(INPUT_NAMES)} "
                f"or a step declared above ({', '.join(pipeline.steps) or 'none yet'})"
            )
    return Condition(when, tuple(needs), takes_input)
