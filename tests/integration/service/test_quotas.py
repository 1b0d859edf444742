"""Quotas of tenants on every store: refused before acceptance, right across processes."""

import asyncio

import pytest

from holdfast import Pipeline
from holdfast.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    QuotaExceeded,
    StoreUnavailable,
)
from holdfast.model.commands import Claim
from holdfast.model.tenant import Quotas
from holdfast.services.audit import entries


def job(**options):
    pipeline = Pipeline("job", input=int, **options)

    @pipeline.step
    async def only(input: int) -> int:
        return input

    return pipeline


def quotas(**limits):
    return Quotas(**{"running": None, "per_minute": None, "queued": None, **limits})


async def submitted(app, pipeline, count, **options):
    """How many of so many submissions at once were accepted, and the errors of the others."""
    answers = await asyncio.gather(
        *(app.submit(pipeline, n, tenant="acme", **options) for n in range(count)),
        return_exceptions=True,
    )
    errors = [answer for answer in answers if isinstance(answer, BaseException)]
    return count - len(errors), errors


def test_runs_a_minute(run_story, clock):
    pipeline = job()

    async def story(app):
        await app.tenants.create("acme", quotas(per_minute=5), actor="ann")
        count, errors = await submitted(app, pipeline, 8)
        assert count == 5
        assert {(error.quota, error.limit) for error in errors} == {("per_minute", 5)}
        assert "nothing was accepted" in str(errors[0])
        assert 59 <= errors[0].retry_after <= 61
        clock.advance(errors[0].retry_after - 1.5)
        assert (await submitted(app, pipeline, 1))[0] == 0
        clock.advance(1.5)
        assert (await submitted(app, pipeline, 8))[0] == 5
        assert (await app.tenants.usage("acme")).per_minute == 5

    run_story(story, pipeline)


def test_queue_length_to_the_run_across_processes(run_story, clock):
    pipeline = job()

    async def story(app):
        async with app.another() as other:
            await app.tenants.create("acme", quotas(queued=10), actor="ann")
            counts = await asyncio.gather(*(submitted(who, pipeline, 12) for who in (app, other)))
            assert sum(count for count, _ in counts) == 10
            assert (await app.tenants.usage("acme")).queued == 10
            [refused, *_] = counts[0][1] or counts[1][1]
            assert (refused.quota, refused.retry_after) == ("queued", 5.0)
            await app.store.apply([Claim("w", pipeline.lane.name, ["job"], 3, 30.0)])
            counts = [await submitted(who, pipeline, 2) for who in (other, app)]
            assert [count for count, _ in counts] == [2, 1]

    run_story(story, pipeline)


def test_daily_and_monthly_runs(run_story, clock):
    pipeline = job()

    async def story(app):
        clock.jump_wall(1_772_150_400.0 - clock.now() - 100)  # 100 s before 2026-02-27
        await app.tenants.create("acme", quotas(per_day=2, per_month=3), actor="ann")
        count, errors = await submitted(app, pipeline, 3)
        assert (count, errors[0].quota, errors[0].retry_after) == (2, "per_day", 100.0)
        clock.advance(100)
        count, errors = await submitted(app, pipeline, 3)
        assert (count, errors[0].quota) == (1, "per_month")
        assert errors[0].retry_after == 2 * 86_400  # until the first of March
        clock.advance(errors[0].retry_after)
        assert (await submitted(app, pipeline, 3))[0] == 2

    run_story(story, pipeline)


def test_counts_hold_across_processes(run_story, clock):
    pipeline = job()

    async def story(app):
        async with app.another() as other, app.another() as third:
            await app.tenants.create("acme", quotas(per_minute=20), actor="ann")
            apps = (app, other, third)
            counts = await asyncio.gather(*(submitted(who, pipeline, 15) for who in apps))
            assert sum(count for count, _ in counts) == 20

    run_story(story, pipeline)


def test_what_is_there_already_is_answered_and_does_not_count(run_story, clock):
    pipeline = job()

    async def story(app):
        await app.tenants.create("acme", quotas(per_minute=2, queued=2), actor="ann")
        first = await app.submit(pipeline, 1, tenant="acme", key="a")
        again = await app.submit(pipeline, 1, tenant="acme", key="a")
        assert (again.id, again.created) == (first.id, False)
        await app.submit(pipeline, 2, tenant="acme", key="b")
        with pytest.raises(QuotaExceeded):
            await app.submit(pipeline, 3, tenant="acme", key="c")
        again = await app.submit(pipeline, 1, tenant="acme", key="a")
        assert (again.id, again.created) == (first.id, False)
        both = await app.submit_many(pipeline, [1, 2], tenant="acme", keys=["a", "b"])
        assert [run.created for run in both] == [False, False]
        with pytest.raises(QuotaExceeded):
            await app.submit_many(pipeline, [1, 3], tenant="acme", keys=["a", "c"])
        with pytest.raises(Conflict):
            await app.submit(pipeline, 9, tenant="acme", key="a")
        assert (await app.tenants.usage("acme")).per_minute == 2

    run_story(story, pipeline)


def test_the_live_run_of_a_unique_pipeline_is_answered(run_story, clock):
    pipeline = job(unique=True)

    async def story(app):
        await app.tenants.create("acme", quotas(per_minute=1), actor="ann")
        first = await app.submit(pipeline, 1, tenant="acme")
        assert (await app.submit(pipeline, 2, tenant="acme")).id == first.id

    run_story(story, pipeline)


def test_many_at_once_are_accepted_together_or_not_at_all(run_story, clock):
    pipeline = job()

    async def story(app):
        await app.tenants.create("acme", quotas(per_minute=5), actor="ann")
        with pytest.raises(QuotaExceeded, match="send at most 5 at once"):
            await app.submit_many(pipeline, range(6), tenant="acme")
        assert len(await app.submit_many(pipeline, range(4), tenant="acme")) == 4
        with pytest.raises(QuotaExceeded, match=r"has 4 of 5 runs a minute and wants 2 more"):
            await app.submit_many(pipeline, range(2), tenant="acme")
        assert (await app.submit(pipeline, 1, tenant="acme")).created

    run_story(story, pipeline)


def test_running_runs_are_limited_by_the_claim(run_story, clock):
    pipeline = job()

    async def claim(app):
        [claimed] = await app.store.apply([Claim("w", pipeline.lane.name, ["job"], 100, 30.0)])
        return sorted(run.tenant for run in claimed)

    async def story(app):
        await app.tenants.create("acme", actor="ann")
        await app.submit_many(pipeline, range(8), tenant="acme")
        await app.submit_many(pipeline, range(2), tenant="other")
        assert await claim(app) == ["acme"] * 5 + ["other"] * 2
        assert await claim(app) == []
        await app.tenants.set("acme", actor="ann", running=6)
        assert await claim(app) == ["acme"]
        await app.tenants.set("acme", actor="ann", running=None)
        assert await claim(app) == ["acme"] * 2

    run_story(story, pipeline)


def test_a_disabled_tenant_submits_nothing(run_story, clock):
    pipeline = job()

    async def story(app):
        async with app.another() as other:
            await app.tenants.create("acme", actor="ann")
            await other.submit(pipeline, 1, tenant="acme")
            await app.tenants.set("acme", actor="ann", enabled=False)
            with pytest.raises(Forbidden, match="--enable"):
                await app.submit(pipeline, 1, tenant="acme")
            clock.advance(4)
            with pytest.raises(Forbidden):
                await other.submit(pipeline, 1, tenant="acme")

    run_story(story, pipeline)


def test_others_have_no_quotas(run_story, clock):
    pipeline = job()

    async def story(app):
        await app.tenants.create("acme", quotas(per_minute=0), actor="ann")
        await app.submit_many(pipeline, range(300))
        await app.submit_many(pipeline, range(300), tenant="never-created")
        with pytest.raises(QuotaExceeded):
            await app.submit(pipeline, 1, tenant="acme")

    run_story(story, pipeline)


def test_a_new_quota_counts_in_other_processes_too(run_story, clock):
    pipeline = job()

    async def story(app):
        async with app.another() as other:
            await other.submit(pipeline, 1, tenant="acme")  # nobody created it: no quotas
            await app.tenants.create("acme", quotas(per_minute=1), actor="ann")
            clock.advance(4)
            assert (await submitted(other, pipeline, 5))[0] == 1

    run_story(story, pipeline)


def test_a_message_above_the_quota_is_nacked_and_received_later(run_story, clock):
    pipeline = job()

    async def story(app):
        from holdfast.engine.receiver import Receiver
        from holdfast.model.receive import Receive
        from holdfast.ports.bus import Message

        class Delivery:
            attempt = 1

            def __init__(self, id):
                self.message = Message(id, b"1", {})
                self.outcome = None

            async def ack(self):
                self.outcome = "ack"

            async def nack(self, delay):
                self.outcome = delay

        await app.tenants.create("acme", quotas(per_minute=1), actor="ann")
        receive = Receive("jobs", "job", tenant="acme")
        receiver = Receiver(app.runtime, None, receive, pipeline)
        deliveries = [Delivery("m1"), Delivery("m2"), Delivery("m1")]
        for delivery in deliveries:
            await receiver.receive(delivery)
        assert [delivery.outcome for delivery in deliveries] == ["ack", 61.0, "ack"]
        assert await app.store.dead_letters() == []
        clock.advance(61)
        await receiver.receive(again := Delivery("m2"))
        assert again.outcome == "ack"
        assert (await app.tenants.usage("acme")).queued == 2

    run_story(story, pipeline)


def test_nothing_is_accepted_while_the_counts_can_not_be_read(run_story, clock, monkeypatch):
    pipeline = job()

    async def story(app):
        await app.tenants.create("acme", actor="ann")
        await app.submit(pipeline, 1, tenant="acme")

        async def away(key):
            raise StoreUnavailable("away")

        with monkeypatch.context() as patch:
            patch.setattr(app.store, "record", away)
            with pytest.raises(StoreUnavailable):
                await app.submit(pipeline, 1, tenant="acme")
        assert (await app.tenants.usage("acme")).queued == 1

    run_story(story, pipeline)


def test_tenants_are_created_changed_and_deleted_with_an_audit_entry_each(run_story, clock):
    pipeline = job()

    async def story(app):
        tenant = await app.tenants.create("ann@example.com", actor="ann")
        assert tenant.quotas == Quotas(running=5, per_minute=50, queued=1000)
        with pytest.raises(Conflict, match="holdfast tenants set"):
            await app.tenants.create("ann@example.com", actor="ann")
        with pytest.raises(InvalidInput):
            await app.tenants.create("default", actor="ann")
        with pytest.raises(InvalidInput, match="disable the tenant instead"):
            await app.tenants.set("ann@example.com", actor="bob", running=0)
        with pytest.raises(InvalidInput):
            await app.tenants.create("b", quotas(per_day=-1), actor="ann")
        await app.tenants.set("ann@example.com", actor="bob", per_day=7)
        assert (await app.tenants.get("ann@example.com")).quotas.per_day == 7
        run = await app.submit(pipeline, 1, tenant="ann@example.com")
        with pytest.raises(Conflict, match="1 live runs"):
            await app.tenants.delete("ann@example.com", actor="eve")
        await app.operations.cancel(run.id)
        await app.tenants.delete("ann@example.com", actor="eve", reason="gone")
        assert await app.tenants.list() == []
        with pytest.raises(NotFound):
            await app.tenants.get("ann@example.com")
        audit = [(entry.actor, entry.action) for entry in await entries(app.store)]
        for entry in [("ann", "tenant.create"), ("bob", "tenant.set"), ("eve", "tenant.delete")]:
            assert entry in audit

    run_story(story, pipeline)
