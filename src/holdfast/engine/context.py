"""What a running step is given as `ctx`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from holdfast.engine.attempt import Attempt
from holdfast.engine.incoming import SECRETS
from holdfast.engine.item_call import ItemCall, ItemFunction
from holdfast.engine.item_map import ItemMap, MapOptions
from holdfast.engine.job_secrets import pause_for
from holdfast.engine.runlog import RunLog
from holdfast.errors import ConfigurationError, Fix, Permanent
from holdfast.model.checkpoint import digest
from holdfast.model.keys import INNER, SEPARATOR, ItemKey
from holdfast.model.limits import amount, is_text, whole
from holdfast.model.names import path_part
from holdfast.model.run import StepRecord
from holdfast.model.step import Step
from holdfast.model.usage import Usage

T = TypeVar("T")

PLAIN_KEY = re.compile(r"[A-Za-z0-9._:/+=@-]{1,100}")
STEP_ITSELF = ItemKey()
ARTIFACT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}")


class StepContext:
    """The context of a step, or of one of its items (`key`)."""

    __slots__ = (
        "_attempt",
        "_keys",
        "_log",
        "_parent",
        "_record",
        "_step",
        "item",
        "item_usage",
        "over",
    )

    def __init__(
        self, attempt: Attempt, step: Step, record: StepRecord, item: ItemKey = STEP_ITSELF
    ) -> None:
        self.item = item
        self.over = False
        self.item_usage: Usage | None = None
        self._attempt = attempt
        self._step = step
        self._record = record
        self._keys: set[str] = set()
        self._parent: StepContext | None = None
        self._log: RunLog | None = None

    @property
    def key(self) -> str:
        return self.item.original

    @property
    def run_id(self) -> str:
        return self._attempt.claimed.run

    @property
    def tenant(self) -> str:
        return self._attempt.claimed.tenant

    @property
    def pipeline(self) -> str:
        return self._attempt.claimed.pipeline

    @property
    def step_name(self) -> str:
        return self._step.name

    @property
    def attempt(self) -> int:
        return self._attempt.claimed.attempt

    @property
    def epoch(self) -> int:
        return self._attempt.gate.epoch

    @property
    def idempotency_key(self) -> str:
        step_key = f"{self.run_id}:{self._step.name}"
        if not self.key:
            return step_key
        # It is usually sent in a header, so values that a header can't carry are hashed.
        return f"{step_key}:{self.key if PLAIN_KEY.fullmatch(self.key) else digest(self.key)}"

    @property
    def cancelled(self) -> bool:
        if self._parent is not None and self._parent.cancelled:
            return True
        return self.over or self._attempt.over or not self._attempt.gate.lease.trusted

    @property
    def log(self) -> RunLog:
        if self._log is None:
            self._log = RunLog(self._attempt.gate, self._step.name, self.item.stored)
        return self._log

    def progress(self, done: int, total: int | None = None) -> None:
        self._record.done = whole("ctx.progress: done", done)
        self._record.total = None if total is None else whole("ctx.progress: total", total)

    def usage(
        self,
        *,
        input_tokens: int = 0,
        output_tokens: int = 0,
        cost: float | None = None,
        calls: int = 1,
    ) -> None:
        counted = (
            whole("ctx.usage: input_tokens", input_tokens),
            whole("ctx.usage: output_tokens", output_tokens),
            None if cost is None else amount("ctx.usage: cost", cost),
            whole("ctx.usage: calls", calls),
        )
        self._record.usage.count(*counted)
        if self.item_usage is not None:
            self.item_usage.count(*counted)
        if cost:
            self._attempt.save_spending()

    async def map(self, fn: Callable[..., Any], items: Any, **options: Any) -> list[Any]:
        chosen = MapOptions(**options)
        mapped = ItemMap(self._attempt, self, self._step, self._record, fn, chosen)
        return await mapped.run(items)

    async def step(self, name: str, fn: Callable[..., Any], *args: Any, key: object = None) -> Any:
        label = name if key is None else f"{name}{SEPARATOR}{key}"
        if label.count(SEPARATOR) != (key is not None) or not is_text(label):
            raise Fix(
                f"ctx.step({name!r:.100}, key={key!r:.100}): both must be text that can be stored, "
                "without the control character U+001F"
            )
        item_key = self.item.inner(f"{INNER}{label}")
        self.claim_key(item_key.stored)
        call = self.item_call(ItemFunction(fn), item_key, args, self._step.max_attempts)
        return (await call.run()).value

    async def artifact(self, name: str, data: bytes) -> str:
        if not ARTIFACT_NAME.fullmatch(name):
            raise Fix(
                f"artifact name {name!r} is not usable: letters, digits, '.', '-' and '_', at most "
                "101"
            )
        self._attempt.gate.lease.check()
        folder = self._attempt.folder(self._step.name)
        return await self._attempt.runtime.payloads.put(folder, name, data)

    async def read(self, where: str) -> bytes:
        if not where.startswith(f"{path_part(self.tenant)}/") or ".." in where:
            raise Fix(f"{where!r} does not belong to tenant {self.tenant!r}")
        data = await self._attempt.runtime.payloads.get(where)
        if data is None:
            raise Permanent(f"{where!r} is not in the blob store (any more)")
        return data

    async def secret(self, *names: str, configured: str | None = None) -> str | None:
        runtime, run_id = self._attempt.runtime, self.run_id
        value = runtime.job_secrets.get(run_id, names) or configured
        if value is not None:  # also an empty one: then none is needed
            return value
        run = await runtime.store.run(run_id)
        if run is not None and (secret_names := run.attributes.get(SECRETS)):
            raise pause_for(run, secret_names)
        return None

    @property
    def steps(self) -> dict[str, StepRecord]:
        return {**self._attempt.journal.step_records(), self._step.name: self._record}

    @property
    def spent(self) -> Usage:
        return self._attempt.journal.spent

    def use(self, port: type[T]) -> T:
        provided = self._attempt.runtime.provided
        if port not in provided:
            raise ConfigurationError(
                f"step {self._step.name!r} uses {port.__name__}, and this app provides none: "
                f"Holdfast(…, provide={{{port.__name__}: …}})"
            )
        return provided[port]

    def claim_key(self, key: str) -> None:
        """Each name or key is used once per attempt: two results under one name would be one too
        few."""
        if key in self._keys:
            raise Fix(
                f"step {self._step.name!r} used the key {key!r} twice: give each item or inner "
                "step a key of its own"
            )
        self._keys.add(key)

    def item_call(
        self, function: ItemFunction, key: ItemKey, args: tuple[Any, ...], max_attempts: int
    ) -> ItemCall:
        """A durable call inside this step or item."""
        return ItemCall(
            self._attempt, self, self._step, self._record, function, key, args, max_attempts
        )

    def for_item(self, item: ItemKey) -> StepContext:
        context = StepContext(self._attempt, self._step, self._record, item)
        context.item_usage = Usage()
        context._parent = self
        return context
