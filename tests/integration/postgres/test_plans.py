"""A long history costs nothing: every command and list finds its rows by index, however large the
tables are."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from tests.integration.postgres.conftest import Schema, Session

from holdfast.adapters.postgres import reads, statements
from holdfast.adapters.postgres.address import parse
from holdfast.adapters.postgres.text import parameter
from holdfast.model import commands as c
from holdfast.ports.store import RunFilter
from holdfast.testing.contracts.store_topics.harness import (
    a_checkpoint,
    a_claim,
    a_submit,
    an_error,
)

HISTORY = 20_000
BATCH = 50

FILL = """
INSERT INTO requests (seq, id, tenant, pipeline, lane, priority, is_unique, inherits, created, key,
                      fingerprint, input)
SELECT nextval('positions'), 'h' || n, 't' || n % 100,
       CASE WHEN n % 5000 = 7 THEN 'rare' ELSE 'report' END, 'default', 0, false, false, 1,
       'k' || n, 'f', '{}'
FROM generate_series(1, COUNT) AS n;
INSERT INTO open_runs (id, seq, tenant, pipeline, lane, state, priority, size, attempt_limit,
                       started, finished, is_unique)
SELECT id, seq, tenant, pipeline, lane, CASE WHEN seq % 1000 = 0 THEN 'failed' ELSE 'cancelled' END,
       0, 2, 5, 1, 4e9, false
FROM requests WHERE seq % 1000 IN (0, 1) AND id LIKE 'h%';
INSERT INTO results (id, events, epoch, attempts, attempt_limit, started, finished, execution_ms,
                     progress, result)
SELECT id, 5, 1, 1, 5, 1, 4e9, 0, '{}', '1' FROM requests
WHERE seq % 1000 NOT IN (0, 1) AND id LIKE 'h%';
INSERT INTO events (run, seq, type, at, data)
SELECT 'h' || n, s, 'run.queued', 1, '{}'
FROM generate_series(1, COUNT) AS n, generate_series(1, 4) AS s;
INSERT INTO checkpoints (run, step, key, epoch, value, checksum, schema, fingerprint, record)
SELECT 'h' || n, 's', '', 1, '1', 'c', 't', 'f', '{}' FROM generate_series(1, COUNT) AS n;
INSERT INTO dead_letters (id, source, reason, attributes, tenant, run, created, closed)
SELECT 'run:h' || n, 'run', '', '{}', 't', 'h' || n, 1, 1 FROM generate_series(1, COUNT, 10) AS n;
INSERT INTO labels (tenant, name, value, seq) SELECT tenant, 'user', key, seq FROM requests;
INSERT INTO records (key, value, version, updated, lease_ttl)
SELECT 'r' || n, '1', 'v', 1, 0 FROM generate_series(1, COUNT) AS n;
INSERT INTO locks (name, epoch) SELECT 'l' || n, 1 FROM generate_series(1, COUNT, 10) AS n;
INSERT INTO logs (run, n, at, level, step, message, fields)
SELECT 'h' || n, 1, 1, 'info', 's', '', '{}' FROM generate_series(1, COUNT) AS n;
"""


def every_command(mark: str) -> list[list[c.Command]]:
    """Batches with every kind of command, about runs named with the mark."""
    runs = [f"{mark}{number}" for number in range(BATCH)]
    half = BATCH // 2
    return [
        [c.DefineLane("line", "fifo", "block"), *[a_submit(run, key=f"{run}-key") for run in runs]],
        [a_submit(f"{mark}u", pipeline="solo", unique=True), a_submit(f"{mark}f", lane="line")],
        [a_submit(runs[0], key=f"{runs[0]}-key"), a_submit(f"{mark}again", key=f"{runs[1]}-key")],
        [a_submit(f"{mark}lone", key=f"{mark}lone-key")],
        [a_submit(f"{mark}twice", key=f"{mark}lone-key")],
        [a_claim(limit=BATCH)],
        [c.Acquire("lane:line", mark, "w", 60.0), a_claim(lane="line", token=mark, term=1)],
        [a_checkpoint(run, 1, step) for run in runs for step in ("a", "b")],
        [a_checkpoint(run, 1, "a", value="2") for run in runs],
        [a_checkpoint(runs[0], 1, "lone")],
        [a_checkpoint(runs[0], 1, "lone", value="2")],
        [c.SaveProgress(run, 1, "{}") for run in runs],
        [c.LogLine(run, 1, "info", "s", "x") for run in runs],
        [c.Renew([(run, 1) for run in runs], 30.0), c.RenewLocks([("lane:line", mark)], 60.0)],
        [c.Quarantine(runs[0], 1, "a", "", "bad")],
        [
            c.Settle(run, 1, "succeeded", result="1", last=a_checkpoint(run, 1, "c"))
            for run in runs[1:half]
        ],
        [c.Settle(runs[0], 1, "succeeded", result="1", last=a_checkpoint(runs[0], 1, "c"))],
        [c.Settle(run, 1, "failed", error=an_error("no")) for run in runs[half:-2]],
        [
            c.Settle(runs[-2], 1, "retry", error=an_error("no"), delay=60.0),
            c.PauseRun(runs[-1], "ann"),
        ],
        [
            c.Resume(runs[-1], "ann"),
            c.Cancel(runs[-1], "ann"),
            c.Discard(f"run:{runs[half]}", "ann", ""),
        ],
        [
            c.Sweep(),
            c.ReleaseLock("lane:line", mark),
            c.MarkRedriven(f"run:{runs[half + 1]}", "ann"),
        ],
        [c.Prune(3600.0, 3600.0, 20)],
        [c.PutRecord(mark, "1", "v1"), c.PutRecord(mark, "2", "v2", "v1")],
        [c.LimitTenant("acme", 3, "ann"), c.Bury(mark, "t", "bad", b"x")],
    ]


@pytest.fixture
def session(schema: Schema) -> Iterator[Session]:
    async def story() -> None:
        async with schema.store():
            pass

    asyncio.run(story())
    session = schema.session()
    yield session
    session.close()


def rows_read(schema: Schema, session: Session) -> tuple[int, int]:
    """What this transaction has read so far: by scanning, by index."""
    scanned, fetched = session.row(
        "SELECT sum(seq_tup_read), sum(coalesce(idx_tup_fetch, 0)) FROM pg_stat_xact_user_tables "
        f"WHERE schemaname = '{schema.name}'"
    )
    return int(scanned), int(fetched)


def test_commands_read_as_few_rows_after_a_long_history_as_before(
    schema: Schema, session: Session
) -> None:
    """With plans that were made while the store was empty, as those of a long-lived connection
    were."""
    for batch in every_command("warm"):
        session.apply(*batch)
    session.rollback()
    costs: dict[str, list[tuple[int, int]]] = {}
    for when in ("empty", "full"):
        if when == "full":
            with psycopg.connect(schema.server.url(), autocommit=True) as connection:
                connection.execute(f"SET search_path TO {schema.name}")
                connection.execute(FILL.replace("COUNT", str(HISTORY)))
        costs[when] = []
        before = rows_read(schema, session)
        for batch in every_command("x"):
            session.apply(*batch)
            after = rows_read(schema, session)
            costs[when].append((after[0] - before[0], after[1] - before[1]))
            before = after
        session.rollback()
    assert [scanned for scanned, _ in costs["full"]] == [0] * len(costs["full"])
    for number, ((_, empty), (_, full)) in enumerate(
        zip(costs["empty"], costs["full"], strict=True)
    ):
        assert full <= 1.5 * empty + 20, (number, every_command("x")[number][:1], empty, full)


FILTERS: dict[str, RunFilter] = {
    "all": RunFilter(),
    "tenant": RunFilter(tenant="t7"),
    "nobody": RunFilter(tenant="nobody"),
    "failed": RunFilter(state="failed"),
    "queued": RunFilter(state="queued"),
    "running": RunFilter(state="running"),
    "paused": RunFilter(state="paused"),
    "succeeded": RunFilter(state="succeeded"),
    "key": RunFilter(tenant="t7", key="k7"),
    "prefix": RunFilter(id_prefix="h1234"),
    "long prefix": RunFilter(id_prefix="h12345"),
    "pipeline": RunFilter(pipeline="report"),
    "rare pipeline": RunFilter(pipeline="rare"),
    "no pipeline": RunFilter(pipeline="nothing"),
    "lane": RunFilter(lane="default"),
    "queued of a lane": RunFilter(lane="default", state="queued"),
    "failed of a tenant": RunFilter(tenant="t0", state="failed"),
    "queued of a tenant": RunFilter(tenant="t7", state="queued"),
    "label": RunFilter(tenant="t7", labels={"user": "k7"}),
    "queued of a pipeline": RunFilter(pipeline="report", lane="default", state="queued"),
}


def test_lists_are_read_by_index(schema: Schema, session: Session) -> None:
    address = statements.load(parse(schema.url()))
    with psycopg.connect(schema.server.url(), autocommit=True) as connection:
        connection.execute(f"SET search_path TO {schema.name}")
        connection.execute(FILL.replace("COUNT", str(HISTORY)))
        connection.execute("ANALYZE")
        for name, where in FILTERS.items():
            query = address["runs_by_state" if where.state in reads.INDEXED_STATES else "runs"]
            plan = explain(connection, query, [*reads.filtered(where), None, 50])
            assert not scans(plan), name
            assert plan["Actual Rows"] == 1
            assert removed(plan) <= 2_000, name
        for state in ("queued", "running", "paused", "failed", "cancelled"):
            for where in (RunFilter(state=state), RunFilter("t7", "report", state, "default")):
                assert not scans(explain(connection, address["count"], reads.filtered(where))), (
                    where
                )
        for name, values in {
            "run": ["h1"],
            "history": ["h1"],
            "checkpoints": ["h1", None],
            "logs": ["h1", 0, 100],
            "dead_letter": ["run:h1"],
            "dead_letters": [None, True, 100, None, None],
            "over": [reads.names(["h1", "h2"])],
            "records": [None, "r1", "", 100],
        }.items():
            assert not scans(explain(connection, address[name], values)), name
        next_page = [None, True, 100, 2e9, "run:h1"]
        assert not scans(explain(connection, address["dead_letters"], next_page))


def explain(connection: psycopg.Connection, sql: bytes, values: list[Any]) -> dict[str, Any]:
    parameters = [parameter(value) for value in values]
    result = connection.pgconn.exec_params(b"EXPLAIN (ANALYZE, FORMAT JSON) " + sql, parameters)
    assert result.status == psycopg.pq.ExecStatus.TUPLES_OK, result.error_message
    return json.loads(result.get_value(0, 0) or b"")[0]["Plan"]


def nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *[node for child in plan.get("Plans", []) for node in nodes(child)]]


def scans(plan: dict[str, Any]) -> list[str]:
    """Large tables that are read from end to end; the one of open runs is small."""
    scanned = [node["Relation Name"] for node in nodes(plan) if node["Node Type"] == "Seq Scan"]
    return [name for name in scanned if name != "open_runs"]


def removed(plan: dict[str, Any]) -> int:
    """Rows that were read for nothing."""
    return sum(node.get("Rows Removed by Filter", 0) for node in nodes(plan))
