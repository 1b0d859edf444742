"""Pipeline concurrency control: one live execution for each tenant and pipeline.

Tests are named after the rows of the list of features; see conftest.py."""

import asyncio
import os
import subprocess
import sys
import time
from dataclasses import fields, replace
from inspect import iscoroutinefunction, signature
from pathlib import Path

import httpx2
import pytest
from tests import redis_server
from tests.acceptance.conftest import Cli
from tests.acceptance.seeds.stores import STORES, make_store, url_of
from tests.acceptance.seeds.web import STORES as WEB_STORES
from tests.acceptance.seeds.web import a_web
from tests.deploy.descriptions import ROOT, terraform
from tests.emulators import fresh_firestore
from tests.integration.api.live import LiveApi
from tests.integration.redis.helpers import a_server
from tests.integration.test_alerts import ALERTS, DASHBOARD, named, promtool
from tests.metrics_reading import Reading, read

from holdfast import Conflict, Holdfast, LeaseLost, Permanent, Pipeline
from holdfast.adapters.prometheus.metrics import PrometheusMetrics
from holdfast.apps.compat import PipelineLock, PipelineLockManager, get_pipeline_lock_manager
from holdfast.apps.compat import pipeline_lock as module
from holdfast.bootstrap import Options
from holdfast.bootstrap import metrics as process_metrics
from holdfast.errors import ConfigurationError, StoreUnavailable
from holdfast.model.clock import SystemClock
from holdfast.model.metrics import BY_NAME
from holdfast.settings import load
from holdfast.testing import TestEngine
from holdfast.testing.clock import ManualClock

ROWS = 62
OPEN = {}

LOCK = {"tenant_id": "acme1281", "pipeline_id": "gcp_billing_export"}


@pytest.fixture(params=STORES)
def kind(request):
    return request.param


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def make(kind, clock, tmp_path):
    """Managers, all on one store."""
    store = make_store(kind, clock, tmp_path)
    yield lambda *args, **options: PipelineLockManager(
        *args, store=store, app=str(tmp_path), **options
    )
    asyncio.run(store.close())


def acquire(manager, id="abc-123-def-456", locked_by="api_user", **changes):
    return manager.acquire_lock(**LOCK | changes, pipeline_logging_id=id, locked_by=locked_by)


def release(manager, id="abc-123-def-456", **changes):
    return manager.release_lock(**LOCK | changes, pipeline_logging_id=id)


# --- unique pipelines: the same, for runs ---------------------------------------------------------


def unique_pipeline(step=lambda: 1):
    pipeline = Pipeline("gcp_billing_export", unique=True)
    pipeline.step(name="export", max_attempts=1)(step)
    return pipeline


@pytest.fixture
def engine():
    engine = TestEngine(unique_pipeline())
    yield engine
    engine.close()


def submit(engine, input=None, tenant="acme1281"):
    return engine.call(engine.app.submit("gcp_billing_export", input, tenant=tenant))


def test_rows_01_02_03_a_duplicate_gets_the_live_run_whatever_its_parameters(engine):
    first = submit(engine, {"date": "2025-11-15"})
    for again in (submit(engine, {"date": "2025-11-15"}), submit(engine, {"date": "other"})):
        assert (again.id, again.created) == (first.id, False)


def test_row_04_the_slot_is_free_after_completion(engine):
    first = submit(engine)
    engine.drain()
    assert submit(engine).id != first.id


def test_row_05_the_slot_is_free_after_a_failure():
    def fail():
        raise Permanent("no such table")

    engine = TestEngine(unique_pipeline(fail))
    first = submit(engine)
    engine.drain()
    assert engine.info(first).state == "failed"
    assert submit(engine).created
    engine.close()


def test_row_06_the_slot_of_a_dead_process_frees_itself(engine):
    first = submit(engine)
    engine.crash_after("export")
    engine.drain()
    assert engine.info(first).state == "succeeded"
    assert submit(engine).created


def test_row_07_tenants_do_not_meet(engine):
    assert submit(engine).created
    assert submit(engine, tenant="acme9999").created


def test_rows_01_02_03_04_05_07_the_slot_is_one_on_every_store(kind, tmp_path):
    outcomes = iter(["fails", "works"])

    async def export(input: str) -> str:
        await let_go.acquire()
        if next(outcomes) == "fails":
            raise Permanent("no such table")
        return input

    let_go = asyncio.Semaphore(0)
    pipeline = Pipeline("gcp_billing_export", input=str, unique=True)
    pipeline.step(export)

    async def story():
        store = make_store(kind, SystemClock(), tmp_path)
        async with Holdfast(store, [pipeline]) as app:

            async def submit(input, tenant="acme1281"):
                return await app.submit(pipeline, input, tenant=tenant)

            tried = await asyncio.gather(*(submit(f"{number}") for number in range(20)))
            [first] = {run.id for run in tried}
            assert [run.created for run in tried].count(True) == 1
            let_go.release()
            assert await tried[0].wait(30) == "failed"
            second = await submit("again")
            assert second.created
            assert (await submit("once more")).id == second.id != first
            let_go.release()
            assert await second.result(30) == "again"
            assert (await submit("later")).created
            assert (await submit("theirs", "acme9999")).created

    asyncio.run(story())


def test_row_08_what_was_accepted_survives_the_process(tmp_path):
    url = f"sqlite:///{tmp_path}/runs.db"

    async def accept():
        async with Holdfast(url, [unique_pipeline()], worker=False) as app:
            return (await app.submit("gcp_billing_export", tenant="acme1281")).id

    async def work():
        async with Holdfast(url, [unique_pipeline()]) as app:
            return await (await app.run(id)).result()

    id = asyncio.run(accept())
    assert asyncio.run(work()) == 1


# --- the classes ----------------------------------------------------------------------------------


def test_row_09_pipeline_lock_has_the_known_fields_in_their_order():
    names = [field.name for field in fields(PipelineLock)]
    assert names[:5] == [
        "pipeline_logging_id",
        "tenant_id",
        "pipeline_id",
        "locked_at",
        "locked_by",
    ]
    lock = PipelineLock("abc-123", "acme1281", "gcp_billing_export", 1763200000.0, "api_user")
    assert lock.locked_by == "api_user"


def test_row_10_the_managers_methods_have_the_known_signatures():
    assert next(iter(signature(PipelineLockManager).parameters)) == "lock_timeout_seconds"
    assert list(signature(PipelineLockManager.acquire_lock).parameters)[1:5] == [
        "tenant_id",
        "pipeline_id",
        "pipeline_logging_id",
        "locked_by",
    ]
    assert list(signature(PipelineLockManager.release_lock).parameters)[1:] == [
        "tenant_id",
        "pipeline_id",
        "pipeline_logging_id",
    ]
    for name in ("acquire_lock", "release_lock", "get_lock_status", "get_active_locks"):
        assert iscoroutinefunction(getattr(PipelineLockManager, name))


def test_row_11_acquire_lock_answers_whether_it_was_acquired_or_by_whom_it_is_held(make):
    async def story():
        lock_manager = make()
        lock_acquired, existing_id = await lock_manager.acquire_lock(
            tenant_id="acme1281",
            pipeline_id="gcp_billing_export",
            pipeline_logging_id="abc-123-def-456",
            locked_by="api_user",
        )
        assert (lock_acquired, existing_id) == (True, None)
        assert await acquire(lock_manager, "id-2") == (False, "abc-123-def-456")
        assert await acquire(make(), "id-3") == (False, "abc-123-def-456")

    asyncio.run(story())


def test_row_12_release_lock_is_for_the_holder_alone(make):
    async def story():
        manager = make()
        assert not await release(manager)
        await acquire(manager)
        assert not await release(manager, "another")
        assert await release(make())
        assert not await release(manager)
        assert await acquire(manager, "id-2") == (True, None)

    asyncio.run(story())


def test_row_13_active_locks_are_those_of_a_tenant_or_of_all(make, clock):
    async def story():
        manager = make()
        await acquire(manager, "a", "ann")
        await acquire(manager, "b", "bob", pipeline_id="other")
        await acquire(manager, "c", "cem", tenant_id="acme9999")
        assert list(await manager.get_active_locks()) == [
            "acme1281:gcp_billing_export",
            "acme1281:other",
            "acme9999:gcp_billing_export",
        ]
        assert list(await manager.get_active_locks("acme9999")) == ["acme9999:gcp_billing_export"]
        status = await manager.get_lock_status("acme1281", "other")
        assert (status.pipeline_logging_id, status.locked_by) == ("b", "bob")
        assert status.locked_at == clock.now()
        assert await manager.get_lock_status("acme9999", "other") is None

    asyncio.run(story())


def test_row_14_an_expired_lock_is_removed_and_leaves_a_warning(make, clock, caplog):
    async def story():
        manager = make(lock_timeout_seconds=60)
        await acquire(manager)
        await acquire(manager, "x", pipeline_id="other")
        clock.advance(61)
        assert await acquire(manager, "id-2") == (True, None)
        assert caplog.messages[-2:] == [
            "Removed expired lock: acme1281:gcp_billing_export",
            "Lock acquired",
        ]
        await make().get_active_locks()
        assert caplog.messages[-1] == "Removed expired lock: acme1281:other"
        caplog.clear()
        await manager.get_active_locks()
        assert caplog.messages == []

    with caplog.at_level("INFO", "holdfast.pipeline_locks"):
        asyncio.run(story())


def test_row_15_there_is_one_manager_for_a_process(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_managers", {})
    monkeypatch.setenv("HOLDFAST_LOCKS_APP", str(tmp_path))

    async def story():
        lock_manager = get_pipeline_lock_manager()
        assert get_pipeline_lock_manager() is lock_manager
        assert lock_manager.lock_timeout_seconds == 3600
        longer = get_pipeline_lock_manager(lock_timeout_seconds=7200)
        assert longer.lock_timeout_seconds == 7200
        assert get_pipeline_lock_manager(lock_timeout_seconds=7200) is longer
        assert await acquire(longer) == (True, None)
        assert await acquire(lock_manager, "id-2") == (False, "abc-123-def-456")

    asyncio.run(story())


def test_rows_16_34_a_lock_expires_under_a_live_holder(make, clock):
    async def story():
        lock_manager = make(lock_timeout_seconds=60)
        assert await acquire(lock_manager) == (True, None)
        clock.advance(59)
        assert await acquire(lock_manager, "id-2") == (False, "abc-123-def-456")
        clock.advance(2)
        assert await acquire(lock_manager, "id-2") == (True, None)
        assert not await release(lock_manager)
        assert (await lock_manager.get_lock_status(**LOCK)).pipeline_logging_id == "id-2"

    asyncio.run(story())


def test_row_17_without_a_store_the_locks_are_in_memory_and_need_nothing(tmp_path):
    async def story():
        manager = PipelineLockManager(app=str(tmp_path))
        assert await acquire(manager)
        assert not await acquire(manager, "id-2")

    asyncio.run(story())


HOLD = """
import asyncio, sys
from holdfast.apps.compat import PipelineLockManager

async def main():
    manager = PipelineLockManager(app=sys.argv[1])
    print(await manager.acquire_lock("acme", "x", sys.argv[2], "me"), flush=True)
    sys.stdin.read()

asyncio.run(main())
"""


def hold(app, id, **env):
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, app, id],
        env=os.environ | env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def refusal(app, **env):
    process = hold(app, "b", **env)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    return err.splitlines()[-1]


def test_row_18_locks_in_memory_refuse_a_second_process(tmp_path):
    app = str(tmp_path)
    first = hold(app, "a")
    assert first.stdout.readline().startswith("Acquisition(acquired=True")
    message = refusal(app)
    assert f"process {first.pid} of this program already holds pipeline locks in memory" in message
    assert "HOLDFAST_STORE=redis://" in message
    first.communicate(timeout=60)
    second = hold(app, "b")
    assert second.stdout.readline().startswith("Acquisition(acquired=True")
    second.communicate(timeout=60)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("WEB_CONCURRENCY", "4", "WEB_CONCURRENCY is 4: locks in memory are known to one process"),
        ("K_SERVICE", "convergence-api", "Cloud Run service 'convergence-api'"),
    ],
)
def test_row_18_locks_in_memory_refuse_several_instances(name, value, says, monkeypatch, tmp_path):
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=says):
        asyncio.run(acquire(PipelineLockManager(app=str(tmp_path))))
    shared = PipelineLockManager(store=url_of("sqlite", tmp_path))
    assert asyncio.run(acquire(shared))


def test_row_18_a_forked_child_is_a_second_process(tmp_path):
    manager = PipelineLockManager(app=str(tmp_path))
    asyncio.run(acquire(manager))
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(manager.get_active_locks())
        except ConfigurationError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_row_19_the_key_is_tenant_and_pipeline_and_no_two_pairs_share_one(make):
    async def story():
        manager = make()
        pairs = [("a:b", "c"), ("a", "b:c"), ("a/b", "c"), ("a", "b/c"), ("a%2Fb", "c")]
        for number, (tenant, pipeline) in enumerate(pairs):
            assert await manager.acquire_lock(tenant, pipeline, f"id-{number}", "me")
        assert list(await manager.get_active_locks("a")) == ["a:b/c", "a:b:c"]

    asyncio.run(story())


# --- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefix", ["", "HOLDFAST_"])
def test_rows_20_21_the_known_settings_act_with_and_without_our_prefix(
    prefix, monkeypatch, tmp_path
):
    monkeypatch.setenv(f"{prefix}PIPELINE_LOCK_TIMEOUT_SECONDS", "7200")
    monkeypatch.setenv(f"{prefix}LOCK_ACQUISITION_RETRIES", "3")
    monkeypatch.setenv(f"{prefix}LOCK_ACQUISITION_RETRY_DELAY_SECONDS", "0.01")
    manager = PipelineLockManager(app=str(tmp_path))
    assert manager.lock_timeout_seconds == 7200

    async def story():
        await acquire(manager)
        waiting = asyncio.create_task(acquire(manager, "id-2"))
        await asyncio.sleep(0)
        await release(manager)
        assert await waiting == (True, None)
        assert await acquire(manager, "id-3") == (False, "id-2")

    asyncio.run(story())


@pytest.mark.parametrize("seconds", ["59", "86401"])
def test_row_20_the_timeout_is_between_a_minute_and_a_day(seconds):
    assert load(env={}).settings.locks.timeout == 3600
    with pytest.raises(ConfigurationError, match="from 60s to 24h"):
        load(env={"PIPELINE_LOCK_TIMEOUT_SECONDS": seconds})


# --- scenarios ------------------------------------------------------------------------------------


def test_row_33_after_a_failure_the_lock_is_free_and_the_log_has_the_whole_error(make, caplog):
    class Executor:
        tenant_id, pipeline_id, pipeline_logging_id = *LOCK.values(), "abc-123-def-456"

        async def execute(self, parameters):
            raise LookupError("no such table")

    async def run_async_pipeline_task(executor, parameters):
        lock_manager = make()
        try:
            return await executor.execute(parameters)
        finally:
            released = await lock_manager.release_lock(
                tenant_id=executor.tenant_id,
                pipeline_id=executor.pipeline_id,
                pipeline_logging_id=executor.pipeline_logging_id,
            )
            assert released

    async def story():
        await acquire(make())
        with pytest.raises(LookupError):
            await run_async_pipeline_task(Executor(), {})
        assert await acquire(make(), "id-2")

    asyncio.run(story())


def test_row_33_a_failed_run_logs_its_traceback(caplog):
    def query_the_table():
        raise Permanent("no such table")

    engine = TestEngine(unique_pipeline(query_the_table))
    run = submit(engine)
    engine.drain()
    engine.advance(1)
    [record] = [record for record in caplog.records if record.levelname == "ERROR"]
    assert run.id in record.message
    assert "in query_the_table" in record.exc_text
    assert submit(engine).created
    engine.close()


def test_row_36_a_lock_that_is_lost_aborts_its_holder(tmp_path):
    async def story():
        async with Holdfast("memory:", [unique_pipeline()], worker=False) as app:

            async def body():
                async with app.lock("x"):
                    await app.operations.release_lock("x", reason="test")
                    app.runtime.keeper.check_now()
                    await asyncio.sleep(30)

            with pytest.raises(LeaseLost):
                await body()

    asyncio.run(story())


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "redis"])
def test_rows_37_41_locks_hold_across_processes_and_restarts(kind, tmp_path):
    url = url_of(kind, tmp_path)
    code = (
        "import asyncio, sys; from holdfast.apps.compat import PipelineLockManager as M; "
        "print(*asyncio.run(M(store=sys.argv[1]).acquire_lock('acme', 'x', sys.argv[2], 'me')))"
    )

    def other(id):
        command = [sys.executable, "-c", code, url, id]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    assert other("id-1") == "True None"
    assert other("id-2") == "False id-1"


def test_row_38_on_redis_the_key_of_a_lock_gives_the_execution_that_holds_it(tmp_path):
    server = redis_server.shared_server()
    prefix = redis_server.fresh_prefix()

    def get(key):
        return server.call("GET", f"{prefix}{key}")

    async def story():
        manager = PipelineLockManager(store=server.url(prefix=prefix))
        await acquire(manager)
        key = "pipeline_lock:acme1281:gcp_billing_export"
        assert get(key) == "abc-123-def-456"
        assert 3500 < int(server.call("TTL", f"{prefix}{key}")) <= 3600
        assert not await acquire(manager, "id-2")
        assert get(key) == "abc-123-def-456"
        await release(manager)
        assert get(key) == ""
        await acquire(manager, "id-2")
        assert get(key) == "id-2"
        await manager.close()

    asyncio.run(story())


@pytest.fixture
def firestore():
    """A project's URL, and a client of Google's own that looks at it."""
    from google.auth.credentials import AnonymousCredentials
    from google.cloud.firestore import Client

    url = fresh_firestore()
    return url, Client(url.removeprefix("firestore://"), AnonymousCredentials())


def test_row_39_locks_on_firestore_hold_across_processes_and_tenants(firestore):
    url, _ = firestore

    async def story():
        first, second = PipelineLockManager(store=url), PipelineLockManager(store=url)
        tries = [acquire(manager, f"id-{n}") for n in range(20) for manager in (first, second)]
        answers = await asyncio.gather(*tries)
        assert sum(bool(answer) for answer in answers) == 1
        [holder] = {answer.existing_id for answer in answers if not answer}
        assert (await acquire(second, tenant_id="acme1281_gcp", pipeline_id="billing_export"))[0]
        assert set(await first.get_active_locks("acme1281")) == {"acme1281:gcp_billing_export"}
        assert len(await second.get_active_locks()) == 2
        assert not await release(second, "somebody-else")
        assert await release(second, holder)
        assert (await acquire(first, "next")) == (True, None)
        await first.close()
        await second.close()

    asyncio.run(story())


def test_row_40_a_lock_is_a_document_of_pipeline_locks_with_the_known_fields(firestore):
    url, client = firestore

    async def story():
        manager = PipelineLockManager(1800, store=url)
        await acquire(manager)
        await manager.close()

    asyncio.run(story())
    document = client.collection("pipeline_locks").document("acme1281_gcp_billing_export").get()
    fields = document.to_dict()
    assert {name: fields[name] for name in (*LOCK, "pipeline_logging_id", "locked_by")} == {
        **LOCK,
        "pipeline_logging_id": "abc-123-def-456",
        "locked_by": "api_user",
    }
    assert abs((fields["ttl"] - fields["locked_at"]).total_seconds() - 1800) < 5
    assert abs((document.update_time - fields["locked_at"]).total_seconds()) < 5


def test_row_40_a_dead_holders_document_is_taken_over_by_the_servers_clock(firestore):
    """Firestore itself removes a document a day after its ttl, or never."""
    url, client = firestore

    async def story():
        manager = PipelineLockManager(0.2, store=url)
        assert await acquire(manager, "dead")
        document = client.collection("pipeline_locks").document("acme1281_gcp_billing_export")
        deadline = time.monotonic() + 10.0
        while not await acquire(manager, "next") and time.monotonic() < deadline:
            assert document.get().get("pipeline_logging_id") == "dead"
        assert document.get().get("pipeline_logging_id") == "next"
        await manager.close()

    asyncio.run(story())


def test_row_40_a_document_that_another_program_wrote_is_left_alone(firestore):
    """The service that is replaced may still hold its lock: nobody gets in, and it is said why."""
    url, client = firestore
    document = client.collection("pipeline_locks").document("acme1281_gcp_billing_export")
    document.set({"pipeline_logging_id": "theirs", "locked_by": "the earlier service"})

    async def story():
        manager = PipelineLockManager(store=url)
        with pytest.raises(StoreUnavailable, match="written by another program"):
            await acquire(manager)
        document.delete()
        assert await acquire(manager) == (True, None)
        await manager.close()

    asyncio.run(story())


def test_row_39_the_settings_name_where_locks_live(firestore, monkeypatch, tmp_path):
    url, client = firestore
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOLDFAST_LOCKS_STORE", url)

    async def story():
        manager = PipelineLockManager()
        await acquire(manager)
        await manager.close()

    asyncio.run(story())
    assert [d.id for d in client.collection("pipeline_locks").stream()] == [
        "acme1281_gcp_billing_export"
    ]


def test_row_53_try_and_finally_around_a_lock_as_the_best_practice_has_it(make):
    executed = []

    async def execute_pipeline():
        executed.append(1)

    async def story():
        lock_manager = make()
        for _ in range(2):
            lock_acquired = await acquire(lock_manager)
            if lock_acquired:
                try:
                    await execute_pipeline()
                    if await acquire(make(), "second"):
                        await execute_pipeline()
                finally:
                    await release(lock_manager)

    asyncio.run(story())
    assert len(executed) == 2


def test_row_53_the_engines_own_lock_is_a_context_manager():
    async def story():
        async with Holdfast("memory:", [unique_pipeline()], worker=False) as app:
            async with app.lock("x"):
                with pytest.raises(Conflict):
                    async with app.lock("x", wait=0):
                        pass
            assert await app.store.locks() == []

    asyncio.run(story())


def test_row_54_acquiring_is_logged_with_tenant_pipeline_and_id(make, caplog):
    with caplog.at_level("INFO", "holdfast.pipeline_locks"):
        asyncio.run(acquire(make()))
    [record] = [record for record in caplog.records if record.message == "Lock acquired"]
    assert (record.tenant_id, record.pipeline_id) == ("acme1281", "gcp_billing_export")
    assert record.pipeline_logging_id == "abc-123-def-456"


def test_rows_13_57_locks_are_listed_and_who_released_one_by_force_can_be_read(tmp_path):
    cli = Cli(tmp_path)
    manager = PipelineLockManager(store=f"sqlite:///{tmp_path}/runs.db")

    async def story():
        await manager.acquire_lock(*LOCK.values(), "abc-123", "api_user", reason="nightly")
        await manager.close()

    asyncio.run(story())
    run = cli.submit("line", "--tenant", "acme1281")
    lock, slot = cli.here("locks", "list", "--json").json["items"]
    name = "pipeline_lock:acme1281:gcp_billing_export"
    assert (lock["kind"], lock["name"], lock["held_for"]) == ("pipeline", name, "abc-123")
    assert (lock["holder"], lock["reason"]) == ("api_user", "nightly")
    assert 3590 < lock["remaining"] <= 3600
    assert (slot["name"], slot["held_for"]) == ("unique:acme1281:line", run)

    assert "add --yes" in cli.here("locks", "release", name, code=2).err
    cli.here("locks", "release", name, "--yes", "--reason", "it hangs")
    assert "is not held" in cli.here("locks", "release", name, "--yes", code=7).err
    [entry] = cli.here("audit", "list", "--json").json["items"]
    assert (entry["target"], entry["reason"]) == (name, "it hangs")
    assert "@" in entry["actor"]
    assert asyncio.run(manager.acquire_lock(*LOCK.values(), "abc-124", "api_user"))


def test_rows_58_59_a_lock_is_renewed_while_its_holder_lives(make, clock):
    async def story():
        manager = make(lock_timeout_seconds=60, renew_seconds=0.01)
        renewed = asyncio.Event()
        renew = manager._locks.renew

        async def watched(*who):
            answer = await renew(*who)
            renewed.set()
            return answer

        manager._locks.renew = watched
        await acquire(manager)
        for _ in range(3):
            clock.advance(50)
            renewed.clear()
            await renewed.wait()
            await renewed.wait()
        assert await acquire(make(), "id-2") == (False, "abc-123-def-456")
        await manager.close()

    asyncio.run(story())


def test_rows_58_59_a_holder_renews_by_hand_and_nobody_else(make, clock):
    async def story():
        manager = make(lock_timeout_seconds=60)
        await acquire(manager)
        clock.advance(50)
        assert not await manager.renew_lock(**LOCK, pipeline_logging_id="another")
        assert await manager.renew_lock(**LOCK, pipeline_logging_id="abc-123-def-456")
        clock.advance(50)
        assert not await acquire(manager, "id-2")
        clock.advance(11)
        assert not await manager.renew_lock(**LOCK, pipeline_logging_id="abc-123-def-456")

    asyncio.run(story())


# --- the shipped pipeline -------------------------------------------------------------------------

BILLING = f"{Path(__file__).parents[3]}/examples/gcp_billing_export"


def test_row_60_gcp_billing_export_is_a_pipeline_with_one_live_run_for_each_tenant(tmp_path):
    cli = Cli(tmp_path)
    words = ("run", "gcp_billing_export", "--tenant", "acme1281")
    source = ("--input", f"source={BILLING}/billing.csv")
    env = {"HOLDFAST_APP": f"{BILLING}/app.py:app"}
    first = cli(*words, *source, "--no-wait", **env).out
    assert cli(*words, "--input", "source=other.csv", "--no-wait", **env).out == first
    summary = cli(*words, *source, "--json", **env).json["result"]
    assert (summary["rows"], summary["rejected"]) == (4, 3)


def test_row_43_a_bigquery_job_has_the_id_of_its_run_and_is_not_started_twice(tmp_path):
    code = (
        "from bigquery import BigQuery; from fake_bigquery import FakeBigQuery\n"
        "with FakeBigQuery([{'a': '1'}]) as server:\n"
        "    for _ in range(2): BigQuery(server.url, poll=0.01).query('p', 'SELECT 1', 'run-1')\n"
        "    print(list(server.jobs), server.refused)"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], cwd=BILLING, capture_output=True, text=True, check=True
    )
    assert process.stdout.strip() == "['run-1'] ['run-1']"


# --- the scenarios, without HTTP ------------------------------------------------------------------


def test_scenarios_1_2_and_5_duplicates_get_the_id_completion_frees_tenants_do_not_meet(make):
    async def trigger(tenant, id):
        """As the endpoint does it."""
        acquired, existing = await acquire(make(), id, tenant_id=tenant)
        return (id, "PENDING") if acquired else (existing, "RUNNING")

    async def story():
        assert await trigger("acme1281", "id-1") == ("id-1", "PENDING")
        assert await trigger("acme1281", "id-2") == ("id-1", "RUNNING")
        assert await trigger("acme9999", "id-3") == ("id-3", "PENDING")
        assert await release(make(), "id-1")
        assert await trigger("acme1281", "id-4") == ("id-4", "PENDING")

    asyncio.run(story())


def test_row_62_of_a_thousand_who_acquire_at_once_one_wins(make):
    async def story():
        manager = make()
        answers = await asyncio.gather(*(acquire(manager, f"id-{n}") for n in range(1000)))
        [winner] = [n for n, (acquired, _) in enumerate(answers) if acquired]
        assert answers[winner] == (True, None)
        others = {existing for acquired, existing in answers if not acquired}
        assert others == {f"id-{winner}"}
        assert list(await manager.get_active_locks()) == ["acme1281:gcp_billing_export"]

    asyncio.run(story())


RIVALS = """
import asyncio, sys
from holdfast.apps.compat import PipelineLockManager

url, process = sys.argv[1:]

async def main():
    manager = PipelineLockManager(store=url)
    await manager.get_active_locks()
    print("ready", flush=True)
    sys.stdin.readline()
    ids = [f"{process}-{number}" for number in range(250)]
    answers = await asyncio.gather(
        *(manager.acquire_lock("acme1281", "gcp_billing_export", id, "me") for id in ids)
    )
    for id, (acquired, existing) in zip(ids, answers):
        print(id if acquired else "-", existing)
    await manager.close()

asyncio.run(main())
"""


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "redis"])
def test_row_62_of_a_thousand_in_four_processes_one_wins(kind, tmp_path):
    url = url_of(kind, tmp_path)
    pipe = subprocess.PIPE
    rivals = [
        subprocess.Popen(
            [sys.executable, "-c", RIVALS, url, str(number)], stdin=pipe, stdout=pipe, text=True
        )
        for number in range(4)
    ]
    for rival in rivals:
        assert rival.stdout.readline() == "ready\n"
    for rival in rivals:
        rival.stdin.write("go\n")
        rival.stdin.flush()
    answers = [
        tuple(line.split())
        for rival in rivals
        for line in rival.communicate(timeout=60)[0].splitlines()
    ]
    assert len(answers) == 1000
    [winner] = [id for id, _ in answers if id != "-"]
    assert {existing for id, existing in answers if id == "-"} == {winner}


def test_row_62_a_store_that_is_away_lets_nobody_in_and_a_lost_answer_is_no_rival(make):
    async def story():
        manager = make()
        await manager._open()
        records = manager._locks._records
        put = records.put

        async def answer_lost(*args, **options):
            await put(*args, **options)
            raise StoreUnavailable("the answer was lost")

        records.put = answer_lost
        with pytest.raises(StoreUnavailable):
            await acquire(manager)
        records.put = put
        assert await acquire(make(), "id-2") == (False, "abc-123-def-456")
        assert await acquire(manager) == (True, None)

    asyncio.run(story())


@pytest.fixture(params=WEB_STORES)
def web(request, tmp_path):
    """The service on every store."""
    with a_web(request.param, tmp_path) as opened:
        yield opened


RUN = "/pipelines/run/gcp_billing_export"


def test_rows_23_24_25_26_27_28_31_61_a_duplicate_request_gets_the_live_execution(web):
    acme = web.client("acme1281", "submit", "read")
    first = acme.post(RUN)  # as in the description: no body at all
    assert first.status_code == 200
    id = first.json()["pipeline_logging_id"]
    assert first.json() == {
        "pipeline_logging_id": id,
        "pipeline_id": "gcp_billing_export",
        "tenant_id": "acme1281",
        "status": "PENDING",
        "message": "Pipeline gcp_billing_export triggered successfully (async mode)",
    }
    again = acme.post(RUN, json={"trigger_by": "ada", "date": "2025-11-17"})
    assert again.json() == {
        **first.json(),
        "status": "RUNNING",
        "message": "Pipeline gcp_billing_export already running - returning existing execution",
    }
    stored = web.live.call(web.live.holdfast.store.run(id))
    assert stored.labels["trigger_by"] == "api_user"
    assert stored.labels["locked_by"].endswith("of acme1281"), stored.labels


def test_rows_29_30_32_the_slot_is_free_after_completion(web):
    acme = web.client("acme1281", "submit", "read")
    id = acme.post(RUN, json={"trigger_by": "ada"}).json()["pipeline_logging_id"]
    live = acme.get(f"/pipelines/runs/{id}").json()
    assert live["status"] in ("PENDING", "RUNNING")
    assert live["trigger_by"] == "ada"
    web.gate.open.set()
    web.ended(acme, id)
    status = acme.get(f"/pipelines/runs/{id}").json()
    assert status["status"] == "COMPLETE"
    assert status["duration_ms"] >= 0
    second = acme.post(RUN).json()
    assert second["status"] == "PENDING"
    assert second["pipeline_logging_id"] != id
    listed = acme.get("/pipelines/runs", params={"pipeline_id": "gcp_billing_export"}).json()
    assert [run["pipeline_logging_id"] for run in listed] == [second["pipeline_logging_id"], id]
    web.ended(acme, second["pipeline_logging_id"])
    finished = acme.get("/pipelines/runs", params={"status": "COMPLETE", "limit": 1}).json()
    assert [run["pipeline_logging_id"] for run in finished] == [second["pipeline_logging_id"]]
    assert acme.get("/pipelines/runs", params={"status": "DONE"}).status_code == 422


def test_row_33_the_slot_is_free_after_a_failure_over_http(web):
    acme = web.client("acme1281", "submit", "read")
    web.gate.fails = True
    web.gate.open.set()
    id = acme.post(RUN).json()["pipeline_logging_id"]
    web.ended(acme, id)
    failed = acme.get(f"/pipelines/runs/{id}").json()
    assert failed["status"] == "FAILED"
    assert failed["error_message"] == "the table does not exist"
    assert acme.post(RUN).json()["status"] == "PENDING"


def test_row_35_tenants_do_not_meet(web):
    acme, bolt = (web.client(tenant, "submit", "read") for tenant in ("acme1281", "bolt"))
    ids = {client.post(RUN).json()["pipeline_logging_id"] for client in (acme, bolt)}
    assert len(ids) == 2
    foreign = acme.post(RUN).json()["pipeline_logging_id"]
    assert bolt.get(f"/pipelines/runs/{foreign}").status_code == 404
    assert bolt.get("/pipelines/runs").json()[0]["tenant_id"] == "bolt"
    response = httpx2.post(web.live.url + RUN, headers={"x-api-key": "test-key"})
    assert response.status_code == 401


def test_row_56_an_administrator_ends_a_run_and_frees_its_slot_by_force(web):
    acme = web.client("acme1281", "submit", "read", "operate")
    id = acme.post(RUN).json()["pipeline_logging_id"]
    ended = acme.delete(f"/pipelines/runs/{id}").json()
    assert (ended["status"], ended["pipeline_logging_id"]) == ("CANCELLING", id)
    assert acme.get(f"/pipelines/runs/{id}").json()["status"] == "CANCELLED"
    again = acme.delete(f"/pipelines/runs/{id}").json()
    assert (again["status"], "finished already" in again["message"]) == ("CANCELLED", True)
    assert acme.post(RUN).json()["status"] == "PENDING"


def test_row_55_nothing_is_started_while_the_lock_manager_is_away():
    with a_server() as redis, LiveApi(redis.url(), worker=False) as live:
        redis.kill()
        answer = live.post("/pipelines/run/slow")
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "5"
    assert answer.json()["detail"].startswith("Lock manager unavailable")


def test_batches_are_published_to_many_tenants(web):
    admin = web.client("default", "admin")
    for tenant in ("acme1281", "bolt"):
        web.client(tenant, "read")
    body = {"tenant_ids": ["acme1281", "bolt"], "pipeline_id": "gcp_billing_export"}
    answer = admin.post("/pipelines/batch/publish", json={**body, "max_jitter_seconds": 60}).json()
    assert answer["published"] == 2
    runs = [web.live.call(web.live.holdfast.store.run(id)) for id in answer["runs"].values()]
    assert {run.tenant for run in runs} == {"acme1281", "bolt"}
    assert all(run.available is not None for run in runs)
    acme = web.client("acme1281", "submit", "read")
    assert acme.post("/pipelines/batch/publish", json=body).status_code == 403


def test_row_42_memorystore_is_described():
    redis = terraform()["google_redis_instance.pipeline_locks"]
    assert (redis["name"], redis["redis_version"]) == ("pipeline-locks", "REDIS_7_0")
    page = (ROOT / "docs" / "howto" / "cloud-run.md").read_text()
    assert "gcloud redis instances create pipeline-locks" in page
    assert "--redis-version=redis_7_0" in page


# --- metrics and alerts ---------------------------------------------------------------------------


@pytest.fixture
def counted(monkeypatch):
    """A registry that only this test counts in: what the process answers to Prometheus."""
    monkeypatch.setattr(process_metrics, "_made", [])
    return lambda: Reading(process_metrics.require_metrics().exposition())


def test_row_22_metrics_of_locks_can_be_switched_off_and_the_threshold_is_told(
    make, clock, counted, monkeypatch
):
    monkeypatch.setenv("LOCK_METRICS_ENABLED", "false")
    asyncio.run(acquire(make()))
    assert counted()("pipeline_lock_acquisitions_total", result="success", **LOCK) is None
    env = {"HOME": "/nowhere", "LOCK_EXPIRATION_ALERT_THRESHOLD": "0.7"}
    options = Options("memory:", metrics=PrometheusMetrics()).with_settings(load(env=env))

    async def story():
        async with Holdfast.from_options(replace(options, works=False)) as app:
            assert (await read(app))("pipeline_lock_expiration_alert_threshold") == 0.7

    asyncio.run(story())


def test_rows_44_46_47_acquisitions_their_wait_and_how_long_locks_are_held(make, counted):
    manager = make()

    async def story():
        assert await acquire(manager)
        assert not await acquire(manager, "another")
        await manager.release_lock(**LOCK, pipeline_logging_id="abc-123-def-456")

    asyncio.run(story())
    reading = counted()
    for result in ("success", "conflict"):
        assert reading("pipeline_lock_acquisitions_total", result=result, **LOCK) == 1
    assert reading("pipeline_lock_wait_time_seconds_count", **LOCK) == 2
    assert reading("pipeline_lock_duration_seconds_count", **LOCK) == 1


def test_rows_45_48_locks_that_are_held_with_age_and_timeout_and_what_runs(kind, clock, tmp_path):
    async def story():
        store = make_store(kind, clock, tmp_path)
        app = Holdfast(store, worker=False, clock=clock, metrics=PrometheusMetrics())
        async with app:
            manager = PipelineLockManager(3600, store=store, app=str(tmp_path))
            await acquire(manager)
            clock.advance(900)
            reading = await read(app)
        assert reading("pipeline_active_locks", **LOCK) == 1
        assert reading("pipeline_lock_age_seconds", **LOCK) == 900
        assert reading("pipeline_lock_timeout_seconds", **LOCK) == 3600
        assert reading("pipeline_running_count", **LOCK) == 0

    asyncio.run(story())


@pytest.mark.parametrize(
    ("alert", "severity", "lasts"),
    [
        ("PipelineLockExpiring", "warning", "5m"),
        ("HighLockContention", "warning", "10m"),
        ("PossibleLockLeak", "critical", "15m"),
    ],
)
def test_rows_49_50_51_the_known_alerts_fire_and_are_silent(alert, severity, lasts):
    rule = ALERTS[alert]
    assert (rule["labels"]["severity"], rule["for"]) == (severity, lasts)
    assert named(rule["expr"]) <= set(BY_NAME)
    assert "SUCCESS" in promtool("test", "rules", "rules_test.yml")


def test_row_52_the_dashboard_shows_locks():
    names = named(DASHBOARD.read_text())
    assert {name for name in BY_NAME if "_lock" in name} - names == {
        "pipeline_lock_acquired_timestamp_seconds"
    }
