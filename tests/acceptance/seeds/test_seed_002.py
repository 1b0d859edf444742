"""A leader-elected compute queue: one leader, strict order, phases, and the lines people look for.

Tests are named after the rows of the list of features; see conftest.py."""

import asyncio
import json
import logging
import re
import signal
import subprocess
import sys
import time
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import httpx2
import pytest
from tests.acceptance.seeds.fleet import Fleet, wait_until
from tests.acceptance.seeds.stores import STORES, make_store, url_of
from tests.acceptance.seeds.web import STORES as WEB_STORES
from tests.acceptance.seeds.web import a_web
from tests.integration.test_alerts import ALERTS, named, promtool
from tests.metrics_reading import read
from tests.unit.conftest import Lab

from holdfast import Holdfast, Lane, LeaseTimes, Permanent, Pipeline, Transient
from holdfast.adapters.memory.store import MemoryStore
from holdfast.adapters.prometheus.metrics import PrometheusMetrics
from holdfast.apps.compat import instance_of
from holdfast.apps.compat.routes.words import settings
from holdfast.apps.compat.trace_log import TraceLines
from holdfast.bootstrap import Options
from holdfast.errors import ConfigurationError
from holdfast.model.clock import SystemClock
from holdfast.model.commands import Acquire, Acquired, Claim, Held, ReleaseLock, RenewLocks, Submit
from holdfast.ports.store import RunFilter
from holdfast.services.discovery import discover
from holdfast.settings import load
from holdfast.testing import TestEngine
from holdfast.testing.clock import ManualClock

ROWS = 53
OPEN = {}

ROOT = Path(__file__).parents[3]
COMPUTE = f"{ROOT}/examples/compute/app.py:app"
QUEUE_APP = str(Path(__file__).with_name("queue_app.py"))
QUEUE = "computeGenerationQueue"
PHASES = [
    "API_GENERATION",
    "FRONTEND_GENERATION",
    "DEVOPS_GENERATION",
    "GIT_OPERATIONS",
    "DNS_UPDATE",
]
START = [
    "Leader election acquired",
    "computeGenerationQueue scheduler ready",
    "computeGenerationWorker initialized",
]


def appear_in_order(texts, expected):
    """Whether the wanted lines come in this order, whatever is between them."""
    remaining = iter(texts)
    return all(any(text == line for text in remaining) for line in expected)


# --- with processes of their own ------------------------------------------------------------------


@pytest.fixture
def fleet_of(tmp_path):
    made = []

    def make(app, store=None, **env):
        made.append(Fleet(tmp_path, store or url_of("sqlite", tmp_path), app, **env))
        return made[-1]

    yield make
    for fleet in made:
        fleet.end()


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("kind", ["sqlite", "postgres", "redis"])
def test_rows_01_05_06_07_08_10_45_46_47_48_order_holds_whatever_happens_to_the_leader(
    kind, fleet_of, tmp_path
):
    """Two workers, one leader; 200 jobs, every tenth of which is tried twice; the leader is killed,
    and the next one stands still past its lease."""
    fleet = fleet_of(QUEUE_APP, url_of(kind, tmp_path))
    queue = GatedQueue(tmp_path)
    queue.allow(29)
    fleet.start("a"), fleet.start("b")
    asyncio.run(submit_in_order(fleet.store, range(200)))
    queue.wait_for(29)
    first = fleet.leader()
    lane = wait_until(lambda: asyncio.run(lane_at_work(fleet.store)), "job 30 is under way")
    assert lane.delayed == 0, "what is tried again stays at the head"
    [follower] = [worker for worker in fleet.workers if worker is not first]
    first.end(signal.SIGKILL)
    wait_until(lambda: fleet.leader() is follower, "the follower leads")
    queue.allow(59)
    queue.wait_for(59)
    third = fleet.start("c")
    third.until_it_serves()
    fleet.pause(follower)
    third.until("computeGenerationWorker initialized")
    queue.allow(89)
    queue.wait_for(89)
    follower.tell(signal.SIGCONT)
    follower.until("Leader election lost")
    queue.allow(199)
    queue.wait_for(199)

    assert list(dict.fromkeys(queue.done)) == list(range(200))
    assert len(queue.done) <= 202, "a crash and a pause repeat one job each at most"
    lost = next(line for line in follower.lines if line.text == "Leader election lost")
    assert lost.data["reason"] == "lease-extension-failed"
    assert lost.data["key"] == "locks:compute:generate:leader:v1"
    view = json.loads(fleet.cli("lanes", "show", QUEUE, "--json").stdout)
    there_was_one_leader_at_a_time(view["leaders"][::-1], fleet)
    assert re.findall(r".*(?:Traceback|can't claim).*", fleet.logs) == []


class GatedQueue:
    """How far the jobs of `queue_app.py` may go, and how far they are."""

    def __init__(self, folder):
        self._allowed, self._order = folder / "allowed.txt", folder / "order.txt"

    def allow(self, number):
        partial = self._allowed.with_suffix(".new")
        partial.write_text(str(number))
        partial.rename(self._allowed)

    @property
    def done(self):
        order = self._order.read_text() if self._order.exists() else ""
        return [int(line) for line in order.split()]

    def wait_for(self, number):
        wait_until(lambda: number in self.done, f"job {number} is done")


async def submit_in_order(store, numbers):
    pipelines = discover([QUEUE_APP]).pipelines.values()
    async with Holdfast(store, pipelines, worker=False) as app:
        handles = await app.submit_many("compute", list(numbers))
        runs = await app.store.runs(RunFilter(), limit=len(numbers))
        assert [run.id for run in reversed(runs)] == [handle.id for handle in handles]


async def lane_at_work(store):
    async with Holdfast(store, [], worker=False) as app:
        return next((lane for lane in await app.store.lanes() if lane.running), None)


def there_was_one_leader_at_a_time(terms, fleet):
    """Leadership moved when a leader was killed and when one stood still, and for no other reason.
    On a machine that is too busy to renew in time a leader gives up by itself, and says so."""
    assert len({term["term"] for term in terms}) == len(terms)
    for earlier, later in pairwise(terms):
        assert earlier["until"] <= later["since"], fleet.logs
    losses = re.findall(f"lost the lease on lane:{QUEUE} .*", fleet.logs)
    assert len(terms) == 3 + len(losses) - 1, fleet.logs  # one of them stood still
    assert sum("the store refused" in loss for loss in losses) <= 1, fleet.logs


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_rows_29_30_31_32_33_34_35_36_37_38_39_40_the_log_has_the_known_sequences(
    fleet_of, tmp_path
):
    fleet = fleet_of(COMPUTE, COMPUTE_WORKSPACE=str(tmp_path / "workspace"))
    first = fleet.start("a")
    first.until("computeGenerationWorker initialized")
    assert appear_in_order(first.texts, START)
    acquired, ready, initialized = [line for line in first.lines if line.text in START]
    assert {acquired.trace, ready.trace, initialized.trace} == {"compute-queue"}
    assert acquired.data["key"] == "locks:compute:generate:leader:v1"
    assert acquired.data["ttlMs"] == 3000
    assert initialized.data == {"concurrency": 1}

    second = fleet.start("b")
    job = tmp_path / "job.json"
    job.write_text(json.dumps({"instanceId": "163", "microserviceId": "orders", "traceId": "99d0"}))
    submitted = fleet.cli("run", "compute", "--input-file", str(job), "--no-wait", LOG_LEVEL="info")
    first.until("computeGenerationWorker job completed")
    phases = [f"{phase} {word}" for phase in PHASES for word in ("Started", "Completed")]
    expected = [
        "computeGenerationWorker job active",
        *phases,
        "computeGenerationWorker job completed",
    ]
    assert appear_in_order(first.texts, expected)
    lines = [line for line in first.lines if line.text in expected]
    assert {line.trace for line in lines} == {"99d0"}
    active, completed = lines[0], lines[-1]
    assert active.data == {
        "jobId": "163",
        "instanceId": "163",
        "activeCount": 1,
        "concurrency": 1,
    }
    assert completed.data == {"jobId": "163", "instanceId": "163"}
    assert "Job enqueued for computeGenerationQueue" in submitted.stderr
    assert "[TraceID: 99d0]" in submitted.stderr

    assert not any(text in START for text in second.texts)
    assert first.end(signal.SIGTERM) == 0
    second.until("computeGenerationWorker initialized")
    assert first.lines[-1].text == "Leader election lost"
    assert first.lines[-1].data["reason"] == "stopped"
    assert appear_in_order(second.texts, START)


@pytest.mark.parametrize("kind", STORES)
def test_row_05_a_thousand_jobs_of_one_call_are_accepted_in_their_order(kind, tmp_path):
    """Also if the first part of them takes longest to be written."""
    store = make_store(kind, SystemClock(), tmp_path)
    apply, begun = store.apply, []

    async def apply_late(commands):
        if isinstance(commands[0], Submit) and not begun:
            begun.append(commands)
            await asyncio.sleep(0.1)
        return await apply(commands)

    store.apply = apply_late
    asyncio.run(submit_in_order(store, range(1000)))
    assert begun


@pytest.mark.slow
def test_rows_09_44_52_a_leader_hands_over_at_once_when_told_to(fleet_of):
    fleet = fleet_of(
        QUEUE_APP,
        HOLDFAST_LEADER_TTL="60s",
        HOLDFAST_LEADER_RENEW="20s",
        COMPUTE_QUEUE_LEADER_TTL_MS="",
        COMPUTE_QUEUE_LEADER_RENEW_MS="",
    )
    first = fleet.start("a")
    first.until("computeGenerationWorker initialized")
    second = fleet.start("b")
    started = time.monotonic()
    assert first.end(signal.SIGTERM) == 0
    second.until("computeGenerationWorker initialized")
    assert time.monotonic() - started < 30, "the lease lasts 60 s: nobody waited for it"
    fleet.cli("lanes", "step-down", QUEUE, "--yes", "--reason", "test")
    second.until("Leader election acquired", times=2)
    [entry] = json.loads(fleet.cli("audit", "list", "--json").stdout)["items"]
    assert (entry["target"], entry["reason"]) == (f"lane:{QUEUE}", "test")
    leaders = json.loads(fleet.cli("lanes", "show", QUEUE, "--json").stdout)["leaders"]
    assert len({leader["worker"] for leader in leaders}) == 2
    assert [leader["term"] for leader in leaders] == sorted(
        (leader["term"] for leader in leaders), reverse=True
    )
    [lock] = json.loads(fleet.cli("locks", "list", "--json").stdout)["items"] or [fleet.logs]
    assert lock["held_for"] == "locks:compute:generate:leader:v1"


# --- the lease ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", STORES)
def test_row_02_only_the_holder_renews_and_releases_and_time_ends_a_lease(kind, tmp_path):
    clock = ManualClock()

    async def story():
        store = make_store(kind, clock, tmp_path)
        await store.open()
        first, second = await store.apply(
            [Acquire("lane:x", "t1", "a", 30.0), Acquire("lane:x", "t2", "b", 30.0)]
        )
        assert isinstance(first, Acquired)
        assert isinstance(second, Held)
        refused, released = await store.apply(
            [RenewLocks([("lane:x", "t2")], 30.0), ReleaseLock("lane:x", "t2")]
        )
        assert (list(map(tuple, refused)), released) == ([("lane:x", "t2")], False)
        clock.advance(29.0)
        assert list((await store.apply([RenewLocks([("lane:x", "t1")], 30.0)]))[0]) == []
        clock.advance(29.0)
        assert isinstance((await store.apply([Acquire("lane:x", "t2", "b", 30.0)]))[0], Held)
        assert await store.apply([ReleaseLock("lane:x", "t1")]) == [True]
        answers = await store.apply([Acquire("lane:x", "t2", "b", 30.0)])
        clock.advance(31.0)
        assert answers != await store.apply([Acquire("lane:x", "t3", "c", 30.0)])
        assert await store.apply([ReleaseLock("lane:x", "t2")]) == [False]
        await store.close()

    asyncio.run(story())


def test_row_03_a_lease_lasts_thirty_seconds_and_is_renewed_well_before():
    times = LeaseTimes()
    assert (times.ttl, times.renew) == (30, 10)


def test_rows_19_20_the_environment_names_the_leaders_key_and_times():
    env = {
        "COMPUTE_QUEUE_LEADER_KEY": "locks:compute:generate:leader:v1",
        "COMPUTE_QUEUE_LEADER_TTL_MS": "30000",
        "COMPUTE_QUEUE_LEADER_RENEW_MS": "15000",
    }
    leaders = load(env=env).settings.leader
    assert leaders.key_of(QUEUE) == "locks:compute:generate:leader:v1"
    times = leaders.of(QUEUE).times(QUEUE, LeaseTimes())
    assert (times.ttl, times.renew) == (30, 15)
    late = load(env=env | {"COMPUTE_QUEUE_LEADER_RENEW_MS": "30000"}).settings.leader
    with pytest.raises(ConfigurationError, match="must be less than"):
        late.of(QUEUE).times(QUEUE, LeaseTimes())


# --- the queue, in virtual time -------------------------------------------------------------------


def queue(step, **options):
    pipeline = Pipeline("compute", input=str, lane=Lane(QUEUE, order="fifo"), key=str, **options)
    pipeline.step(name="API_GENERATION", max_attempts=3)(step)
    return pipeline


@pytest.fixture
def engine_of():
    engines = []

    def make(*pipelines, **options):
        engines.append(TestEngine(*pipelines, **options))
        return engines[-1]

    yield make
    for engine in engines:
        engine.close()


def test_rows_04_12_13_one_job_for_an_instance_and_none_when_it_is_completed(engine_of):
    pipeline = queue(lambda: 1)
    engine = engine_of(pipeline)
    first = engine.submit(pipeline, "inst-1")
    assert engine.submit(pipeline, "inst-1").id == first.id
    engine.drain()
    again = engine.submit(pipeline, "inst-1")
    assert (again.id, again.created) == (first.id, False)
    engine.drain()
    assert len(engine.executed) == 1
    [lane] = engine.call(engine.app.store.lanes())
    assert (lane.name, lane.order) == (QUEUE, "fifo")


def test_row_16_work_whose_process_is_gone_is_found_and_goes_on_first():
    executed = []

    async def step(input: str) -> str:
        executed.append(input)
        await asyncio.sleep(5)
        return input

    pipeline = queue(step)
    engine = Lab(pipeline)
    runs = [engine.submit(pipeline, name) for name in "abc"]
    engine.advance(7)
    assert executed == ["a", "b"]
    engine.kill()
    engine.advance(40)
    assert executed[:3] == ["a", "b", "b"]
    engine.drain()
    assert executed == ["a", "b", "b", "c"]
    assert [engine.info(run).attempts for run in runs] == [1, 2, 1]
    engine.close()


def test_rows_11_17_what_waits_goes_on_by_itself_and_is_never_failed_by_age(engine_of):
    tries = []

    async def step(input: str) -> str:
        tries.append(input)
        if tries == ["a"]:
            raise Transient("busy", retry_after=3600)
        return input

    pipeline = queue(step)
    engine = engine_of(pipeline)
    runs = [engine.submit(pipeline, name) for name in "abc"]
    engine.drain()
    assert tries == ["a", "a", "b", "c"]
    assert all(engine.info(run).state == "succeeded" for run in runs)


def test_row_14_a_crash_repeats_one_phase_at_most(engine_of, tmp_path):
    app = discover([COMPUTE]).app
    workspace = type(next(iter(app.options.provide.values())))(tmp_path)
    engine = engine_of(app.pipelines["compute"], provide={type(workspace): workspace})
    run = engine.submit(app.pipelines["compute"], JOB)
    for phase in PHASES:
        engine.crash_after(phase)
    engine.drain()
    assert engine.info(run).state == "succeeded"
    assert [step for _, step, _ in engine.executed] == [*executed_phases(JOB), "RESULT"]


def test_rows_15_41_what_can_not_be_retried_fails_with_reason_type_and_phase(engine_of):
    class MigrationIssues(Permanent):
        pass

    def step():
        raise MigrationIssues("column gone")

    pipeline = queue(step)
    engine = engine_of(pipeline)
    run = engine.submit(pipeline, "inst-1", labels={"traceId": "99d0"})
    engine.drain()
    instance = instance_of(engine.info(run))
    assert len(engine.executed) == 1
    assert instance["status"] == "Failed"
    assert instance["id"] == "inst-1"
    assert instance["requestTraceId"] == "99d0"
    assert (instance["failureReason"], instance["errorType"], instance["errorPhase"]) == (
        "column gone",
        "MIGRATION_ISSUES",
        "API_GENERATION",
    )


def test_row_41_a_failed_job_is_logged_with_reason_type_and_phase(engine_of, caplog):
    def step():
        raise Permanent("column gone")

    pipeline = queue(step)
    engine = engine_of(pipeline)
    engine.submit(pipeline, "inst-1")
    engine.drain()
    engine.advance(1)
    [record] = [record for record in caplog.records if record.levelno == logging.ERROR]
    line, *traceback = TraceLines().format(record).splitlines()
    assert "computeGenerationWorker job failed | Data: " in line
    assert json.loads(line.partition("Data: ")[2]) == {
        "jobId": "inst-1",
        "instanceId": "inst-1",
        "failureReason": "column gone",
        "errorType": "PERMANENT",
        "errorPhase": "API_GENERATION",
    }
    assert traceback


def test_row_18_a_worker_may_live_inside_the_process_of_the_api():
    async def story():
        async with Holdfast("memory:", [queue(lambda: 1)]) as app:
            return await (await app.submit("compute", "inst-1")).result()

    assert asyncio.run(story()) == 1


# --- the shipped pipeline -------------------------------------------------------------------------

JOB = {
    "instanceId": "inst-1",
    "microserviceId": "orders",
    "generateApiFlag": True,
    "generateFrontendFlag": False,
    "generateDevOpsFlag": True,
    "userInfo": {"name": "ann"},
    "externalFks": ["customer_id"],
    "menus": ["Orders"],
    "traceId": "99d0",
    "migrationOptions": {"force": False},
}


FLAGS = {
    "generateApiFlag": "API_GENERATION",
    "generateFrontendFlag": "FRONTEND_GENERATION",
    "generateDevOpsFlag": "DEVOPS_GENERATION",
    "gitOperationsFlag": "GIT_OPERATIONS",
    "dnsUpdateFlag": "DNS_UPDATE",
}


def executed_phases(job):
    left_out = [phase for flag, phase in FLAGS.items() if not job.get(flag, True)]
    return [phase for phase in PHASES if phase not in left_out]


@pytest.mark.parametrize("flag", [None, *FLAGS])
def test_rows_22_23_24_25_the_compute_pipeline_has_the_known_phases_flags_and_data(
    flag, engine_of, tmp_path
):
    app = discover([COMPUTE]).app
    pipeline = app.pipelines["compute"]
    assert pipeline.lane == Lane(QUEUE, order="fifo")
    assert list(pipeline.steps)[:5] == PHASES
    workspace = type(next(iter(app.options.provide.values())))(tmp_path)
    engine = engine_of(pipeline, provide={type(workspace): workspace})
    job = JOB | {"generateFrontendFlag": True} | ({flag: False} if flag else {})
    run = engine.submit(pipeline, job)
    engine.drain()
    executed = [step for _, step, _ in engine.executed]
    assert executed == [*executed_phases(job), "RESULT"]
    assert len(executed) == (5 if flag else 6)
    info = engine.info(run)
    assert (info.state, info.key, info.labels["traceId"]) == ("succeeded", "inst-1", "99d0")
    text = json.loads(info.input)
    for name in ("microserviceId", "externalFks", "menus", "migrationOptions", "userInfo"):
        assert text[name] == JOB[name]


def test_row_50_attempts_delay_and_time_out_come_from_the_environment(fleet_of):
    fleet = fleet_of(
        COMPUTE,
        COMPUTE_GEN_MAX_ATTEMPTS="7",
        COMPUTE_GEN_RETRY_DELAY_MS="250",
        COMPUTE_GEN_TIMEOUT_MS="60000",
    )
    [pipeline] = json.loads(fleet.cli("pipelines", "list", "--json").stdout)["items"]
    assert (pipeline["max_attempts"], pipeline["timeout"]) == (7, 60.0)
    code = (
        "from holdfast.services.discovery import discover\n"
        f"steps = discover([{COMPUTE!r}]).pipelines['compute'].steps\n"
        "print({(step.retry.base, step.max_attempts) for step in steps.values()"
        " if step.name != 'RESULT'})"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], env=fleet.env, capture_output=True, text=True, check=True
    )
    assert process.stdout.strip() == "{(0.25, 7)}"


@pytest.mark.parametrize("origin", ["environment", "file"])
def test_row_50_they_are_settings_of_any_pipeline(origin, tmp_path):
    env = {"HOME": str(tmp_path)}
    if origin == "environment":
        env["HOLDFAST_PIPELINE_MAX_ATTEMPTS"] = "7"
        env["HOLDFAST_PIPELINE_BACKOFF"] = "250ms"
        env["HOLDFAST_PIPELINE_TIMEOUT"] = "60s"
    else:
        table = '[pipelines.compute]\nmax_attempts = 7\nbackoff = "250ms"\ntimeout = "60s"\n'
        (tmp_path / "holdfast.toml").write_text(table)
    options = Options().with_settings(load(env=env, cwd=tmp_path))
    pipeline = Pipeline("compute", input=str)
    pipeline.step(name="API_GENERATION", max_attempts=2)(lambda input: input)
    app = Holdfast.from_options(
        Options(pipeline=options.pipeline, pipelines=options.pipelines), [pipeline]
    )
    compute = app.pipelines["compute"]
    assert (compute.max_attempts, compute.timeout) == (7, 60.0)
    assert compute.steps["API_GENERATION"].retry.base == 0.25


@pytest.fixture(params=WEB_STORES)
def web(request, tmp_path):
    """The service on every store."""
    with a_web(request.param, tmp_path) as opened:
        yield opened


def enqueue(client, number):
    job = {"instanceId": f"i{number}", "microserviceId": "shop"}
    return client.post("/api/v1/enqueue/compute", json=job)


def test_rows_26_27_28_53_the_queue_tells_what_is_in_it(web):
    admin, user = web.client("default", "admin"), web.client("acme1281", "submit", "read")
    answers = [enqueue(user, number) for number in range(4)]
    assert [answer.status_code for answer in answers] == [202] * 4
    body = answers[3].json()
    assert (body["id"], body["status"], body["queued"]) == ("i3", "Queued", True)
    assert body["position"] == 3
    web.live.call(until_running(web.live.holdfast.store))
    status = admin.get("/api/v1/queue-status").json()
    assert status["queue"] == {
        "name": "computeGenerationQueue",
        "waiting": 3,
        "active": 1,
        "delayed": 0,
        "failed": 0,
        "completed": 0,
    }
    assert [job["instanceId"] for job in status["activeJobs"]] == ["i0"]
    assert status["activeJobs"][0]["microserviceId"] == "shop"
    assert [job["instanceId"] for job in status["waitingJobs"]] == ["i1", "i2", "i3"]
    assert status["staleInstances"] == {"count": 0, "thresholdMinutes": 15.0}
    assert datetime.fromisoformat(status["timestamp"]).tzinfo is not None
    assert user.get("/api/v1/queue-status").status_code == 403
    assert httpx2.get(f"{web.live.url}/api/v1/queue-status").status_code == 401
    web.gate.open.set()
    web.ended(user, "i3")
    summary = admin.get("/api/v1/queue-status", params={"queue": "computeGenerationQueue"}).json()
    assert (summary["queue"]["completed"], len(summary["recentCompleted"])) == (4, 4)
    assert enqueue(user, 3).json()["status"] == "Completed"
    assert admin.get("/api/v1/queue-status?queue=nope").status_code == 404


def test_row_21_the_stale_threshold_is_a_setting(web, monkeypatch):
    admin, user = web.client("default", "admin"), web.client("acme1281", "submit", "read")
    enqueue(user, 1)
    web.live.call(until_running(web.live.holdfast.store))
    monkeypatch.setenv("COMPUTE_QUEUE_STALE_THRESHOLD_MS", "1")
    settings.cache_clear()
    stale = admin.get("/api/v1/queue-status").json()["staleInstances"]
    assert stale["count"] == 1
    assert stale["thresholdMinutes"] < 0.001


def test_row_49_stuck_work_is_taken_over_and_fails_when_its_attempts_are_used_up(engine_of):
    """Age alone fails nothing: what waits may wait, and what is lost is tried again."""
    pipeline = Pipeline("stuck", max_attempts=2, lane=Lane(QUEUE, order="fifo"))

    @pipeline.step
    async def first() -> int:
        return 1

    @pipeline.step
    async def second(first: int) -> int:
        return 2

    @pipeline.step
    async def third(second: int) -> int:
        return 3

    engine = engine_of(pipeline)
    for step in ("first", "second"):
        engine.crash_after(step)
    run = engine.submit(pipeline)
    engine.drain()
    info = engine.info(run)
    assert (info.state, info.attempts, info.error.name) == ("failed", 2, "WorkerLost")
    assert [event.type for event in engine.history(run)].count("run.worker_lost") == 1


@pytest.mark.parametrize("mode", ["waiting", "all"])
def test_row_51_what_waits_is_cleared_away(web, mode):
    admin, user = web.client("default", "admin"), web.client("acme1281", "submit", "read")
    for number in range(3):
        enqueue(user, number)
    web.live.call(until_running(web.live.holdfast.store))
    cleared = admin.post("/api/v1/clear-queue", json={"mode": mode}).json()
    assert (cleared["before"]["waiting"], cleared["after"]["waiting"]) == (2, 0)
    assert cleared["after"]["active"] == 1  # what is under way goes on
    run = user.get("/v1/runs/i2").json()["run"]
    assert (run["state"], run["reason"]) == ("cancelled", "QUEUE_CLEARED")
    assert user.post("/api/v1/clear-queue", json={"mode": mode}).status_code == 403
    assert admin.post("/api/v1/clear-queue", json={"mode": "some"}).status_code == 422


def test_row_51_failed_and_delayed_jobs_are_cleared_by_their_own_modes(web):
    admin, user = web.client("default", "admin"), web.client("acme1281", "submit", "read")
    web.gate.fails = True
    web.gate.open.set()
    enqueue(user, 1)
    web.ended(user, "i1")
    letters = web.live.holdfast.service(tenant=None, actor="test").dead_letters
    assert len(web.live.call(letters.list()).items) == 1
    admin.post("/api/v1/clear-queue", json={"mode": "failed"})
    assert web.live.call(letters.list()).items == []
    for mode in ("delayed", "completed"):
        assert admin.post("/api/v1/clear-queue", json={"mode": mode}).status_code == 200


def test_row_51_a_clearing_reaches_every_failed_job_of_its_queue_and_no_other(web):
    admin, user = web.client("default", "admin"), web.client("acme1281", "submit", "read")
    web.gate.fails = True
    web.gate.open.set()
    for number in range(3):
        enqueue(user, number)
    web.ended(user, "i2")
    billed = user.post("/pipelines/run/gcp_billing_export", json={}).json()
    web.ended(user, billed["pipeline_logging_id"])
    admin.post("/api/v1/clear-queue", json={"mode": "failed"})
    letters = web.live.holdfast.service(tenant=None, actor="test").dead_letters
    remaining = web.live.call(letters.list()).items
    assert [letter.run for letter in remaining] == [billed["pipeline_logging_id"]]


def test_row_26_the_first_ten_of_many_are_shown(web):
    admin = web.client("default", "admin")
    jobs = [{"instanceId": f"i{number}", "microserviceId": "shop"} for number in range(300)]
    accepted = admin.post("/v1/pipelines/compute/runs/batch", json={"inputs": jobs})
    assert accepted.status_code == 202
    web.live.call(until_running(web.live.holdfast.store))
    status = admin.get("/api/v1/queue-status").json()
    ids = [job["instanceId"] for job in status["waitingJobs"]]
    assert ids == [f"i{number}" for number in range(1, 11)]
    assert enqueue(admin, 150).json()["position"] == 150


async def until_running(store):
    for _ in range(1000):
        if await store.runs(RunFilter(state="running"), limit=1):
            return
        await asyncio.sleep(0.02)
    raise AssertionError("nothing runs")


# --- metrics --------------------------------------------------------------------------------------


def test_row_42_stale_instances_are_counted_and_an_alert_is_about_them():
    clock = ManualClock()
    pipeline = Pipeline("generate", input=int)

    @pipeline.step
    async def compute(input: int) -> int:
        return input

    async def story():
        app = Holdfast(
            MemoryStore(clock), [pipeline], worker=False, clock=clock, metrics=PrometheusMetrics()
        )
        async with app:
            await app.submit(pipeline, 1)
            await app.store.apply([Claim("gone", pipeline.lane.name, ["generate"], 1, 30.0)])
            assert (await read(app))("pipeline_stale_runs") == 1

    asyncio.run(story())
    assert named(ALERTS["StaleRuns"]["expr"]) == {"pipeline_stale_runs"}
    assert "SUCCESS" in promtool("test", "rules", "rules_test.yml")


def test_row_43_waiting_times_and_durations_are_measured():
    clock = ManualClock()
    pipeline = Pipeline("generate", input=int)

    @pipeline.step
    async def compute(input: int) -> int:
        return input

    async def waiting():
        app = Holdfast(
            MemoryStore(clock), [pipeline], worker=False, clock=clock, metrics=PrometheusMetrics()
        )
        async with app:
            await app.submit(pipeline, 1)
            clock.advance(42)
            return await read(app)

    async def working():
        async with Holdfast("memory:", [pipeline], metrics=PrometheusMetrics()) as app:
            await (await app.submit(pipeline, 1)).result()
            return await read(app)

    age = "pipeline_queue_oldest_message_age_seconds"
    assert asyncio.run(waiting())(age, queue=pipeline.lane.name) == 42
    reading = asyncio.run(working())
    assert reading("pipeline_job_duration_seconds_count", pipeline_id="generate") == 1
    assert (
        reading("pipeline_step_duration_seconds_count", pipeline_id="generate", step="compute") == 1
    )
