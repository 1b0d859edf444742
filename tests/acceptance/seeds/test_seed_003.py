"""A job worker: job messages in, results and dead letters out.

Tests are named after the rows of the list of features; see conftest.py."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from itertools import pairwise

import psycopg
import pytest
from examples.creative.pipeline import JobMessage, creative
from tests import postgres_server
from tests.acceptance.seeds.pubsub_deployment import PubSubDeployment
from tests.acceptance.seeds.redis_deployment import RedisDeployment
from tests.acceptance.seeds.stores import STORES, make_store
from tests.acceptance.seeds.web import STORES as WEB_STORES
from tests.acceptance.seeds.web import a_web
from tests.deploy.descriptions import DEPLOY, ROOT, WORKFLOWS, cloud_run, container, documents
from tests.metrics_reading import read

from holdfast import Context, Holdfast, Permanent, Pipeline, Retry, Transient
from holdfast.adapters.inprocess.bus import InProcessBus
from holdfast.adapters.prometheus.metrics import PrometheusMetrics
from holdfast.apps.compat.jobs import job_dead_letters, job_results
from holdfast.errors import RunFailed, StoreUnavailable
from holdfast.model.clock import SystemClock
from holdfast.model.receive import Receive
from holdfast.ports.bus import Message
from holdfast.testing import TestEngine

ROWS = 63
OPEN = {}

JOBS, RESULTS, DLQ = "aiprod-pipeline-jobs", "aiprod-pipeline-results", "aiprod-pipeline-dlq"
EVENTS = "holdfast-events"
CANARY = "sk-canary-003-51f0c9aa"
CONTENT = "A city wakes up. Coffee <b>smells</b>! Trams ring in the fog."

GOOD = {
    "job_id": "job-1",
    "user_id": "User-A",
    "content": CONTENT,
    "preset": "quick_social",
    "metadata": {"campaign": "spring"},
}
FAILING = GOOD | {"job_id": "job-2", "preset": "unknown_preset"}
KEYED = GOOD | {"job_id": "job-3", "user_id": "ada@example.org", "api_key": CANARY}
ORDERS = [
    ("m-1", GOOD, {"requestId": "req-1"}),
    ("m-1", GOOD, {"requestId": "req-1"}),
    ("m-2", FAILING, {}),
    ("m-3", b'{"job_id": "job-9", "apiKey": "%s"' % CANARY.encode(), {}),
    ("m-4", {"job_id": "job-4", "user_id": "u"}, {"authorization": f"Bearer {CANARY}"}),
    ("m-5", GOOD | {"content": "Other words."}, {}),
    ("m-6", KEYED, {}),
]
WORKER = ("-m", "holdfast.worker", "--project", "aiprod-484120", "--threads", "5")


@pytest.fixture(scope="module")
def deployment(tmp_path_factory):
    """The seed's own command, and what became of the messages."""
    deployment = RedisDeployment(
        tmp_path_factory.mktemp("deployment"),
        HOLDFAST_APP="examples/creative/pipeline.py",
        HOLDFAST_PROJECTIONS="job_results,job_dead_letters,job_log",
    )
    deployment.subscribe(RESULTS, DLQ)
    deployment.start(*WORKER, "--receive", f"{JOBS}=creative")
    try:
        deployment.publish(JOBS, *ORDERS)
        deployment.wait(
            lambda: len(deployment.bodies(RESULTS)) >= 3 and len(deployment.bodies(DLQ)) >= 4
        )
        deployment.exit_codes = deployment.stop()
        yield deployment
    finally:
        deployment.kill()


def by_key(deployment):
    return {run.key: run for run in deployment.runs()}


# --- messages in ----------------------------------------------------------------------------------


def test_rows_05_06_a_job_message_is_a_run_and_user_id_says_whose(deployment):
    run = by_key(deployment)["job-1"]
    assert json.loads(run.input) == GOOD
    assert run.labels["user_id"] == "User-A"
    assert by_key(deployment)["job-3"].labels["user_id"] == "ada@example.org"
    assert run.attributes["requestId"] == "req-1"


def test_row_06_user_id_can_be_the_tenant():
    async def story():
        bus = InProcessBus()
        async with Holdfast("memory:", [creative], bus=bus) as app:
            await app.receive(Receive(JOBS, "creative", tenant_from="user_id"))
            for user in ("User-A", "ada@example.org", "Zq3VXk0LhGd7m2QwErTyUiOpAsD2"):
                body = json.dumps(GOOD | {"user_id": user}).encode()
                await bus.publish(JOBS, Message(user, body))
            for user in ("User-A", "ada@example.org", "Zq3VXk0LhGd7m2QwErTyUiOpAsD2"):
                run = await appeared(app, "job-1", user)
                assert (await run.info()).tenant == user
                assert (await run.result()).metadata["scenes"] == 3

    asyncio.run(story())


async def appeared(app, key, tenant=None):
    change = 0
    async with asyncio.timeout(20):
        while True:
            try:
                return await app.run(key, tenant=tenant)
            except Exception:
                change = await app.store.wait(change, 1.0)


def test_rows_09_12_the_seeds_own_command_starts_the_worker(deployment):
    assert "--project aiprod-484120 has no effect: the bus is redis://" in deployment.log()
    assert ", 5 runs at once" in deployment.log()
    assert f"receives {JOBS}=creative as subscription holdfast-creative" in deployment.log()


def test_rows_13_14_37_malformed_and_incomplete_messages_are_buried_and_the_stream_lives(
    deployment,
):
    letters = {letter.id: letter for letter in deployment.letters()}
    assert set(letters) >= {f"message:{JOBS}:m-3", f"message:{JOBS}:m-4"}
    assert "content" in letters[f"message:{JOBS}:m-4"].reason
    assert by_key(deployment)["job-3"].state == "succeeded"  # it came after them


def test_row_21_a_dead_letter_is_there_once_with_its_bytes(deployment):
    ids = Counter(letter.id for letter in deployment.letters())
    assert set(ids.values()) == {1}
    conflict = next(letter for letter in deployment.letters() if letter.id.endswith(":m-5"))
    assert json.loads(conflict.body) == GOOD | {"content": "Other words."}
    assert "another input" in conflict.reason


def test_rows_20_23_25_41_a_duplicate_is_one_job(deployment):
    assert Counter(body["job_id"] for body in deployment.bodies(RESULTS)) == {
        "job-1": 1,
        "job-2": 1,
        "job-3": 1,
    }
    assert len(deployment.runs()) == 3


# --- on Pub/Sub and PostgreSQL --------------------------------------------------------------------


@pytest.fixture(scope="module")
def cloud(tmp_path_factory):
    """The seed's own command with the seed's own services, and other systems that use Google's
    client library."""
    deployment = PubSubDeployment(
        tmp_path_factory.mktemp("cloud"), HOLDFAST_APP="examples/creative/pipeline.py"
    )
    output = deployment.holdfast("setup", "pubsub", "--project", deployment.project)
    assert output.returncode == 0, output.stderr
    deployment.start_worker()
    try:
        deployment.send(*[(body, attributes) for _, body, attributes in ORDERS])
        deployment.cloud_results = deployment.results(3)
        deployment.cloud_letters = deployment.dead_letters(4)
        deployment.exit_codes = deployment.stop()
        yield deployment
    finally:
        deployment.kill()


def figures(deployment, name):
    path = deployment.google.subscription(name)
    return deployment.google.subscriber.get_subscription(request={"subscription": path})


def test_rows_01_05_jobs_are_consumed_from_the_topic(cloud):
    runs = by_key(cloud)
    assert {key: run.state for key, run in runs.items()} == {
        "job-1": "succeeded",
        "job-2": "failed",
        "job-3": "succeeded",
    }
    assert runs["job-1"].attributes["message-topic"] == JOBS
    assert cloud.google.pull(f"{JOBS}-sub", timeout=0.5) == []  # all are acknowledged


def test_rows_02_03_04_topics_and_subscriptions_have_the_seeds_figures(cloud):
    for topic, deadline in ((JOBS, 300), (RESULTS, 60), (DLQ, 60)):
        subscription = figures(cloud, f"{topic}-sub")
        assert subscription.topic.endswith(f"/topics/{topic}")
        assert subscription.ack_deadline_seconds == deadline


def test_rows_03_07_results_are_published_once_each(cloud):
    results = {body["job_id"]: body for body in cloud.cloud_results}
    assert list(results["job-1"]) == ["job_id", "status", "output", "error", "execution_time_ms"]
    assert {job: body["status"] for job, body in results.items()} == {
        "job-1": "completed",
        "job-2": "failed",
        "job-3": "completed",
    }


def test_rows_04_08_dead_letters_are_published_once_each(cloud):
    assert Counter(body["job_id"] for body in cloud.cloud_letters) == {
        "job-1": 1,
        "job-2": 1,
        "job-4": 1,
        None: 1,
    }
    assert all(
        list(body) == ["job_id", "error", "traceback", "timestamp"] for body in cloud.cloud_letters
    )


def test_row_10_the_project_is_named_and_never_that_of_somebody_else(tmp_path):
    from holdfast.bootstrap.pubsub import bus_url
    from holdfast.settings import load

    home = {"HOME": str(tmp_path)}
    assert bus_url(load(env=home, cwd=tmp_path)) == "none"
    env = home | {"PUBSUB_PROJECT_ID": "aiprod-484120"}
    assert bus_url(load(env=env, cwd=tmp_path)) == "pubsub://aiprod-484120"


def test_rows_11_42_the_worker_takes_five_messages_and_ten_megabytes(cloud):
    log = cloud.log()
    assert f"receives {JOBS}=creative as subscription {JOBS}-sub" in log
    assert "at most 5 messages and 10.0 MiB at once" in log
    assert ", 5 runs at once" in log


def test_row_42_the_path_of_the_subscription(cloud):
    from holdfast.adapters.pubsub.address import parse

    path = parse("pubsub://aiprod-484120").subscription(f"{JOBS}-sub")
    assert path == f"projects/aiprod-484120/subscriptions/{JOBS}-sub"


def test_row_44_application_credentials_are_those_of_the_file(tmp_path, monkeypatch):
    from holdfast.adapters.google_credentials import ENCODED, load_credentials

    path = tmp_path / "credentials.json"
    user = {"type": "authorized_user", "client_id": "id", "client_secret": "x"}
    path.write_text(json.dumps(user | {"refresh_token": "ours"}))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
    monkeypatch.delenv(ENCODED, raising=False)
    assert load_credentials(ENCODED).refresh_token == "ours"


def test_row_59_pubsub_backs_off_and_puts_aside_after_five(cloud):
    subscription = figures(cloud, f"{JOBS}-sub")
    assert subscription.retry_policy.minimum_backoff.seconds == 10
    assert subscription.retry_policy.maximum_backoff.seconds == 600
    assert subscription.dead_letter_policy.max_delivery_attempts == 5
    assert subscription.dead_letter_policy.dead_letter_topic.endswith(f"/topics/{DLQ}")


def test_row_60_ordering_keys_are_the_user_of_a_job_and_the_job_of_a_result(cloud):
    assert figures(cloud, f"{JOBS}-sub").enable_message_ordering
    assert len(cloud.google.taken(f"{RESULTS}-sub")) >= 3
    for message in cloud.google.taken(f"{RESULTS}-sub"):
        assert message.ordering_key == json.loads(message.data)["job_id"]
    keys = {json.loads(m.data)["job_id"]: m.ordering_key for m in cloud.google.taken(f"{DLQ}-sub")}
    assert keys["job-2"] == "job-2"
    assert keys["job-4"] == "job-4"


def test_row_08_a_key_in_a_message_is_in_nothing_that_the_worker_keeps_or_publishes(cloud):
    assert CANARY not in cloud.log()
    published = [*cloud.google.taken(f"{RESULTS}-sub"), *cloud.google.taken(f"{DLQ}-sub")]
    assert CANARY not in repr(published)
    assert CANARY not in repr(cloud.runs())
    assert CANARY not in repr(cloud.letters())


def test_row_61_ctrl_c_stops_the_worker_on_pubsub_cleanly(cloud):
    assert cloud.exit_codes == [0]


# --- messages out ---------------------------------------------------------------------------------


def test_rows_07_39_43_results_have_the_seeds_fields(deployment):
    results = {body["job_id"]: body for body in deployment.bodies(RESULTS)}
    result = results["job-1"]
    assert list(result) == ["job_id", "status", "output", "error", "execution_time_ms"]
    assert (result["status"], result["error"]) == ("completed", None)
    assert result["output"]["metadata"]["campaign"] == "spring"
    failed = results["job-2"]
    assert (failed["status"], failed["output"]) == ("failed", None)
    assert "unknown preset" in failed["error"]
    for message in deployment.published(RESULTS):
        assert message.ordering_key == json.loads(message.body)["job_id"]


def test_rows_08_40_43_dead_letters_have_the_seeds_fields_and_come_once(deployment):
    letters = deployment.bodies(DLQ)
    assert all(list(letter) == ["job_id", "error", "traceback", "timestamp"] for letter in letters)
    assert Counter(letter["job_id"] for letter in letters) == {
        "job-1": 1,  # the conflicting message
        "job-2": 1,
        "job-4": 1,
        None: 1,
    }
    for message in deployment.published(DLQ):
        assert message.ordering_key
        assert message.ordering_key == (json.loads(message.body)["job_id"] or message.ordering_key)
    failed = next(letter for letter in letters if letter["job_id"] == "job-2")
    assert "unknown preset" in failed["error"]
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", failed["timestamp"])


def test_rows_19_error_details_hold_a_traceback(deployment):
    failed = next(body for body in deployment.bodies(DLQ) if body["job_id"] == "job-2")
    assert failed["traceback"].startswith("Traceback")
    assert "in sanitize" in failed["traceback"]
    assert by_key(deployment)["job-2"].error.traceback == failed["traceback"]


def test_row_36_execution_time_is_measured_by_a_monotonic_clock():
    class Printer:
        def __init__(self):
            self.bodies = []

        async def open(self): ...

        async def close(self): ...

        async def publish(self, topic, message):
            if topic == RESULTS:
                self.bodies.append(json.loads(message.body))

    slow = Pipeline("slow")

    @slow.step
    async def work() -> int:
        await asyncio.sleep(90)
        return 1

    bus = Printer()
    engine = TestEngine(slow, bus=bus, projections=[job_results(RESULTS)])
    engine.submit(slow)
    engine.advance(30)
    engine.clock.jump_wall(-7200)  # somebody sets the clock back while the job runs
    engine.advance(100)
    [body] = bus.bodies
    assert 90_000 <= body["execution_time_ms"] < 91_000
    engine.close()


# --- the life of a job ----------------------------------------------------------------------------


def test_rows_15_16_17_18_30_38_states_follow_one_another(deployment):
    async def histories(app):
        return {
            run.key: [event.type for event in await app.store.history(run.id)]
            for run in office_runs
        }

    office_runs = deployment.runs()
    history = deployment.look(histories)
    changes = [type for type in history["job-1"] if type.startswith("run.")]
    assert changes == ["run.queued", "run.started", "run.completed"]
    assert [t for t in history["job-2"] if t.startswith("run.")][-1] == "run.failed"
    run = by_key(deployment)["job-1"]
    assert run.created <= run.started <= run.finished


def test_rows_26_27_28_the_states_of_the_creative_pipeline(deployment):
    async def steps(app):
        run = await app.run("job-1")
        history = await app.store.history(run.id)
        return [json.loads(e.data)["step"] for e in history if e.type == "step.completed"]

    names = ["INPUT_SANITIZED", "AGENTS_EXECUTED", "QA_TECH", "QA_SEMANTIC", "FINAL_APPROVAL"]
    assert sorted(deployment.look(steps)) == sorted([*names, "DELIVERED"])
    output = next(b for b in deployment.bodies(RESULTS) if b["job_id"] == "job-1")["output"]
    assert set(output) == {"audio", "video", "metadata"}
    page = (deployment.folder / "blobs" / output["video"]).read_text()
    assert "Coffee smells" in page
    assert "<b>" not in page


def test_row_22_retries_back_off_and_end():
    tries = []
    shaky = Pipeline("shaky")

    @shaky.step(max_attempts=5, retry=Retry(base=1.0))
    async def work() -> int:
        tries.append(asyncio.get_running_loop().time())
        raise Transient("away")

    engine = TestEngine(shaky)
    run = engine.submit(shaky)
    engine.advance(600)
    assert len(tries) == 5
    waits = [later - earlier for earlier, later in pairwise(tries)]
    assert all(0.5 * 2**n <= wait <= 1.1 * 2**n for n, wait in enumerate(waits)), waits
    with pytest.raises(RunFailed):
        engine.result(run)
    engine.close()


def test_row_24_while_the_database_is_away_a_message_is_not_acknowledged(monkeypatch):
    async def story():
        bus = InProcessBus()
        async with Holdfast("memory:", [creative], bus=bus, worker=False) as app:
            away, refused = [True], asyncio.Event()
            apply = app.store.apply

            async def sometimes(commands):
                if away[0] and any(type(command).__name__ == "Submit" for command in commands):
                    refused.set()
                    raise StoreUnavailable("away")
                return await apply(commands)

            monkeypatch.setattr(app.store, "apply", sometimes)
            monkeypatch.setattr("holdfast.engine.receiver.NACK_DELAY", 0.05)
            await app.receive(JOBS, creative)
            await bus.publish(JOBS, Message("m", json.dumps(GOOD).encode()))
            await asyncio.wait_for(refused.wait(), 20)
            away[0] = False
            run = await appeared(app, "job-1")
            assert int((await run.info()).attributes["delivery-attempt"]) > 1

    asyncio.run(story())


def test_rows_31_32_pool_and_time_out_are_settings(tmp_path):
    from holdfast.bootstrap import Options
    from holdfast.settings import load

    env = {"HOME": str(tmp_path), "DATABASE_URL": "postgresql://localhost/jobs"}
    env |= {"HOLDFAST_POOL_SIZE": "10", "HOLDFAST_TIMEOUT_COMMAND": "30s"}
    options = Options().with_settings(load(env=env, cwd=tmp_path))
    assert options.store == "postgresql://localhost/jobs?pool=10&timeout=30"


def test_rows_15_29_the_tables_of_jobs_are_views_on_postgresql():
    server, schema = postgres_server.shared_server(), postgres_server.fresh_schema()

    async def story():
        async with Holdfast(server.url(schema), [creative], blobs="memory:") as app:
            labels = {"user_id": "User-A"}
            for job in (GOOD, FAILING):
                run = await app.submit(creative, JobMessage(**job), labels=labels)
                await run.wait(30)

    asyncio.run(story())
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"SET search_path TO {schema}")
        jobs = "SELECT id, user_id, content, preset, state FROM jobs ORDER BY id"
        assert connection.execute(jobs).fetchall() == [
            ("job-1", "User-A", CONTENT, "quick_social", "completed"),
            ("job-2", "User-A", CONTENT, "unknown_preset", "failed"),
        ]
        states = (
            "SELECT previous_state, new_state FROM job_states WHERE job_id = 'job-1' ORDER BY id"
        )
        assert connection.execute(states).fetchall() == [
            (None, "pending"),
            ("pending", "processing"),
            ("processing", "completed"),
        ]
        results = "SELECT job_id, status, processing_time_ms >= 0 FROM job_results ORDER BY job_id"
        assert connection.execute(results).fetchall() == [
            ("job-1", "success", True),
            ("job-2", "error", True),
        ]


def test_row_47_a_worker_takes_more_than_twenty_jobs_a_second():
    async def story():
        quick = Pipeline("quick", input=dict)

        @quick.step
        async def work(request: dict) -> int:
            return 1

        bus = InProcessBus()
        async with Holdfast("memory:", [quick], bus=bus) as app:
            await app.receive(JOBS, quick)
            loop = asyncio.get_running_loop()
            started = loop.time()
            for number in range(200):
                await bus.publish(JOBS, Message(str(number), b"{}"))
            change = 0
            from holdfast.ports.store import RunFilter

            while (await app.store.count(RunFilter())).get("succeeded") != 200:
                change = await app.store.wait(change, 1.0)
            return 200 / (loop.time() - started)

    assert asyncio.run(story()) > 20


# --- the log --------------------------------------------------------------------------------------


def lines(deployment, job):
    return [
        line for line in deployment.log().splitlines() if "holdfast.jobs" in line or job in line
    ]


def test_rows_51_52_53_54_55_the_lines_of_a_job_that_succeeds(deployment):
    log = deployment.log()
    patterns = [
        "Started processing job job-1",
        "Job job-1 status: PENDING → PROCESSING",
        r"Pipeline executed in \d+ms",
        "Job job-1 status: PROCESSING → COMPLETED",
    ]
    matches = [re.search(line, log) for line in patterns]
    assert all(matches), log
    starts = [match.start() for match in matches if match]
    assert starts[0] < starts[1] < starts[3]
    assert f"Result published to {RESULTS}" in log


def test_rows_56_58_the_lines_of_a_job_that_fails(deployment):
    log = deployment.log()
    assert re.search(r"ERROR.*Error processing job job-2: unknown preset", log), log
    assert re.search(r"WARNING.*Message published to DLQ", log)


def test_row_57_the_line_of_a_retry(caplog):
    from holdfast.apps.compat.jobs import LOG

    caplog.set_level("INFO", "holdfast.jobs")
    shaky = Pipeline("shaky")

    @shaky.step(max_attempts=2)
    def work() -> int:
        raise Transient("away", retry_after=600)

    engine = TestEngine(shaky, bus=InProcessBus(), projections=[LOG])
    engine.submit(shaky)
    engine.advance(30)
    engine.close()
    assert "Message nacked for retry (attempt 1)" in caplog.text


def test_row_61_ctrl_c_stops_the_worker_cleanly(deployment):
    assert deployment.exit_codes == [0]


# --- secrets --------------------------------------------------------------------------------------


def test_row_08_a_key_in_a_message_is_in_nothing_that_is_kept(deployment):
    assert CANARY not in deployment.log()
    assert CANARY not in deployment.everything(
        excluded=f"topic:{JOBS}"
    )  # what others publish is theirs
    assert CANARY not in "".join(
        deployment.bodies_as_text(topic) for topic in (RESULTS, DLQ, EVENTS)
    )
    for path in deployment.folder.rglob("*"):
        assert path.is_dir() or CANARY.encode() not in path.read_bytes(), path


class Canary(Exception):
    """An error of somebody's own, with the key in its text."""


@pytest.mark.parametrize("kind", STORES)
def test_row_08_a_key_that_a_step_gives_away_is_masked_on_every_store(kind, tmp_path, caplog):
    """In the run, its events, its logs, its dead letter and what is published of them."""
    caplog.set_level("DEBUG")
    careless = Pipeline("careless", input=dict, key=lambda job: job["job_id"])

    @careless.step(max_attempts=1)
    async def work(request: dict, ctx: Context) -> int:
        key = ctx.secret("api_key")
        ctx.log.warning(f"I use {key}")
        raise Canary(f"401 for {key}")

    async def story():
        bus = InProcessBus()
        store = make_store(kind, SystemClock(), tmp_path)
        deliveries = bus.subscribe(DLQ, "test")
        await deliveries.begun()
        options = {"bus": bus, "projections": [job_dead_letters(DLQ)], "blobs": "memory:"}
        async with Holdfast(store, [careless], **options) as app:
            await app.receive(JOBS, careless)
            body = {"job_id": "job-1", "api_key": CANARY, "nested": [{"Authorization": CANARY}]}
            await bus.publish(JOBS, Message("m", json.dumps(body).encode(), {"x-api-key": CANARY}))
            published = await asyncio.wait_for(anext(deliveries), 20)
            run = await app.run("job-1")
            return [
                await run.info(),
                await app.store.history(run.id),
                await app.store.logs(run.id),
                await app.store.dead_letters(),
                published.message,
            ]

    texts = asyncio.run(story())
    assert texts[0].state == "failed"
    assert CANARY not in repr(texts)
    assert CANARY not in caplog.text
    assert "401 for" in repr(texts[4])
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or CANARY.encode() not in path.read_bytes(), path


def test_rows_08_40_what_a_projection_could_not_publish_is_no_job_of_its_own(caplog):
    """Else its dead letter would be published, would fail, and so on for ever."""

    class Refusing:
        def __init__(self):
            self.tried = []

        async def open(self): ...

        async def close(self): ...

        async def publish(self, topic, message):
            if topic == DLQ:
                self.tried.append(json.loads(message.body)["job_id"])
                raise Permanent("the topic takes no such messages")

    bus = Refusing()
    engine = TestEngine(creative, bus=bus, projections=[job_dead_letters(DLQ)])
    engine.submit(creative, JobMessage(**FAILING))
    engine.advance(30)
    sources = {letter.source for letter in engine.call(engine.store.dead_letters())}
    engine.close()
    assert bus.tried == ["job-2"]
    assert any(source.startswith("projection:") for source in sources), sources


def test_row_18_error_path_end_to_end_keeps_the_reason():
    broken = Pipeline("broken")

    @broken.step
    def work() -> int:
        raise Permanent("no such media")

    engine = TestEngine(broken)
    run = engine.submit(broken)
    engine.advance(1)
    info = engine.info(run)
    assert (info.state, info.error.message, info.error.step) == ("failed", "no such media", "work")
    engine.close()


@pytest.fixture(params=WEB_STORES)
def web(request, tmp_path):
    """The service on every store."""
    with a_web(request.param, tmp_path) as opened:
        yield opened


def test_rows_33_34_35_a_job_is_accepted_at_once_and_followed_by_its_id(web):
    user, other = web.client("acme1281", "submit", "read"), web.client("bolt", "submit", "read")
    job = {"content": "A city wakes up.", "preset": "quick_social", "user_id": "User-A"}
    accepted = user.post("/pipeline/run", json=job)
    assert accepted.status_code == 200
    body = accepted.json()
    assert body["status"] == "queued"
    assert body["check_status_at"] == f"/pipeline/job/{body['job_id']}"
    live = user.get(body["check_status_at"]).json()
    assert live["status"] in ("pending", "processing")
    assert (live["user_id"], live["preset"], live["result"]) == ("User-A", "quick_social", None)
    web.gate.open.set()
    web.ended(user, body["job_id"])
    status = user.get(body["check_status_at"]).json()
    assert status["status"] == "completed"
    assert status["result"]["status"] == "success"
    assert status["result"]["output"]["audio"] == "a.wav"
    assert status["result"]["processing_time_ms"] >= 0
    changes = [
        (change["previous_state"], change["new_state"]) for change in status["state_history"]
    ]
    assert changes == [(None, "pending"), ("pending", "processing"), ("processing", "completed")]
    page = user.get("/pipeline/jobs", params={"status": "completed", "limit": 5}).json()
    assert [item["job_id"] for item in page["jobs"]] == [body["job_id"]]
    assert user.get("/pipeline/jobs", params={"offset": 1}).json()["jobs"] == []
    assert other.get(body["check_status_at"]).status_code == 404
    assert user.post("/pipeline/run", json={"content": ""}).status_code == 422


def test_row_35_a_failed_job_says_why(web):
    user = web.client("acme1281", "submit", "read")
    web.gate.fails = True
    web.gate.open.set()
    body = user.post("/pipeline/run", json={"content": "x"}).json()
    web.ended(user, body["job_id"])
    failed = user.get(body["check_status_at"]).json()
    assert (failed["status"], failed["result"]["status"]) == ("failed", "error")
    assert "the table does not exist" in failed["result"]["error_message"]


def test_row_45_there_is_an_image_that_starts_the_worker():
    text = (ROOT / "Dockerfile").read_text()
    assert "pip install" in text
    assert 'ENTRYPOINT ["holdfast"]' in text
    [compose] = documents(DEPLOY / "compose.yaml")
    worker = compose["services"]["worker-pubsub"]
    assert worker["entrypoint"] == ["python", "-m", "holdfast.worker"]
    assert worker["command"] == ["--project", "local-project", "--threads", "5"]


def test_row_46_the_cloud_run_job_has_the_worker_s_figures():
    job = cloud_run("job.yaml")
    assert job["kind"] == "Job"
    template = job["spec"]["template"]
    annotations = template["metadata"]["annotations"]
    assert annotations["run.googleapis.com/execution-environment"] == "gen2"
    assert template["spec"]["parallelism"] == 5
    worker = container(job)
    assert worker["resources"]["limits"] == {"cpu": "1", "memory": "2Gi"}
    assert worker["args"][:4] == ["--project", "${PROJECT}", "--threads", "5"]


def test_row_62_a_workflow_builds_pushes_and_deploys_the_image():
    [workflow] = documents(WORKFLOWS / "deploy-cloud-run.yml")
    steps = " ".join(step.get("run", "") for step in workflow["jobs"]["deploy"]["steps"])
    for command in ("docker build", "docker push", "gcloud run services replace"):
        assert command in steps


def test_row_63_workers_are_scaled_by_what_waits():
    [rule] = documents(DEPLOY / "kubernetes" / "keda.yaml")
    assert rule["spec"]["scaleTargetRef"] == {"name": "holdfast-worker"}
    assert (rule["spec"]["minReplicaCount"], rule["spec"]["maxReplicaCount"]) == (0, 10)
    [trigger] = rule["spec"]["triggers"]
    assert "pipeline_queue_depth" in trigger["metadata"]["query"]


# --- metrics --------------------------------------------------------------------------------------


def test_rows_48_49_50_messages_jobs_and_acknowledgements_are_counted():
    pipeline = Pipeline("jobs", input=int, max_attempts=1)

    @pipeline.step
    async def only(input: int) -> int:
        if input < 0:
            raise TypeError("negative")
        return input

    async def story():
        app = Holdfast("memory:", [pipeline], bus="memory:", metrics=PrometheusMetrics())
        async with app:
            await app.receive("work", pipeline)
            for number, body in enumerate((b"1", b"2", b"-1", b"nonsense")):
                await app.bus.publish("work", Message(str(number), body, {}))
            for _ in range(400):
                reading = await read(app)
                if reading("pipeline_job_duration_seconds_count", pipeline_id="jobs") == 3:
                    break
                app.metrics_export._read_at = None  # figures of the cluster are kept for 5 seconds
                await asyncio.sleep(0.01)
            return reading

    reading = asyncio.run(story())
    queue = {"queue": "work"}
    assert reading("pipeline_messages_consumed_total", **queue) == 4
    assert reading("pipeline_messages_processed_total", **queue) == 4
    assert reading("pipeline_messages_failed_total", **queue) == 1
    assert reading("pipeline_message_processing_seconds_count", **queue) == 4
    assert reading("pipeline_messages_in_flight", **queue) == 0
    assert reading("pipeline_messages_acked_total", **queue) == 4
    assert reading("pipeline_ack_ratio", **queue) == 1.0
    assert reading("pipeline_dlq_messages") == 2
    of = {"tenant_id": "default", "pipeline_id": "jobs"}
    assert reading("pipeline_jobs_created_total", **of) == 3
    assert reading("pipeline_jobs_completed_total", **of) == 2
    assert reading("pipeline_jobs_failed_total", **of) == 1
    assert reading("pipeline_job_duration_seconds_count", pipeline_id="jobs") == 3
    assert reading("pipeline_state_transitions_total", from_="running", to="failed") == 1
