"""The vendor's service: turns a request into a response, with keys, limits and faults. It has no
sockets."""

from __future__ import annotations

import asyncio
import hmac
import json
import random
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from holdfast.testing.fakellm.anthropic import AnthropicProtocol
from holdfast.testing.fakellm.distortions import SORRY, distort
from holdfast.testing.fakellm.faults import REFUSALS, Fault, Plan, never
from holdfast.testing.fakellm.google import GoogleProtocol
from holdfast.testing.fakellm.limits import RateLimit
from holdfast.testing.fakellm.openai import OpenAIProtocol
from holdfast.testing.fakellm.protocol import (
    Answer,
    Brain,
    Call,
    ReceivedQuestion,
    RequestRejected,
    Response,
    VendorSide,
)

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
        """Exceptions that the brain raised, for tests to check."""
        self._key = key
        self._latency = latency
        self._jitter = jitter
        self._random = random.Random(seed)
        self._limit = RateLimit(per_second) if per_second else None
        self._protocols: tuple[VendorSide, ...] = (
            OpenAIProtocol(frozenset(lacks)),
            AnthropicProtocol(frozenset(lacks)),
            GoogleProtocol(frozenset(lacks)),
        )
        self._prefixes: set[tuple[str, str]] = set()
        self._answers: dict[str, str] = {}
        """Instructions, each once: thousands of calls share them."""
        self._tries: Counter[tuple[str, str, str]] = Counter()

    def protocol(self, vendor: str) -> VendorSide:
        return next(protocol for protocol in self._protocols if protocol.name == vendor)

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
        protocol = next(
            (candidate for candidate in self._protocols if candidate.claims(path)), None
        )
        if protocol is None:
            return Response(404, {"content-type": "text/html"}, b"<html><h1>Not Found</h1></html>")
        try:
            question = self._admit(protocol, path, headers, body)
        except RequestRejected as error:
            return _error(protocol, error.status, str(error), error.param)
        call = self._remember(protocol, question)
        wait = self._limit.refused(asyncio.get_running_loop().time()) if self._limit else None
        if wait is not None:
            call.status, call.fault = 429, "limit"
            return _error(protocol, 429, "Rate limit reached", retry_after=wait)
        fault = self.faults(call)
        call.fault = fault.kind if fault else ""
        await self._delay(fault)
        return self._outcome(protocol, question, call, fault)

    def _admit(
        self, protocol: VendorSide, path: str, headers: Mapping[str, str], body: bytes
    ) -> ReceivedQuestion:
        if self._key is not None and not hmac.compare_digest(protocol.key(headers), self._key):
            # Vendors repeat the key in their messages: clients must not pass that on.
            raise RequestRejected(
                f"Incorrect API key provided: {protocol.key(headers)}.", status=401
            )
        if not headers.get("content-type", "").startswith("application/json"):
            raise RequestRejected("the content type is not application/json", status=415)
        try:
            data = json.loads(body)
        except ValueError:
            data = None
        return protocol.read(path, headers, data)

    def _remember(self, protocol: VendorSide, question: ReceivedQuestion) -> Call:
        self._tries[protocol.name, question.task, question.text] += 1
        call = Call(
            len(self.calls),
            protocol.name,
            question.task,
            self._answers.setdefault(question.system, question.system),
            question.text,
            len(question.turns),
            self._tries[protocol.name, question.task, question.text],
        )
        self.calls.append(call)
        return call

    async def _delay(self, fault: Fault | None) -> None:
        seconds = self._latency + self._jitter * self._random.random()
        if fault is not None and fault.kind == "slow":
            seconds += fault.seconds or 1.0
        if seconds:
            await asyncio.sleep(seconds)
        if fault is not None and fault.kind == "hang":
            await asyncio.Event().wait()

    # --- what comes out ---------------------------------------------------------------------------

    def _outcome(
        self, protocol: VendorSide, question: ReceivedQuestion, call: Call, fault: Fault | None
    ) -> Response | Fault:
        kind = fault.kind if fault else ""
        if fault is not None and kind in ("reset", "silence"):
            return fault
        if fault is not None and kind in REFUSALS:
            call.status = REFUSALS[kind]
            return _error(
                protocol, call.status, _excuse(kind, self._key), retry_after=fault.seconds
            )
        try:
            answer = self._answer(question, kind)
        except Exception as error:
            self.errors.append(error)
            call.status = 500
            return _error(protocol, 500, f"the brain failed: {error!r}")
        call.status, call.input_tokens, call.output_tokens = (
            200,
            answer.input_tokens,
            answer.output_tokens,
        )
        return _body(protocol, question, answer, kind)

    def _answer(self, question: ReceivedQuestion, kind: str) -> Answer:
        value = self.brain.answer(question.task, question.system, question.text, question.schema)
        text = distort(kind, value)
        input_tokens = sum(
            map(_tokens, (question.system, *question.turns, json.dumps(question.schema)))
        )
        cached, written = self._cache(question)
        finish = {"refusal": "refusal", "truncated": "length"}.get(kind, "stop")
        if (
            finish == "stop"
            and kind not in ("many", "nested")
            and _tokens(text) > question.max_output
        ):
            text, finish = text[: 4 * question.max_output], "length"
        return Answer(text, finish, input_tokens, _tokens(text), cached, written)

    def _cache(self, question: ReceivedQuestion) -> tuple[int, int]:
        """Tokens read from and written to the cache of prefixes."""
        size = _tokens(question.system)
        if size < CACHEABLE:
            return 0, 0
        prefix = (question.model, question.system)
        if prefix in self._prefixes:
            return size, 0
        self._prefixes.add(prefix)
        return 0, size


def _body(protocol: VendorSide, question: ReceivedQuestion, answer: Answer, kind: str) -> Response:
    """The response that carries an answer, whole or not."""
    body = json.dumps(protocol.reply(question, answer)).encode()
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
                name: value
                for name, value in json.loads(body).items()
                if not name.startswith("usage")
            }
            return Response(200, dict(JSON), json.dumps(data).encode())
        case "hidden_error":
            return Response(
                200, dict(JSON), b'{"error": {"code": 429, "message": "the provider is busy"}}'
            )
    return Response(200, dict(JSON), body)


def _error(
    protocol: VendorSide,
    status: int,
    message: str,
    param: str = "",
    *,
    retry_after: float | None = None,
) -> Response:
    headers, data = protocol.error(status, message, param, retry_after)
    return Response(status, {**JSON, **headers}, json.dumps(data).encode())


def _excuse(kind: str, key: str | None) -> str:
    if kind in ("unauthorised", "forbidden"):
        return f"The key {key} may not do this."
    return SORRY if kind != "no_credit" else "Your credit balance is too low."


def _tokens(text: str) -> int:
    return len(text) // 4 + 1
