"""Metrics: counted where something happens, read from the store for the cluster, cheap in
labels."""

import asyncio
import os
import subprocess
import sys

import pytest
from tests.metrics_reading import Reading, read

from holdfast import Context, Holdfast, Lane, Pipeline, Transient, WorkerOptions
from holdfast.adapters.prometheus.metrics import PrometheusMetrics
from holdfast.apps.compat import PipelineLockManager
from holdfast.bootstrap import metrics as bootstrap_metrics
from holdfast.engine.metering import Meter, TenantLabels
from holdfast.model.metrics import METRICS
from holdfast.model.tenant import Quotas
from holdfast.services.metrics_export import HELD
from holdfast.testing.clock import ManualClock


def run_story(story, *pipelines, clock=None, **options):
    async def whole():
        worker = WorkerOptions(poll=0.05) if clock is None else False
        app = Holdfast(
            "memory:",
            pipelines,
            metrics=PrometheusMetrics(),
            worker=worker,
            clock=clock,
            **options,
        )
        async with app:
            await story(app)

    asyncio.run(whole())


def test_runs_steps_and_transitions_are_counted():
    pipeline = Pipeline("orders", input=int, max_attempts=1)

    @pipeline.step
    async def load(input: int) -> int:
        return input

    @pipeline.step
    async def send(load: int) -> int:
        if load < 0:
            raise TypeError("negative")
        return load

    async def story(app):
        runs = [await app.submit(pipeline, n, tenant="acme") for n in (1, 2, -1)]
        await asyncio.gather(*(run.result() for run in runs), return_exceptions=True)
        reading = await read(app)
        of = {"tenant_id": "acme", "pipeline_id": "orders"}
        assert reading("pipeline_jobs_created_total", **of) == 3
        assert reading("pipeline_jobs_completed_total", **of) == 2
        assert reading("pipeline_jobs_failed_total", **of) == 1
        assert reading("pipeline_job_duration_seconds_count", pipeline_id="orders") == 3
        assert (
            reading("pipeline_step_duration_seconds_count", pipeline_id="orders", step="load") == 3
        )
        assert (
            reading("pipeline_step_duration_seconds_count", pipeline_id="orders", step="send") == 2
        )
        transitions = "pipeline_state_transitions_total"
        assert reading(transitions, from_="", to="queued") == 3
        assert reading(transitions, from_="queued", to="running") == 3
        assert reading(transitions, from_="running", to="succeeded") == 2
        assert reading(transitions, from_="running", to="failed") == 1
        assert reading("pipeline_dlq_messages") == 1
        assert reading("pipeline_workers", state="alive") == 1
        assert reading("pipeline_stale_runs") == 0

    run_story(story, pipeline)


def test_reused_steps_are_counted():
    pipeline = Pipeline("twice", input=int)
    tries = []

    @pipeline.step
    async def first(input: int) -> int:
        return input

    @pipeline.step(max_attempts=1)
    async def second(first: int, ctx: Context) -> int:
        tries.append(ctx.attempt)
        if len(tries) == 1:
            raise Transient("later", retry_after=0.0)
        return first

    async def story(app):
        run = await app.submit(pipeline, 1)
        try:
            await run.result()
        except Exception:
            await app.operations.resume(run.id)
            await run.result()
        reading = await read(app)
        assert reading("pipeline_steps_reused_total", pipeline_id="twice", step="first") == 1

    run_story(story, pipeline)


def test_unique_pipelines_count_as_locks():
    pipeline = Pipeline("export", input=int, unique=True)
    go = asyncio.Event()

    @pipeline.step
    async def only(input: int) -> int:
        await go.wait()
        return input

    async def story(app):
        of = {"tenant_id": "acme", "pipeline_id": "export"}
        run = await app.submit(pipeline, 1, tenant="acme")
        await app.submit(pipeline, 2, tenant="acme")
        for _ in range(200):
            if (await run.info()).state == "running":
                break
            await asyncio.sleep(0.01)
        reading = await read(app)
        assert reading("pipeline_lock_acquisitions_total", result="success", **of) == 1
        assert reading("pipeline_lock_acquisitions_total", result="conflict", **of) == 1
        assert reading("pipeline_active_locks", **of) == 1
        assert reading("pipeline_running_count", **of) == 1
        go.set()
        await run.result()
        assert (await read(app))("pipeline_lock_duration_seconds_count", **of) == 1

    run_story(story, pipeline)


def test_messages_are_counted_by_their_queue():
    pipeline = Pipeline("jobs", input=int)

    @pipeline.step
    async def only(input: int) -> int:
        return input

    async def story(app):
        from holdfast.ports.bus import Message

        await app.receive("work", pipeline)
        for number, body in enumerate((b"1", b"2", b"nonsense")):
            await app.bus.publish("work", Message(str(number), body, {}))
        for _ in range(200):
            reading = await read(app, cluster=False)
            if reading("pipeline_messages_acked_total", queue="work") == 3:
                break
            await asyncio.sleep(0.01)
        assert reading("pipeline_messages_consumed_total", queue="work") == 3
        assert reading("pipeline_messages_processed_total", queue="work") == 3
        assert reading("pipeline_messages_failed_total", queue="work") == 1
        assert reading("pipeline_messages_in_flight", queue="work") == 0
        assert reading("pipeline_message_processing_seconds_count", queue="work") == 3
        assert reading("pipeline_ack_ratio", queue="work") == 1.0
        assert reading("pipeline_messages_nacked_total", queue="work") is None

    run_story(story, pipeline, bus="memory:")


def test_a_nack_lowers_the_ratio_of_acks():
    meter = Meter(PrometheusMetrics())
    for acked in (True, True, True, False):
        meter.message_arrived("work")
        meter.message_answered("work", 0.01, acked=acked)
    reading = Reading(meter.metrics.exposition())
    assert reading("pipeline_ack_ratio", queue="work") == 0.75
    assert reading("pipeline_messages_nacked_total", queue="work") == 1


def test_the_first_thousand_tenants_have_labels_and_the_rest_is_other():
    labels = TenantLabels(most=2)
    assert [labels.of(name) for name in "abcab"] == ["a", "b", "other", "a", "b"]
    assert TenantLabels().of("x") == "x"
    off = TenantLabels(enabled=False)
    assert off.of("acme") == ""
    meter = Meter(PrometheusMetrics(), TenantLabels())
    for number in range(1500):
        meter.submitted(f"t{number}", "p", created=True, unique=False)
    reading = Reading(meter.metrics.exposition())
    assert reading("pipeline_jobs_created_total", tenant_id="other", pipeline_id="p") == 500
    series = [name for name, _ in reading.values if name == "pipeline_jobs_created_total"]
    assert len(series) == 1001


def test_costs_of_models_are_counted_and_unknown_prices_apart():
    meter = Meter(PrometheusMetrics())
    meter.model_asked("acme", "report", "openai:gpt-4o-mini", (100, 20), 0.25)
    meter.model_asked("acme", "report", "openai:own", (1, 2), None)
    reading = Reading(meter.metrics.exposition())
    assert (
        reading("pipeline_llm_tokens_total", provider="openai", model="gpt-4o-mini", type="input")
        == 100
    )
    assert (
        reading(
            "pipeline_llm_cost_usd_total",
            tenant_id="acme",
            pipeline_id="report",
            model="gpt-4o-mini",
        )
        == 0.25
    )
    assert reading("pipeline_llm_unpriced_calls_total", model="own") == 1
    assert (
        reading("pipeline_llm_cost_usd_total", tenant_id="acme", pipeline_id="report", model="own")
        is None
    )


def test_figures_of_the_cluster_come_from_one_process_at_a_time():
    clock = ManualClock()

    async def story(app):
        other = Holdfast(app.store, worker=False, clock=clock, metrics=PrometheusMetrics())
        await other.open()
        assert "pipeline_dlq_messages" in (await read(app)).names
        assert "pipeline_dlq_messages" not in (await read(other)).names
        assert "holdfast_build_info" in (await read(other)).names
        clock.advance(HELD + 1)
        assert "pipeline_dlq_messages" in (await read(other)).names
        assert "pipeline_dlq_messages" not in (await read(app)).names

    run_story(story, clock=clock)


def test_queues_leaders_locks_and_quotas_of_the_cluster():
    clock = ManualClock()
    line = Pipeline("line", input=int, lane=Lane("line", order="fifo"))

    @line.step
    async def only(input: int) -> int:
        return input

    async def story(app):
        await app.tenants.create("acme", Quotas(queued=4), actor="ann")
        await app.submit(line, 1, tenant="acme")
        clock.advance(90)
        manager = PipelineLockManager(100, store=app.store, app=f"test-{os.getpid()}")
        await manager.acquire_lock("acme", "export", "e-1", "ann")
        clock.advance(30)
        await app.submit(line, 2, tenant="acme", delay=60)
        reading = await read(app)
        assert reading("pipeline_queue_depth", queue="line") == 2
        assert reading("pipeline_queue_delayed", queue="line") == 1
        assert reading("pipeline_queue_oldest_message_age_seconds", queue="line") == 120
        assert reading("pipeline_lane_has_leader", queue="line") == 0
        of = {"tenant_id": "acme", "pipeline_id": "export"}
        assert reading("pipeline_active_locks", **of) == 1
        assert reading("pipeline_running_count", **of) == 0
        assert reading("pipeline_lock_age_seconds", **of) == 30
        assert reading("pipeline_lock_timeout_seconds", **of) == 100
        assert reading("pipeline_lock_acquired_timestamp_seconds", **of) == clock.now() - 30
        assert reading("pipeline_lock_expiration_alert_threshold") == 0.8
        assert reading("pipeline_tenant_quota_used_ratio", tenant_id="acme", quota="queued") == 0.5
        await manager.release_lock("acme", "export", "e-1")

    run_story(story, line, clock=clock)


def test_the_lock_manager_counts_what_it_was_asked(tmp_path, monkeypatch):
    monkeypatch.setattr(bootstrap_metrics, "_made", [])

    async def story():
        manager = PipelineLockManager(60, store=f"sqlite:///{tmp_path}/l.db", app="test")
        of = ("acme", "export")
        assert await manager.acquire_lock(*of, "e-1", "ann")
        assert not await manager.acquire_lock(*of, "e-2", "ann")
        await manager.release_lock(*of, "e-1")
        await manager.close()
        reading = Reading(bootstrap_metrics.make_metrics().exposition())
        labels = {"tenant_id": "acme", "pipeline_id": "export"}
        for result in ("success", "conflict"):
            assert reading("pipeline_lock_acquisitions_total", result=result, **labels) == 1
        assert reading("pipeline_lock_wait_time_seconds_count", **labels) == 2
        assert reading("pipeline_lock_duration_seconds_count", **labels) == 1

    asyncio.run(story())


def test_metrics_follow_the_rules_of_prometheus():
    for metric in METRICS:
        assert metric.name.startswith(("pipeline_", "holdfast_"))
        assert metric.name.endswith("_total") == (metric.kind == "counter")
        assert metric.kind != "histogram" or metric.name.endswith("_seconds")
        assert metric.help.endswith(".")


@pytest.mark.parametrize("module", ["holdfast.app", "holdfast.cli.worker"])
def test_nothing_is_imported_without_being_asked_for(module):
    code = f"import sys, {module}; print('prometheus_client' in sys.modules)"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert process.stdout.strip() == "False"
