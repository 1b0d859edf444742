"""Admission by quota: whether a tenant may submit more, decided before anything is accepted.

What a tenant has used is one record, replaced by comparing versions: the counts are right across
processes. Submissions of one process that arrive while the record is being replaced are decided
together, with the next replacement. If the store can't be asked, nothing is admitted.

The queue's length is counted by the store. Runs that were admitted and are perhaps not stored yet
are added to it; each process notes which of its own have been answered, and looks in the store for
those of others."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import msgspec

from holdfast.engine.tenants import USAGE, TenantDirectory, tenant_key
from holdfast.errors import Forbidden, QuotaExceeded
from holdfast.model.damage import unless_damaged
from holdfast.model.quota import Consumption, Excess, admit, at_time, given_back
from holdfast.model.replies import Stored
from holdfast.model.run import RunState
from holdfast.model.tenant import Quotas, Tenant
from holdfast.ports.records import Record, Records
from holdfast.ports.store import RunFilter, Store

KEPT = 62 * 86_400.0
"""Seconds for which what was used is kept without further use: longer than a month."""
_WORDS = {
    "queued": "runs waiting",
    "per_minute": "runs a minute",
    "per_day": "runs a day",
    "per_month": "runs a month",
}

_decode = msgspec.json.Decoder(Consumption).decode


def consumption(records: Sequence[Record]) -> Consumption:
    """What a tenant has used, by its record, if there is one. One that can't be read begins
    anew."""
    return unless_damaged(_decode, records[0].value) or Consumption() if records else Consumption()


class Admission:
    """The quotas of all tenants, as one process holds them."""

    def __init__(self, store: Store, records: Records, tenants: TenantDirectory) -> None:
        self._store = store
        self._records = records
        self._tenants = tenants
        self._used: dict[str, _Usage] = {}

    async def admit(self, tenant: str, runs: Sequence[str]) -> Collection[str]:
        """Count these runs, which are about to be submitted; the answer is those that count. Raises
        QuotaExceeded, and Forbidden for a tenant that is disabled; then nothing is counted."""
        known = await self._tenants.get(tenant)
        if known is None or not runs:
            return ()
        if not known.enabled:
            raise Forbidden(
                f"tenant {tenant!r} is disabled: `holdfast tenants set {tenant} --enable` lets it "
                "submit again"
            )
        if not _has_quotas(known.quotas):
            return ()
        await self._usage_of(tenant).admit(known, runs)
        return frozenset(runs)

    def answered(self, tenant: str, run: str, *, is_new: bool) -> None:
        """The store has answered for a run that was counted. One that is not new counts no more."""
        self._usage_of(tenant).note(run, is_new)

    def _usage_of(self, tenant: str) -> _Usage:
        if tenant not in self._used:
            self._used[tenant] = _Usage(self._store, self._records)
        return self._used[tenant]


@dataclass(slots=True)
class _Request:
    tenant: Tenant
    runs: Sequence[str]
    answer: asyncio.Future[None]


class _Usage:
    """The record of one tenant."""

    def __init__(self, store: Store, records: Records) -> None:
        self._store = store
        self._records = records
        self._waiting: list[_Request] = []
        self._decider: asyncio.Task[None] | None = None
        self._answered: set[str] = set()
        """Runs whose submission was answered since the record was replaced."""
        self._existing = 0
        """How many of them were not new."""

    def note(self, run: str, is_new: bool) -> None:
        self._answered.add(run)
        self._existing += not is_new

    async def admit(self, tenant: Tenant, runs: Sequence[str]) -> None:
        request = _Request(tenant, runs, asyncio.get_running_loop().create_future())
        self._waiting.append(request)
        if self._decider is None or self._decider.done():
            self._decider = asyncio.create_task(self._decide_all())
        await request.answer

    async def _decide_all(self) -> None:
        while self._waiting:
            requests, self._waiting = self._waiting, []
            try:
                answers = await self._decide(requests)
            except Exception as error:
                answers = [error] * len(requests)
            for request, answer in zip(requests, answers, strict=True):
                _resolve(request.answer, answer)

    async def _decide(self, requests: list[_Request]) -> list[Exception | None]:
        """Each request's answer: None, or why it is refused."""
        name, quotas = requests[-1].tenant.name, requests[-1].tenant.quotas
        key = tenant_key(name, USAGE)
        while True:
            page = await self._records.get(key)
            before = consumption(page.records)
            answered, existing = set(self._answered), self._existing
            used = given_back(at_time(before, page.now), existing)
            used = await self._without_stored(used, answered)
            queued = await self._queued(name, quotas)
            answers: list[Exception | None] = []
            for request in requests:
                after = admit(used, quotas, request.runs, queued, page.now)
                answers.append(
                    _refusal(name, after, request) if isinstance(after, Excess) else None
                )
                used = used if isinstance(after, Excess) else after
            reply = await self._records.put(
                key,
                msgspec.json.encode(used).decode(),
                expected=page.records[0].version if page.records else None,
                ttl=KEPT,
            )
            if isinstance(reply, Stored):
                self._answered -= answered
                self._existing -= existing
                return answers

    async def _without_stored(self, used: Consumption, answered: set[str]) -> Consumption:
        """Without the runs that the store counts by now."""
        unknown = {run: at for run, at in used.under_way.items() if run not in answered}
        stored = {run for run in unknown if await self._store.run(run) is not None}
        under_way = {run: at for run, at in unknown.items() if run not in stored}
        return msgspec.structs.replace(used, under_way=under_way)

    async def _queued(self, tenant: str, quotas: Quotas) -> int:
        if quotas.queued is None:
            return 0
        states = await self._store.count(RunFilter(tenant=tenant, state=RunState.QUEUED))
        return states.get(RunState.QUEUED, 0)


def _has_quotas(quotas: Quotas) -> bool:
    limits = (quotas.per_minute, quotas.queued, quotas.per_day, quotas.per_month)
    return any(limit is not None for limit in limits)


def _refusal(tenant: str, excess: Excess, request: _Request) -> QuotaExceeded:
    count = len(request.runs)
    more = "" if count == 1 else f" and wants {count} more"
    remedy = (
        f"send at most {excess.limit} at once"
        if count > excess.limit
        else f"try again in {excess.retry_after:.0f} s"
    )
    return QuotaExceeded(
        f"tenant {tenant!r} has {excess.used} of {excess.limit} {_WORDS[excess.quota]}{more}: "
        f"nothing was accepted; {remedy}, or raise the quota with `holdfast tenants set`",
        quota=excess.quota,
        limit=excess.limit,
        retry_after=excess.retry_after,
    )


def _resolve(answer: asyncio.Future[None], error: Exception | None) -> None:
    if answer.done():  # nobody waits for it any more
        return
    if error is None:
        answer.set_result(None)
    else:
        answer.set_exception(error)
