"""Filters on the attributes of messages, in the language of Google Cloud Pub/Sub.

    attributes:worker-type                          the attribute is there
    attributes.worker-type = "transcription"        … and has this value; != is its opposite
    hasPrefix(attributes.lang, "en-")               … and begins with this
    NOT …    -…    … AND …    … OR …    ( … )

NOT binds closest. AND and OR are not mixed without parentheses, as there. A key that is more than
letters, digits, `_` and `-` is written as a string. Keys, values and words are case-sensitive."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple, NoReturn

from holdfast.errors import ConfigurationError

MAX_FILTER = 256
"""Bytes of a filter, as in Pub/Sub; so no filter nests deeply."""

Attributes = Mapping[str, str]
Test = Callable[[Attributes], bool]


class Filter:
    """Which messages a subscription wants. Two filters are equal if they are written alike."""

    __slots__ = ("_test", "text")

    def __init__(self, text: str) -> None:
        self.text = " ".join(text.split()) if '"' not in text else text.strip()
        self._test = _compiled(self.text)

    def matches(self, attributes: Attributes) -> bool:
        return self._test(attributes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Filter) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __bool__(self) -> bool:
        return bool(self.text)

    def __repr__(self) -> str:
        return f"Filter({self.text!r})"


@lru_cache(maxsize=1000)
def _compiled(text: str) -> Test:
    if not text:
        return lambda attributes: True
    if len(text.encode()) > MAX_FILTER:
        raise ConfigurationError(
            f"a filter has at most {MAX_FILTER} bytes; this one has {len(text.encode())}: "
            f"{text[:40]}…"
        )
    return _Parser(text).parse()


# --- tokens ---------------------------------------------------------------------------------------


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


_TOKENS = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<string>"(?:[^"\\\n]|\\[^\n])*")
    | (?P<word>[A-Za-z0-9_][A-Za-z0-9_-]*)
    | (?P<sign>!=|[:.=(),-])
    """,
    re.VERBOSE,
)

_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.))", re.DOTALL
)
_LETTERS = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", '"': '"', "'": "'", "?": "?",
}  # fmt: skip


class _Parser:
    """Reads a filter from left to right. Whatever is wrong is said with the place where it
    stands."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._split(text)
        self._next = 0

    def parse(self) -> Test:
        test = self._expression()
        if self._token.kind != "end":
            self._refuse("AND, OR or the end")
        return test

    def _split(self, text: str) -> list[_Token]:
        tokens: list[_Token] = []
        at = 0
        while at < len(text):
            token = _TOKENS.match(text, at)
            if token is None:
                problem = (
                    "this string has no end" if text[at] == '"' else f"{text[at]!r} has no place"
                )
                raise _wrong(text, at, problem)
            if token.lastgroup and token.lastgroup != "space":
                tokens.append(_Token(token.lastgroup, token[0], at))
            at = token.end()
        return [*tokens, _Token("end", "", len(text))]

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _takes(self, text: str) -> bool:
        """Step over a word or sign, if it comes next."""
        if self._token.kind in ("word", "sign") and self._token.text == text:
            self._next += 1
            return True
        return False

    def _require(self, text: str) -> None:
        if not self._takes(text):
            self._refuse(f"'{text}'")

    def _refuse(self, expected: str) -> NoReturn:
        actual = f"'{self._token.text}'" if self._token.text else "nothing more"
        raise _wrong(self._text, self._token.at, f"expected {expected}, found {actual}")

    # --- grammar ---

    def _expression(self) -> Test:
        first = self._term()
        operator = self._token.text if self._token.kind == "word" else ""
        if operator not in ("AND", "OR"):
            return first
        tests = [first]
        while self._takes(operator):
            tests.append(self._term())
        if self._token.kind == "word" and self._token.text in ("AND", "OR"):
            raise _wrong(self._text, self._token.at, "AND and OR are not mixed without parentheses")
        if operator == "AND":
            return lambda attributes: all(test(attributes) for test in tests)
        return lambda attributes: any(test(attributes) for test in tests)

    def _term(self) -> Test:
        if self._takes("NOT") or self._takes("-"):
            negated = self._term()
            return lambda attributes: not negated(attributes)
        if self._takes("("):
            inner = self._expression()
            self._require(")")
            return inner
        if self._takes("hasPrefix"):
            return self._has_prefix()
        return self._comparison()

    def _has_prefix(self) -> Test:
        self._require("(")
        self._attributes()
        self._require(".")
        key = self._key()
        self._require(",")
        prefix = self._string()
        self._require(")")
        return lambda attributes: key in attributes and attributes[key].startswith(prefix)

    def _comparison(self) -> Test:
        self._attributes()
        if self._takes(":"):
            key = self._key()
            return lambda attributes: key in attributes
        self._require(".")
        key = self._key()
        if self._takes("!="):
            other = self._string()
            return lambda attributes: attributes.get(key) != other
        if not self._takes("="):
            self._refuse("= or !=")
        value = self._string()
        return lambda attributes: attributes.get(key) == value

    def _attributes(self) -> None:
        if not self._takes("attributes"):
            self._refuse("attributes, hasPrefix, NOT or '('")

    def _key(self) -> str:
        if self._token.kind == "string":
            return self._string()
        if self._token.kind != "word":
            self._refuse("the name of an attribute")
        self._next += 1
        return self._tokens[self._next - 1].text

    def _string(self) -> str:
        token = self._token
        if token.kind != "string":
            self._refuse('a string such as "value"')
        self._next += 1
        return _ESCAPE.sub(lambda escape: self._unescaped(escape, token.at), token.text[1:-1])

    def _unescaped(self, escape: re.Match[str], at: int) -> str:
        *numbers, letter = escape.groups()
        for digits, base in zip(numbers, (16, 16, 16, 8), strict=True):
            if digits is not None:
                code = int(digits, base)
                if code > 0x10FFFF or 0xD800 <= code < 0xE000:
                    raise _wrong(self._text, at, f"{escape[0]} is no character")
                return chr(code)
        if letter not in _LETTERS:
            raise _wrong(self._text, at, f"{escape[0]} means nothing in a string")
        return _LETTERS[letter]


def _wrong(text: str, at: int, problem: str) -> ConfigurationError:
    return ConfigurationError(f"the filter is wrong here: {problem}\n  {text}\n  {' ' * at}^")


EVERYTHING = Filter("")
"""No filter."""
