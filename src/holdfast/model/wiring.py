"""How a step is wired: its parameters' names say what it is given."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

from holdfast.errors import DefinitionError
from holdfast.model.codec import Codec, codec_for
from holdfast.model.items import Items
from holdfast.model.step import Condition

if TYPE_CHECKING:
    from holdfast.model.pipeline import Pipeline

CONTEXT = "ctx"
INPUT_NAMES = ("input", "request", "payload")


class Wiring:
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
            elif _is_input(pipeline, parameter, annotation):
                self._take_input(step, parameter)
            elif not parameters[parameter]:
                raise DefinitionError(_unknown_parameter(pipeline, step, parameter))
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


def _unknown_parameter(pipeline: Pipeline[Any], step: str, parameter: str) -> str:
    close = get_close_matches(parameter, pipeline.steps, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    declared = ", ".join(pipeline.steps) or "none yet"
    return (
        f"step {step!r} of pipeline {pipeline.name!r} asks for {parameter!r}, which is neither the "
        f"input nor a step declared above it (declared: {declared}){hint} The input is the "
        f"parameter that is called {' or '.join(INPUT_NAMES)}, or has the type of "
        "Pipeline(…, input=…). Steps are declared before they are used, so that no cycle can be "
        "written: move the step it needs above it, or merge two steps that need each other."
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


def condition(pipeline: Pipeline[Any], step: str, when: Callable[..., Any]) -> Condition:
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


def _is_input(pipeline: Pipeline[Any], parameter: str, annotation: Any) -> bool:
    """Whether a parameter asks for the run's input: by the type declared for it, or by an agreed
    name."""
    input_type = pipeline.input.type
    by_type = input_type is not Any and annotation == input_type
    return parameter not in pipeline.steps and (by_type or parameter in INPUT_NAMES)
