"""The types that answers may have: pydantic models, dataclasses, msgspec Structs, plain JSON types.

Vendors enforce schemas of objects only. A type whose JSON is not an object (`str`, `list[int]`) is
asked for as `{"answer": …}`, and read with or without that wrapping."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Generic, TypeVar, cast

import msgspec
from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from holdfast.errors import Fix

T = TypeVar("T")

WRAPPING = "answer"
SHOWN_FAULTS = 5


class Mismatch(Exception):
    """Why a JSON value is not of the type, in words for the model that gave it."""


class AnswerType(Generic[T]):
    """Between a type and JSON. Use `answer_type`, which makes each of them once."""

    def __init__(self, kind: type[T]) -> None:
        self.name = getattr(kind, "__name__", None) or str(kind)
        self._kind = kind
        self._adapter = _pydantic_adapter(kind)
        full = self._adapter.json_schema() if self._adapter else self._msgspec_schema()
        self.definitions: dict[str, Any] = full.pop("$defs", {})
        self.is_wrapped = _resolved(full, self.definitions).get("type") != "object"
        self.schema: dict[str, Any] = (
            {"type": "object", "properties": {WRAPPING: full}} if self.is_wrapped else full
        )
        """The full JSON Schema of what the model is to say, references into `definitions`."""

    def _msgspec_schema(self) -> dict[str, Any]:
        try:
            return msgspec.json.schema(self._kind)
        except (TypeError, NameError) as error:
            raise Fix(
                f"{self.name} can't be an answer: use a pydantic model, a dataclass, a msgspec "
                f"Struct or plain JSON types ({error})"
            ) from error

    def read(self, value: Any) -> T:
        """The answer in a JSON value that a model gave. Raises `Mismatch`."""
        if self.is_wrapped and isinstance(value, dict) and WRAPPING in value:
            value = value[WRAPPING]
        return self._checked(value)

    def decode(self, text: str) -> T:
        """The value that `encode` was given. Raises `Mismatch` if it has another type by now."""
        try:
            value = msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            raise Mismatch(str(error)) from None
        return self._checked(value)

    def _checked(self, value: Any) -> T:
        try:
            if self._adapter is not None:
                return self._adapter.validate_python(value)
            return msgspec.convert(value, self._kind, strict=False)
        except ValidationError as error:
            raise Mismatch(_faults(error)) from None
        except msgspec.ValidationError as error:
            raise Mismatch(f"It does not match the schema: {error}.") from None


def answer_type(kind: type[T]) -> AnswerType[T]:
    """The answer type for a type. Raises `Fix` if there is none."""
    return cast(AnswerType[T], _answer_type(kind))


@lru_cache(maxsize=256)
def _answer_type(kind: Any) -> AnswerType[Any]:
    return AnswerType(kind)


def encode(value: Any) -> str:
    """An answer as JSON text."""
    try:
        return to_json(value).decode()
    except PydanticSerializationError:
        return msgspec.json.encode(value).decode()


def _pydantic_adapter(kind: Any) -> TypeAdapter[Any] | None:
    """None for what pydantic does not know and msgspec may."""
    try:
        adapter = TypeAdapter(kind)
        adapter.json_schema()
    except (PydanticSchemaGenerationError, PydanticUserError):
        return None
    return adapter


def _resolved(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref")
    return definitions[reference.rsplit("/", 1)[-1]] if reference else schema


def _faults(error: ValidationError) -> str:
    """The first faults, each with its place; not the values, which may be anything."""
    faults = [
        f"{'.'.join(str(part) for part in fault['loc'])[:100] or 'the answer'}: "
        f"{fault['msg'][:200]}"
        for fault in error.errors(include_url=False, include_context=False, include_input=False)[
            :SHOWN_FAULTS
        ]
    ]
    more = error.error_count() - len(faults)
    listed = "; ".join(faults) + (f"; and {more} more" if more > 0 else "")
    return f"It does not match the schema: {listed}."
