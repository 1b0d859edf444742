"""From what a model says to an answer that fits: found in the text, validated, and asked for again
if need be.

Models wrap JSON in fences and prose, invent fields, run into limits. An answer that can't be used
is sent back at most twice with what is wrong about it; one that was cut off by the limit is asked
for again with twice the room. Then:

- `TooLong` if it is still cut off: asking the same again can't help, asking about less can.
- `Malformed`, a `Transient`, otherwise: models answer differently another time, and the engine
  bounds how often.
- `Declined` at once if the model refuses: it was understood, and the answer is no.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, NoReturn, TypeVar

from holdfast.adapters.llm.answer_types import AnswerType, Mismatch
from holdfast.adapters.llm.protocol import Prompt, Reply, encode
from holdfast.errors import HoldfastError
from holdfast.ports.language_model import Declined, Malformed, TooLong

T = TypeVar("T")

REPAIRS = 2
STARTS = 20
"""Places in a text at which JSON is looked for: hostile text is full of braces."""
CHARACTERS_PER_TOKEN = 64
"""An answer with more than this was not made by a model within its limit."""
SHOWN_CHARACTERS = 4000
"""How much of an answer is sent back with what is wrong about it."""
FENCE = re.compile(r"```[A-Za-z]*\s*\n(.*?)```", re.DOTALL)


class Unusable(Exception):
    """What is wrong with an answer, in words for the model."""


async def ask(
    send: Callable[[Prompt], Awaitable[Reply]],
    prompt: Prompt,
    answer: AnswerType[T],
    check: Callable[[T], str | None] | None,
) -> T:
    """Send a prompt until a usable answer comes back."""
    repairs = 0
    while True:
        reply = await send(prompt)
        try:
            return read(reply, prompt, answer, check)
        except Unusable as fault:
            if repairs == REPAIRS:
                raise _give_up(prompt, reply, str(fault)) from None
            repairs += 1
            prompt = _once_more(prompt, reply, str(fault))


def read(
    reply: Reply, prompt: Prompt, answer: AnswerType[T], check: Callable[[T], str | None] | None
) -> T:
    """The answer in a reply. Raises `Unusable`, or `Declined`."""
    if reply.finish == "declined":
        raise Declined(
            f"the model declined to answer {prompt.task!r}: "
            f"{reply.text[:300] or 'it gave no reason'}"
        )
    if reply.finish == "length":
        raise Unusable("It was cut off.")
    if len(reply.text) > CHARACTERS_PER_TOKEN * prompt.max_output:
        raise Unusable("It is far longer than allowed.")
    try:
        value = answer.read(find_json(reply.text))
    except Mismatch as fault:
        raise Unusable(str(fault)) from None
    fault = check(value) if check is not None else None
    if fault:
        raise Unusable(fault)
    return value


def find_json(text: str) -> Any:
    """The one JSON object in a text that may hold fences and prose. Raises `Unusable`."""
    text = text.strip().lstrip("\ufeff")
    if not text:
        raise Unusable("It is empty.")
    value = _only_value(text)
    if "\\ud" in text.lower():
        _refuse_half_pairs(value)
    return value


def _only_value(text: str) -> Any:
    try:
        return _decoder.decode(text)
    except (ValueError, RecursionError) as error:
        objects = _objects(text)
        if len(objects) == 1:
            return objects[0]
        if objects:
            raise Unusable(
                f"It holds {len(objects)} JSON objects; exactly one is wanted."
            ) from None
        raise Unusable(f"It is not valid JSON: {str(error)[:200]}.") from None


def _objects(text: str) -> list[Any]:
    """The JSON objects in a text, from its fences if it has any."""
    objects: list[Any] = []
    for part in FENCE.findall(text) or [text]:
        start = part.find("{")
        for _ in range(STARTS):
            if start < 0:
                break
            try:
                value, end = _decoder.raw_decode(part, start)
                objects.append(value)
            except (ValueError, RecursionError):
                end = start + 1
            start = part.find("{", end)
    return objects


def _refuse_half_pairs(value: Any) -> None:
    """Half a surrogate pair can be written in JSON, but neither stored nor sent."""
    try:
        encode(value)
    except UnicodeEncodeError:
        raise Unusable("It holds half of a surrogate pair, which is no character.") from None


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is no number that can be used")
    return number


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


_decoder = json.JSONDecoder(parse_float=_finite, parse_constant=_no_constant)


def _once_more(prompt: Prompt, reply: Reply, fault: str) -> Prompt:
    if reply.finish == "length":
        return replace(prompt, max_output=2 * prompt.max_output)
    answer = reply.text[:SHOWN_CHARACTERS].strip() or "(nothing)"
    correction = (
        f"Your answer can't be used. {fault} Answer the question again, with one JSON object that "
        "fits the schema."
    )
    return replace(prompt, turns=(prompt.turns[0], answer, correction))


def _give_up(prompt: Prompt, reply: Reply, fault: str) -> HoldfastError:
    if reply.finish == "length":
        return TooLong(
            f"the answer to {prompt.task!r} does not fit into {prompt.max_output} tokens: ask "
            "about less at once"
        )
    return Malformed(
        f"the answer to {prompt.task!r} could not be used, after {REPAIRS} repairs: {fault}"
    )
