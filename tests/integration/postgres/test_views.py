"""Tables and views that people query."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from tests.integration.postgres.conftest import Schema

from holdfast.model.commands import Cancel, PauseRun, Resume, Settle
from holdfast.testing.contracts.store_topics.harness import (
    a_checkpoint,
    a_claim,
    a_submit,
    an_error,
)

RECORD = (
    '{"step":"s","status":"completed","started":1700000000.5,"finished":1700000001.0,'
    '"duration":0.5,"done":3}'
)
KEYS = ("j-1", None, None, None, None)


@pytest.fixture
def query(schema: Schema):
    """Some runs with a past; asks the database about them as anybody would."""

    async def story() -> None:
        async with schema.store() as store:
            await store.apply(
                [
                    a_submit(run, tenant="acme", input='{"a":1}', key=key)
                    for run, key in zip(("r1", "r2", "r3", "r4", "r5"), KEYS, strict=True)
                ]
            )
            await store.apply([a_claim(limit=3)])
            last = a_checkpoint("r1", 1, "s", record=RECORD, value='{"n":1}')
            await store.apply(
                [Settle("r1", 1, "succeeded", result='{"n":1}', last=last, execution_ms=1234)]
            )
            await store.apply(
                [Settle("r2", 1, "failed", error=an_error("no \0 file"), execution_ms=5)]
            )
            await store.apply(
                [PauseRun("r3", "ann", "wait"), Resume("r3", "ann"), Cancel("r4", "ann", "enough")]
            )

    asyncio.run(story())
    with asking(schema) as ask:
        yield ask


@contextmanager
def asking(schema: Schema) -> Iterator[Callable[[str], list[Any]]]:
    with psycopg.connect(schema.server.url(), autocommit=True) as connection:
        connection.execute(f"SET search_path TO {schema.name}")
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
        ("j-1", "acme", '{"a":1}', "report", "completed"),
        ("r2", "acme", '{"a":1}', "report", "failed"),
        ("r3", "acme", '{"a":1}', "report", "pending"),
        ("r4", "acme", '{"a":1}', "report", "cancelled"),
        ("r5", "acme", '{"a":1}', "report", "pending"),
    ]
    [(created, updated, started, completed, metadata)] = query(
        "SELECT created_at, updated_at, started_at, completed_at, job_metadata FROM jobs WHERE id "
        "= 'j-1'"
    )
    assert created <= started <= completed == updated
    assert (metadata["attempts"], metadata["run"]) == (1, "r1")


@pytest.mark.parametrize(
    ("input", "content", "preset"),
    [
        ('{"content":"a\\u0000 text","preset":"fast"}', "a\ufffd text", "fast"),
        ('{"content":{"x":[1]}}', '{"x":[1]}', "report"),
        ('{"content":null,"preset":7}', '{"content":null,"preset":7}', "7"),
        ('["content"]', '["content"]', "report"),
        ('"content"', '"content"', "report"),
        ("@blob:acme/r9/x", "@blob:acme/r9/x", "report"),
    ],
)
def test_content_and_preset_come_from_the_input(schema, input, content, preset):
    async def story() -> None:
        async with schema.store() as store:
            await store.apply([a_submit("r9", input=input, labels={"user_id": "ann"})])

    asyncio.run(story())
    with asking(schema) as query:
        assert query("SELECT user_id, content, preset FROM jobs") == [("ann", content, preset)]


def test_the_states_of_a_job_follow_one_another(query):
    sql = "SELECT previous_state, new_state, reason FROM job_states WHERE job_id = '{}' ORDER BY id"
    assert query(sql.format("j-1")) == [
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
    columns = "job_id, status, output, error_message, processing_time_ms"
    assert query(f"SELECT {columns} FROM job_results ORDER BY job_id") == [
        ("j-1", "success", '{"n":1}', None, 1234),
        ("r2", "error", None, "no \ufffd file", 5),
    ]
