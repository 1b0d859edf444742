"""One model over HTTP: questions out, validated answers back, without a cache.

Who retries: the engine. The client itself only does what the engine can't do well: it sends an
answer back that can't be used (`repair`), says a request differently that a server does not
understand (`protocol.Dialect`), and sends a call again that was rate-limited, after the cool-down
that all callers share (`pacing`): otherwise hundreds of items would use up their attempts in one
short outage. All three are bounded.

What is counted with `ctx.usage`: every call that the vendor worked on, with the tokens it reports,
or an estimate when it reports none or the answer got lost; calls without any answer count as calls
of nothing. Calls that were rate-limited or not understood are not counted: nothing was done."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, TypeVar

import msgspec

from holdfast.adapters.llm import repair
from holdfast.adapters.llm.address import ModelAddress
from holdfast.adapters.llm.answer_types import answer_type
from holdfast.adapters.llm.anthropic import Anthropic
from holdfast.adapters.llm.api_key import ApiKey, read_key
from holdfast.adapters.llm.budget import BudgetLedger
from holdfast.adapters.llm.error_responses import error_for
from holdfast.adapters.llm.errors import BadRequest, RateLimited
from holdfast.adapters.llm.google import Google
from holdfast.adapters.llm.openai import OpenAI
from holdfast.adapters.llm.pacing import Pacer, Permit
from holdfast.adapters.llm.prices import Prices
from holdfast.adapters.llm.protocol import Prompt, Reply, VendorProtocol, VendorRequest, at
from holdfast.adapters.llm.schema import schema_of
from holdfast.adapters.llm.transport import CutShort, HttpResponse, HttpTransport, Transport
from holdfast.errors import ConfigurationError, Fix, Transient
from holdfast.model.tokens import estimate_call, estimate_tokens
from holdfast.ports.allowance import Allowance
from holdfast.ports.context import Context
from holdfast.ports.language_model import Question
from holdfast.ports.tracing import Tracer

T = TypeVar("T")

RESENDS = 8
"""How often a call is sent again that was rate-limited, each time after a cool-down."""
JOB_KEYS = ("llm_api_key", "api_key")
"""What a message may call the key of its job, beside the vendor's own name for it."""
Counted = Callable[[str, str, str, tuple[int, int], float | None], None]
"""Called after each call with tenant, pipeline, model, tokens of question and answer, and cost."""
_PROVIDERS = {"google": "gcp.gemini"}
"""What OpenTelemetry calls vendors, where it is another name."""
TASK = re.compile(r"[a-z_]{1,40}")


class ModelClient:
    """One model at one address. Calls may overlap, hundreds of them: they are paced together."""

    def __init__(
        self,
        address: ModelAddress,
        *,
        environment: Mapping[str, str] = os.environ,
        transport: Transport | None = None,
        now: Callable[[], float] = time.time,
        shared: Allowance | None = None,
        counted: Counted | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        self._counted = counted
        self._tracer = tracer

        self.address = address
        self.name = address.name
        self._read_key = lambda: read_key(address, environment)
        self._protocol = _protocol(address)
        self._prices = Prices(address)
        self._pacer = Pacer(
            address.in_flight, address.requests_per_minute, address.tokens_per_minute, shared
        )
        self._ledger = BudgetLedger()
        self._transport = transport
        self._now = now

    @cached_property
    def _key(self) -> ApiKey:
        """Read when it is needed: prices can be asked for without one."""
        return self._read_key()

    async def ask(
        self,
        question: Question,
        answer: type[T],
        ctx: Context,
        *,
        budget: float | None = None,
        check: Callable[[T], str | None] | None = None,
    ) -> T:
        """The validated answer. `check` may say what is wrong with an answer that fits the schema.

        Raises `Transient` (and `Malformed`), `Permanent` (and `Declined`, `TooLong`),
        `ConfigurationError`, or `Pause` when the run's budget, in US dollars, does not allow the
        call."""
        if not TASK.fullmatch(question.task):
            raise Fix(f"{question.task!r} can't name a task: use at most 40 of a-z and _")

        async def send(prompt: Prompt) -> Reply:
            return await self._send(prompt, ctx, budget)

        prompt = Prompt(
            question.task,
            _sendable(question.system),
            (_sendable(question.text),),
            schema_of(answer, question.task),
            question.max_output,
        )
        return await repair.ask(send, prompt, answer_type(answer), check)

    def price(self, input_tokens: int, output_tokens: int) -> float | None:
        """US dollars; None if nobody knows."""
        return self._prices.of(input_tokens, output_tokens)

    def input_tokens(self, question: Question, answer: type[Any]) -> int:
        """About how many tokens a question takes with the schema of its answer."""
        schema = schema_of(answer, question.task)
        return _input_tokens((question.system, question.text), schema)

    def check_key(self) -> None:
        """Raise ConfigurationError if there is none and one is needed."""
        _ = self._key

    async def aclose(self) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.aclose()

    # --- one call ---------------------------------------------------------------------------------

    async def _send(self, prompt: Prompt, ctx: Context, budget: float | None) -> Reply:
        expected = _input_tokens((prompt.system, *prompt.turns), prompt.schema)
        most = None if budget is None else self.price(expected, prompt.max_output)
        async with self._ledger.reserved(ctx, budget, most, self.name):
            return await self._deliver(prompt, expected, ctx)

    async def _deliver(self, prompt: Prompt, expected: int, ctx: Context) -> Reply:
        position = self._pacer.position()
        resends = 0
        key = await self._key_for(ctx)
        while True:
            request = self._protocol.request(prompt, key)
            try:
                async with self._pacer.turn(position, expected + prompt.max_output) as permit:
                    return await self._traced(request, key, permit, expected, ctx)
            except RateLimited:
                resends += 1
                if resends > RESENDS:
                    raise
            except BadRequest as error:
                if not self._protocol.dialect.learn(request.shape, error.objection):
                    raise

    async def _key_for(self, ctx: Context) -> ApiKey:
        """The key that came with the run's message, otherwise the configured one. The run pauses if
        its message brought a key that this process does not know, and none is configured."""
        own = await ctx.secret(*self.address.key_variables, *JOB_KEYS, configured="")
        if own:
            return ApiKey(own, "the key of its message")
        try:
            return self._key
        except ConfigurationError:
            await ctx.secret(*self.address.key_variables)
            raise

    async def _traced(
        self, request: VendorRequest, key: ApiKey, permit: Permit, expected: int, ctx: Context
    ) -> Reply:
        """One call with a span around it. What was asked and answered stays out of it."""
        if self._tracer is None:
            return await self._exchange(request, key, permit, expected, ctx)
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": _PROVIDERS.get(self.address.vendor, self.address.vendor),
            "gen_ai.request.model": self.address.model,
            "holdfast.run.id": ctx.run_id,
            "holdfast.step": ctx.step_name,
        }
        name = f"chat {self.address.model}"
        with self._tracer.span(name, "client", attributes) as span:
            reply = await self._exchange(request, key, permit, expected, ctx)
            tokens = (reply.input_tokens or expected, reply.output_tokens or 0)
            span.set(
                {
                    "gen_ai.usage.input_tokens": tokens[0],
                    "gen_ai.usage.output_tokens": tokens[1],
                    "holdfast.cost.usd": self._prices.of_reply(reply, *tokens),
                }
            )
            return reply

    async def _exchange(
        self, request: VendorRequest, key: ApiKey, permit: Permit, expected: int, ctx: Context
    ) -> Reply:
        try:
            answer = await self._post(request, key)
        except RateLimited as error:
            permit.rate_limited(error.retry_after)
            raise
        except CutShort as error:
            self._count(ctx, Reply("", expected, error.received // 4 + 1), expected)
            raise
        except Transient:
            self._count(ctx, Reply("", 0, 0), expected)
            raise
        try:
            reply = self._protocol.reply(_decoded(answer))
        except Transient:
            self._count(ctx, Reply(answer.body.decode(errors="replace"), None, None), expected)
            raise
        permit.succeeded(self._count(ctx, reply, expected))
        return reply

    async def _post(self, request: VendorRequest, key: ApiKey) -> HttpResponse:
        """An answer with status 200. Raises what any other status means."""
        if self._transport is None:
            self._transport = HttpTransport(proxies=not self.address.is_local)
        headers = {"content-type": "application/json", "user-agent": "holdfast", **request.headers}
        url = self.address.base_url + request.path
        answer = await self._transport.post(url, headers, request.body, self.address.timeout)
        status = answer.status if answer.status != 200 else _hidden_error(answer)
        if status == 200:
            return answer
        raise error_for(
            HttpResponse(status, answer.headers, answer.body), self.address, key, self._now()
        )

    def _count(self, ctx: Context, reply: Reply, expected: int) -> int:
        """Put a call on the run's bill. Returns its tokens."""
        input_tokens = reply.input_tokens if reply.input_tokens is not None else expected
        output_tokens = (
            reply.output_tokens if reply.output_tokens is not None else estimate_tokens(reply.text)
        )
        cost = self._prices.of_reply(reply, input_tokens, output_tokens)
        ctx.usage(input_tokens=input_tokens, output_tokens=output_tokens, cost=cost)
        if self._counted is not None:
            self._counted(ctx.tenant, ctx.pipeline, self.name, (input_tokens, output_tokens), cost)
        return input_tokens + output_tokens


def _protocol(address: ModelAddress) -> VendorProtocol:
    if address.vendor == "anthropic":
        return Anthropic(address.model)
    if address.vendor == "google":
        return Google(address.model)
    return OpenAI(address.model, original=address.is_vendors_own)


def _input_tokens(texts: Iterable[str], schema: dict[str, Any]) -> int:
    return estimate_call(*texts, json.dumps(schema))


def _sendable(text: str) -> str:
    """Half a surrogate pair is in no encoding: such characters become question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _decoded(answer: HttpResponse) -> Any:
    try:
        return msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # no protocol has such an answer


def _hidden_error(answer: HttpResponse) -> int:
    """The status inside an answer: some gateways say 200 and put the error into the body."""
    if b'"error"' not in answer.body[:2000]:
        return 200
    data = _decoded(answer)
    error = at(data, "error")
    if (
        not isinstance(error, dict)
        or at(data, "choices")
        or at(data, "candidates")
        or at(data, "content")
    ):
        return 200
    code = error.get("code")
    return code if isinstance(code, int) and 400 <= code < 600 else 502
