"""A record that can't be read costs what it said, and stops nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from holdfast import Holdfast, Lane, Pipeline
from holdfast.adapters.memory.store import MemoryStore
from holdfast.adapters.records import StoreRecords
from holdfast.engine import leader_history, lease_losses
from holdfast.engine.shared_rates import SharedRate
from holdfast.engine.tenants import USAGE, tenant_key
from holdfast.engine.unmatched import known_filters
from holdfast.engine.webhook_records import DELIVERIES, ENDPOINTS, RETRIES, WebhookRecords
from holdfast.errors import Damaged
from holdfast.model.filters import Filter
from holdfast.model.lease_losses import Blocked, losses_in, record_key
from holdfast.model.tenant import Quotas
from holdfast.model.webhook import Delivery, Endpoint
from holdfast.ports.records import Records
from holdfast.services import audit
from holdfast.testing import TestEngine
from holdfast.testing.world import at_once

BROKEN = '{"half'


def play(story: Callable[[Records], Coroutine[Any, Any, None]]) -> None:
    at_once(story(StoreRecords(MemoryStore())))


def test_a_lane_is_led_although_its_history_is_damaged() -> None:
    pipeline: Pipeline[int] = Pipeline("p", input=int, lane=Lane("line", "fifo"))

    @pipeline.step
    async def double(input: int) -> int:
        return 2 * input

    engine = TestEngine(pipeline)
    records = StoreRecords(engine.store)
    at_once(records.put(f"{leader_history.PREFIX}line", BROKEN))
    run = engine.submit(pipeline, 2)
    engine.drain()
    assert engine.result(run) == 4
    [leader] = at_once(leader_history.read(records, "line"))
    assert leader.term == 1
    engine.close()


def test_a_worker_notes_that_it_was_blocked_over_a_damaged_note() -> None:
    async def story(records: Records) -> None:
        await records.put(record_key("r1"), BROKEN)
        await lease_losses.note(records, "r1", Blocked(34.0))
        noted = losses_in((await records.get(record_key("r1"))).records[0].value)
        assert noted is not None
        assert noted.count == 1

    play(story)


def test_a_rate_begins_anew() -> None:
    async def story() -> None:
        records = StoreRecords(MemoryStore())
        rate = SharedRate(records, "vendor", 60, None)
        await records.put(rate._key, BROKEN)
        await rate.take(1)

    asyncio.run(story())


def test_one_damaged_webhook_stops_no_other() -> None:
    async def story(records: Records) -> None:
        webhooks = WebhookRecords(records)
        await webhooks.add(Endpoint("sound", "https://example.org/", 0.0))
        due = Delivery("sound", "r1:1", "run.queued", "{}", due=0.0)
        await webhooks.save(due)
        for key in (f"{ENDPOINTS}bad", f"{DELIVERIES}sound/r2:1", f"{RETRIES}sound/r2:1"):
            await records.put(key, BROKEN)
        assert [endpoint.id for endpoint in await webhooks.endpoints()] == ["sound"]
        assert await webhooks.deliveries("sound") == [due]
        assert await webhooks.due() == [due]
        assert await webhooks.delivery("sound", "r2:1") is None
        with pytest.raises(Damaged, match="webhook 'bad' can't be read: remove it"):
            await webhooks.change("bad", disabled="")
        await webhooks.remove("bad")
        assert not (await records.get(f"{ENDPOINTS}bad")).records

    play(story)


def test_nothing_is_buried_that_a_damaged_subscription_might_want() -> None:
    engine = TestEngine(Pipeline("p"))
    at_once(engine.app.runtime.records.put("receive:topic:group", BROKEN))
    filters = at_once(known_filters(engine.app.runtime, "topic"))
    assert filters == {Filter("")}
    assert all(known.matches({"a": "b"}) for known in filters)
    engine.close()


def test_a_damaged_entry_is_shown_among_the_others_of_the_audit_log() -> None:
    async def story() -> None:
        store = MemoryStore()
        records = StoreRecords(store)
        await audit.write_entry(records, "ada", "webhook.add", "wh-1")
        await records.put(f"{audit.AUDIT}0", BROKEN)
        entries = await audit.entries(store)
        assert sorted(entry.action for entry in entries) == ["damaged", "webhook.add"]

    at_once(story())


def test_a_damaged_tenant_submits_nothing_and_hides_no_other() -> None:
    async def story() -> None:
        async with Holdfast("memory:", worker=False) as app:
            await app.tenants.create("sound", Quotas(per_day=1), actor="ada")
            await app.runtime.records.put(tenant_key("damaged"), BROKEN)
            assert [tenant.name for tenant in await app.tenants.list()] == ["sound"]
            with pytest.raises(Damaged, match="of a tenant can't be read"):
                await app.tenants.get("damaged")
            with pytest.raises(Damaged, match="nothing is accepted"):
                await app.runtime.admission.admit("damaged", ["r1"])

    asyncio.run(story())


def test_what_a_tenant_has_used_begins_anew() -> None:
    async def story() -> None:
        async with Holdfast("memory:", worker=False) as app:
            await app.tenants.create("acme", Quotas(per_day=1), actor="ada")
            await app.runtime.records.put(tenant_key("acme", USAGE), BROKEN)
            assert (await app.tenants.usage("acme")).per_day == 0
            assert await app.runtime.admission.admit("acme", ["r1"]) == {"r1"}
            assert (await app.tenants.usage("acme")).per_day == 1

    asyncio.run(story())
