"""The key: read from the environment, put into one header, and shown to nobody."""

from __future__ import annotations

import re
from collections.abc import Mapping

from holdfast.adapters.llm.address import ModelAddress
from holdfast.errors import ConfigurationError

LOOKS_LIKE_A_KEY = re.compile(r"\b(?:sk-|AIza|gsk_|xai-|Bearer\s+)[A-Za-z0-9_*.\-]{6,}")
HIDDEN = "[key]"


class ApiKey:
    """A secret that prints as nothing. `variable` says where it came from, and is what errors
    name."""

    __slots__ = ("_value", "variable")

    def __init__(self, value: str, variable: str) -> None:
        self._value = value
        self.variable = variable

    def __repr__(self) -> str:
        return f"Key({self.variable})"

    def __bool__(self) -> bool:
        return bool(self._value)

    def __reduce__(self) -> str:
        raise TypeError("a key is not written anywhere")

    def reveal(self) -> str:
        return self._value

    def hide_in(self, text: str) -> str:
        """The text without the key, and without anything that looks like one."""
        if self._value:
            text = text.replace(self._value, HIDDEN)
        return LOOKS_LIKE_A_KEY.sub(HIDDEN, text)


def read_key(address: ModelAddress, environment: Mapping[str, str]) -> ApiKey:
    """The key for an address. Empty for a local server that was given none."""
    variables = address.key_variables
    if not address.needs_key:
        return ApiKey("", "")
    for variable in variables:
        value = environment.get(variable, "").strip()
        if value:
            return ApiKey(_printable(value, variable), variable)
    raise ConfigurationError(
        f"{address.name} needs a key: put it into the environment variable "
        f"{' or '.join(variables)}, "
        "or name another one with ?key=env:NAME"
    )


def _printable(value: str, variable: str) -> str:
    if not re.fullmatch(r"[\x21-\x7e]+", value):
        raise ConfigurationError(
            f"{variable} holds blanks, line breaks or other characters that no key has: copy the "
            "key again"
        )
    return value
