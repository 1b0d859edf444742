"""Tables and views that people query."""

from __future__ import annotations

import asyncio

import psycopg
import pytest
from tests.integration.postgres.conftest import Place

from holdfast.model.commands import Cancel, PauseRun, Resume, Settle
from holdfast.testing.contracts.store_topics.scene import a_checkpoint, a_claim, a_submit, an_error

RECORD = '{"step":"s","status":"completed","started":1700000000.5,"finished":1700000001.0,"duration":0.5,"done":3}'


@pytest.fixture
def query(place: Place):
    """Some runs with a past; asks the database about them as anybody would."""

    async def story() -> None:
        async with place.store() as store:
            await store.apply(
                [
                    a_submit(run, tenant="acme", input='{"a":1}')
                    for run in ("r1", "r2", "r3", "r4", "r5")
                ]
            )
            await store.apply([a_claim(limit=3)])
            last = a_checkpoint("r1", 1, "s", record=RECORD, value='{"n":1}')
            await store.apply([Settle("r1", 1, "succeeded", result='{"n":1}', last=last)])
            await store.apply([Settle("r2", 1, "failed", error=an_error("no \0 file"))])
            await store.apply(
                [PauseRun("r3", "ann", "wait"), Resume("r3", "ann"), Cancel("r4", "ann", "enough")]
            )

    asyncio.run(story())
    with psycopg.connect(place.server.url(), autocommit=True) as connection:
        connection.execute(f"SET search_path TO {place.schema}")
        yield lambda sql: connection.execute(sql).fetchall()


def test_runs_steps_history_and_dead_letters_can_be_asked(query):
    assert query("SELECT state, count(*) FROM runs GROUP BY state ORDER BY state") == [
        ("cancelled", 1),
        ("failed", 1),
        ("queued", 2),
        ("succeeded", 1),
    ]
    assert query("SELECT run, step, status, seconds, items, value FROM steps") == [
        ("r1", "s", "completed", 0.5, 3, '{"n":1}')
    ]
    assert query("SELECT type, data->>'reason' FROM history WHERE run = 'r3' ORDER BY seq") == [
        ("run.queued", None),
        ("run.started", None),
        ("run.paused", "wait"),
        ("run.resumed", ""),
    ]
    assert query("SELECT data->'error'->>'message' FROM history WHERE type = 'run.failed'") == [
        ("no \ufffd file",)
    ]
    assert query("SELECT d.id, r.input FROM dead_letters d JOIN runs r ON r.id = d.run") == [
        ("run:r2", '{"a":1}')
    ]


def test_runs_can_be_seen_as_jobs(query):
    assert query("SELECT id, user_id, content, preset, state FROM jobs ORDER BY id") == [
        ("r1", "acme", '{"a":1}', "report", "completed"),
        ("r2", "acme", '{"a":1}', "report", "failed"),
        ("r3", "acme", '{"a":1}', "report", "pending"),
        ("r4", "acme", '{"a":1}', "report", "cancelled"),
        ("r5", "acme", '{"a":1}', "report", "pending"),
    ]
    [(created, updated, started, completed, metadata)] = query(
        "SELECT created_at, updated_at, started_at, completed_at, job_metadata FROM jobs WHERE id "
        "= 'r1'"
    )
    assert created <= started <= completed == updated
    assert metadata["attempts"] == 1


def test_the_states_of_a_job_follow_one_another(query):
    sql = "SELECT previous_state, new_state, reason FROM job_states WHERE job_id = '{}' ORDER BY id"
    assert query(sql.format("r1")) == [
        (None, "pending", "run.queued"),
        ("pending", "processing", "run.started"),
        ("processing", "completed", "run.completed"),
    ]
    assert [new for _, new, _ in query(sql.format("r3"))] == [
        "pending",
        "processing",
        "processing",
        "pending",
    ]


def test_a_job_has_one_result(query):
    assert query(
        "SELECT job_id, status, output, error_message FROM job_results ORDER BY job_id"
    ) == [
        ("r1", "success", '{"n":1}', None),
        ("r2", "error", None, "no \ufffd file"),
    ]
    assert query("SELECT count(*) FROM job_results WHERE processing_time_ms >= 0") == [(2,)]
