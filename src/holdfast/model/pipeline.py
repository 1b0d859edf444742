"""A pipeline: typed steps, wired by their parameter names, checked while they are declared."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from copy import copy
from typing import Any, Generic, TypeVar, overload

from holdfast.errors import DefinitionError, InvalidInput
from holdfast.model import limits
from holdfast.model.checkpoint import MAX_VALIDATION_FAILURES
from holdfast.model.codec import Codec, codec_for
from holdfast.model.duration import Duration, seconds
from holdfast.model.lane import DEFAULT_LANE, Lane
from holdfast.model.names import NAME, NAME_RULE
from holdfast.model.options import PipelineOptions
from holdfast.model.projection import DocumentProjection, MessageProjection, Projection
from holdfast.model.retry import Retry
from holdfast.model.step import Step
from holdfast.model.wiring import CONTEXT, INPUT_NAMES, Wiring, condition

In = TypeVar("In")
F = TypeVar("F", bound=Callable[..., Any])


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
        self.lane = _checked_lane(name, lane)
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
            wiring = Wiring(self, step_name, function, local_names)
            self.steps[step_name] = Step(
                function,
                step_name,
                wiring.result,
                needs=wiring.needs,
                streams=wiring.streams,
                takes_input=wiring.takes_input,
                takes_context=wiring.takes_context,
                when=condition(self, step_name, when) if when else None,
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
        events: Collection[str] = (),
        history: bool = True,
        to: Any = None,
    ) -> Callable[[F], F]: ...

    def publishes(
        self,
        function: Any = None,
        *,
        name: str | None = None,
        events: Collection[str] = (),
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
                    events=events,
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

    def __repr__(self) -> str:
        return f"<Pipeline {self.name}: {' '.join(self.steps)}>"


def _checked_lane(pipeline: str, lane: Lane | str) -> Lane:
    if isinstance(lane, str):
        lane = Lane(lane)
    if not isinstance(lane, Lane):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DefinitionError(
            f"pipeline {pipeline!r}: lane={lane!r:.100} is no lane; give a name, or "
            "Lane('name', order='fifo')"
        )
    try:
        limits.name("lane", lane.name)
    except InvalidInput as error:
        raise DefinitionError(f"pipeline {pipeline!r}: {error}") from error
    return lane


def _retried(step: Step, backoff: float) -> Step:
    changed = copy(step)
    maximum = max(step.retry.maximum, backoff)
    changed.retry = Retry(backoff, step.retry.factor, maximum)
    return changed
