"""The vendor behind the doors: from a request to a response, with keys, limits and faults. It knows
no sockets."""

from __future__ import annotations

import asyncio
import hmac
import json
import random
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from holdfast.testing.fakellm.anthropic import AnthropicSpeaker
from holdfast.testing.fakellm.asked import Asked, Brain, Call, Rejected, Response, Said, Speaker
from holdfast.testing.fakellm.distortions import SORRY, distort
from holdfast.testing.fakellm.faults import REFUSALS, Fault, Plan, never
from holdfast.testing.fakellm.google import GoogleSpeaker
from holdfast.testing.fakellm.limits import RateLimit
from holdfast.testing.fakellm.openai import OpenAISpeaker

CACHEABLE = 1024
"""Tokens: shorter prefixes are not cached by the vendors."""
ENDLESS = 12 * 1024 * 1024
JSON = {"content-type": "application/json"}
VENDORS = ("openai", "anthropic", "google")


class Service:
    """Answers like three vendors at once, and remembers every call."""

    def __init__(
        self,
        brain: Brain,
        *,
        key: str | None = None,
        latency: float = 0.0,
        jitter: float = 0.0,
        faults: Plan = never,
        per_second: float | None = None,
        lacks: Collection[str] = (),
        seed: int = 0,
    ) -> None:
        self.brain = brain
        self.faults = faults
        self.calls: list[Call] = []
        self.refused: Counter[int] = Counter()
        self.in_flight = 0
        self.max_in_flight = 0
        self.errors: list[BaseException] = []
        """What the brain raised: a test should look."""
        self._key = key
        self._latency = latency
        self._jitter = jitter
        self._random = random.Random(seed)
        self._limit = RateLimit(per_second) if per_second else None
        self._speakers: tuple[Speaker, ...] = (
            OpenAISpeaker(frozenset(lacks)),
            AnthropicSpeaker(frozenset(lacks)),
            GoogleSpeaker(frozenset(lacks)),
        )
        self._prefixes: set[tuple[str, str]] = set()
        self._kept: dict[str, str] = {}
        """Instructions, each once: thousands of calls share them."""
        self._tries: Counter[tuple[str, str, str]] = Counter()

    def speaker(self, vendor: str) -> Speaker:
        return next(speaker for speaker in self._speakers if speaker.name == vendor)

    def stats(self) -> dict[str, Any]:
        """What `GET /stats` tells."""
        return {
            "calls": len(self.calls),
            "tasks": dict(Counter(call.task for call in self.calls)),
            "faults": dict(Counter(call.fault for call in self.calls if call.fault)),
            "refused": {str(status): count for status, count in self.refused.items()},
            "input_tokens": sum(call.input_tokens for call in self.calls),
            "output_tokens": sum(call.output_tokens for call in self.calls),
            "in_flight": self.in_flight,
            "max_in_flight": self.max_in_flight,
            "errors": [repr(error) for error in self.errors],
        }

    async def respond(self, path: str, headers: Mapping[str, str], body: bytes) -> Response | Fault:
        """A response, or the fault of a connection that gives none (`reset`, `silence`)."""
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        try:
            outcome = await self._respond(path, headers, body)
        finally:
            self.in_flight -= 1
        if isinstance(outcome, Response) and outcome.status != 200:
            self.refused[outcome.status] += 1
        return outcome

    async def _respond(
        self, path: str, headers: Mapping[str, str], body: bytes
    ) -> Response | Fault:
        speaker = next((each for each in self._speakers if each.claims(path)), None)
        if speaker is None:
            return Response(404, {"content-type": "text/html"}, b"<html><h1>Not Found</h1></html>")
        try:
            asked = self._admit(speaker, path, headers, body)
        except Rejected as error:
            return _error(speaker, error.status, str(error), error.param)
        call = self._remember(speaker, asked)
        wait = self._limit.refused(asyncio.get_running_loop().time()) if self._limit else None
        if wait is not None:
            call.status, call.fault = 429, "limit"
            return _error(speaker, 429, "Rate limit reached", retry_after=wait)
        fault = self.faults(call)
        call.fault = fault.kind if fault else ""
        await self._think(fault)
        return self._outcome(speaker, asked, call, fault)

    def _admit(self, speaker: Speaker, path: str, headers: Mapping[str, str], body: bytes) -> Asked:
        if self._key is not None and not hmac.compare_digest(speaker.key(headers), self._key):
            # Vendors repeat the key in what they say: clients must not pass that on.
            raise Rejected(f"Incorrect API key provided: {speaker.key(headers)}.", status=401)
        if not headers.get("content-type", "").startswith("application/json"):
            raise Rejected("the content type is not application/json", status=415)
        try:
            data = json.loads(body)
        except ValueError:
            data = None
        return speaker.read(path, headers, data)

    def _remember(self, speaker: Speaker, asked: Asked) -> Call:
        self._tries[speaker.name, asked.task, asked.text] += 1
        call = Call(
            len(self.calls),
            speaker.name,
            asked.task,
            self._kept.setdefault(asked.system, asked.system),
            asked.text,
            len(asked.turns),
            self._tries[speaker.name, asked.task, asked.text],
        )
        self.calls.append(call)
        return call

    async def _think(self, fault: Fault | None) -> None:
        seconds = self._latency + self._jitter * self._random.random()
        if fault is not None and fault.kind == "slow":
            seconds += fault.seconds or 1.0
        if seconds:
            await asyncio.sleep(seconds)
        if fault is not None and fault.kind == "hang":
            await asyncio.Event().wait()

    # --- what comes out ---------------------------------------------------------------------------

    def _outcome(
        self, speaker: Speaker, asked: Asked, call: Call, fault: Fault | None
    ) -> Response | Fault:
        kind = fault.kind if fault else ""
        if fault is not None and kind in ("reset", "silence"):
            return fault
        if fault is not None and kind in REFUSALS:
            call.status = REFUSALS[kind]
            return _error(speaker, call.status, _excuse(kind, self._key), retry_after=fault.seconds)
        try:
            said = self._said(asked, kind)
        except Exception as error:
            self.errors.append(error)
            call.status = 500
            return _error(speaker, 500, f"the brain failed: {error!r}")
        call.status, call.input_tokens, call.output_tokens = (
            200,
            said.input_tokens,
            said.output_tokens,
        )
        return _body(speaker, asked, said, kind)

    def _said(self, asked: Asked, kind: str) -> Said:
        value = self.brain.answer(asked.task, asked.system, asked.text, asked.schema)
        text = distort(kind, value)
        used = sum(map(_tokens, (asked.system, *asked.turns, json.dumps(asked.schema))))
        cached, written = self._cache(asked)
        finish = {"refusal": "refusal", "truncated": "length"}.get(kind, "stop")
        if finish == "stop" and kind not in ("many", "nested") and _tokens(text) > asked.max_output:
            text, finish = text[: 4 * asked.max_output], "length"
        return Said(text, finish, used, _tokens(text), cached, written)

    def _cache(self, asked: Asked) -> tuple[int, int]:
        """Tokens read from and written to the cache of prefixes."""
        size = _tokens(asked.system)
        if size < CACHEABLE:
            return 0, 0
        place = (asked.model, asked.system)
        if place in self._prefixes:
            return size, 0
        self._prefixes.add(place)
        return 0, size


def _body(speaker: Speaker, asked: Asked, said: Said, kind: str) -> Response:
    """The response that carries an answer, whole or not."""
    body = json.dumps(speaker.reply(asked, said)).encode()
    match kind:
        case "cut":
            return Response(200, dict(JSON), body, cut=len(body) // 2)
        case "html":
            return Response(
                200, {"content-type": "text/html"}, b"<html><body>Please log in</body></html>"
            )
        case "not_json":
            return Response(200, dict(JSON), body[:-7])
        case "wrong_type":
            return Response(200, {"content-type": "text/plain"}, body)
        case "endless":
            return Response(200, dict(JSON), b" " * ENDLESS + body)
        case "no_choices":
            return Response(200, dict(JSON), b'{"object": "nothing"}')
        case "no_usage":
            data = {
                name: each
                for name, each in json.loads(body).items()
                if not name.startswith("usage")
            }
            return Response(200, dict(JSON), json.dumps(data).encode())
        case "hidden_error":
            return Response(
                200, dict(JSON), b'{"error": {"code": 429, "message": "the provider is busy"}}'
            )
    return Response(200, dict(JSON), body)


def _error(
    speaker: Speaker,
    status: int,
    message: str,
    param: str = "",
    *,
    retry_after: float | None = None,
) -> Response:
    headers, data = speaker.error(status, message, param, retry_after)
    return Response(status, {**JSON, **headers}, json.dumps(data).encode())


def _excuse(kind: str, key: str | None) -> str:
    if kind in ("unauthorised", "forbidden"):
        return f"The key {key} may not do this."
    return SORRY if kind != "no_credit" else "Your credit balance is too low."


def _tokens(text: str) -> int:
    return len(text) // 4 + 1
