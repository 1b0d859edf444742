"""Between Python values and the JSON that is stored: one codec for each declared type."""

from __future__ import annotations

from functools import lru_cache
from math import isfinite
from typing import Any

import msgspec
from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from holdfast.errors import DefinitionError, InvalidInput
from holdfast.model.checkpoint import digest

_to_text = msgspec.json.Encoder()


class Codec:
    """Encodes, decodes and validates values of one type. `schema` changes whenever the type's shape
    does."""

    __slots__ = ("_adapter", "_dump", "_load", "name", "schema", "type")

    def __init__(self, kind: Any) -> None:
        self.type = kind
        self.name = getattr(kind, "__name__", None) or str(kind)
        try:
            self._adapter: TypeAdapter[Any] = TypeAdapter(kind)
            self.schema = digest(_to_text.encode(self._adapter.json_schema()).decode())
        except (PydanticSchemaGenerationError, PydanticUserError) as error:
            raise DefinitionError(
                f"{self.name} can't be stored as JSON ({str(error).splitlines()[0]}); use a "
                "pydantic model, "
                "a dataclass, or plain lists, dicts, strings and numbers"
            ) from error
        # The adapter's own methods hand over a dozen options that nobody here sets.
        self._dump = self._adapter.serializer.to_json
        self._load = self._adapter.validator.validate_json

    def encode(self, value: Any) -> str:
        """JSON text of a value. Raises InvalidInput when it does not fit the type."""
        try:
            text = self._dump(value, warnings=False).decode()
        except (PydanticSerializationError, UnicodeError, ValueError, TypeError) as error:
            raise InvalidInput(
                f"{value!r:.200} can't be stored as {self.name}: {_first_line(error)}"
            ) from error
        if "null" in text and self._has_no_end(value):
            raise InvalidInput(
                f"{value!r:.200} can't be stored as {self.name}: JSON knows neither NaN nor "
                "infinity; use None, or a text"
            )
        return text

    def _has_no_end(self, value: Any) -> bool:
        """Whether a number in it is NaN or infinite: they were written as null."""
        plain = self._adapter.serializer.to_python(value, warnings=False)
        text = to_json(plain, inf_nan_mode="constants", fallback=lambda _: None)
        return (b"NaN" in text or b"Infinity" in text) and not _is_finite(plain)

    def decode(self, text: str) -> Any:
        """The value behind JSON text. Raises InvalidInput when it does not fit the type."""
        try:
            return self._load(text)
        except ValidationError as error:
            raise InvalidInput(explain(error, self.name)) from error

    def validate(self, value: Any) -> Any:
        """A value given by a caller (a model, or the plain data for one), checked."""
        try:
            return self._adapter.validate_python(value)
        except ValidationError as error:
            raise InvalidInput(explain(error, self.name)) from error

    def json_schema(self) -> dict[str, Any]:
        return self._adapter.json_schema()


@lru_cache(maxsize=1024)
def _cached(kind: Any) -> Codec:
    return Codec(kind)


def codec_for(kind: Any) -> Codec:
    """The codec of a type, made once."""
    try:
        return _cached(kind)
    except TypeError:  # unhashable annotation
        return Codec(kind)


def explain(error: ValidationError, name: str) -> str:
    """A validation error as one line a person can act on."""
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    shown = [f"{'.'.join(map(str, p['loc'])) or name}: {p['msg']}" for p in problems[:5]]
    more = f" (and {len(problems) - 5} more)" if len(problems) > 5 else ""
    return f"{name} is not valid: {'; '.join(shown)}{more}"


def plain_json(value: Any) -> str:
    """JSON of whatever a caller hands over, for hashing; models and dataclasses included."""
    return to_json(value).decode()


def _is_finite(plain: Any) -> bool:
    match plain:
        case float():
            return isfinite(plain)
        case dict():
            return all(map(_is_finite, plain.values()))
        case list() | tuple() | set() | frozenset():
            return all(map(_is_finite, plain))
    return True


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
