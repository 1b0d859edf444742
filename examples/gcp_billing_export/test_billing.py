"""The billing export: what it accepts, what it adds up, and that it survives crashes."""

import csv
import json
from hashlib import sha256
from pathlib import Path

import polars as pl
import pytest
from app import gcp_billing_export
from bigquery import BigQuery
from billing_rows import checked_rows, from_parquet
from fake_bigquery import FakeBigQuery

from holdfast.errors import Permanent, Transient
from holdfast.testing import TestEngine, assert_crash_safe

SAMPLE = Path(__file__).with_name("billing.csv")
FILE = {"source": str(SAMPLE)}
TABLE = {"source": "bigquery://acme-billing/exports.gcp_billing"}


@pytest.fixture
def server():
    with SAMPLE.open() as file, FakeBigQuery(list(csv.DictReader(file))) as server:
        yield server


@pytest.fixture
def provide(server):
    return {BigQuery: BigQuery(server.url, poll=0.001)}


@pytest.fixture
def engine(provide):
    engine = TestEngine(gcp_billing_export, provide=provide)
    yield engine
    engine.close()


def export(engine, input, tenant="acme1281"):
    run = engine.submit(gcp_billing_export, input, tenant=tenant)
    engine.drain()
    return engine.result(run)


def test_rows_are_checked_partitioned_and_added_up_exactly(engine):
    summary = export(engine, FILE)
    assert (summary.rows, summary.rejected) == (4, 3)
    assert [(part.day, part.rows) for part in summary.partitions] == [
        ("2025-11-14", 1),
        ("2025-11-15", 3),
    ]
    totals = [(t.tenant_id, t.day, t.service, t.micros) for t in summary.totals]
    assert totals == [
        ("acme1281", "2025-11-14", "Compute Engine", 12_340_000),
        ("acme1281", "2025-11-15", "Cloud Storage", 200_000),
        ("acme1281", "2025-11-15", "Compute Engine", 100_000),
        ("acme9999", "2025-11-15", "BigQuery", 3_500_000),
    ]


def test_a_partition_is_a_parquet_file(engine):
    run = engine.submit(gcp_billing_export, FILE)
    engine.drain()
    [saved] = [
        saved
        for saved in engine.call(engine.app.store.checkpoints(run.id, "partitions"))
        if saved.key == ""
    ]
    day = json.loads(saved.value)[1]
    data = engine.call(engine._blobs.get(day["where"]))
    assert sha256(data).hexdigest() == day["sha256"] == engine.result(run).partitions[1].sha256
    assert from_parquet(data).get_column("micros").sum() == 3_800_000


def test_what_is_wrong_with_a_row_is_said():
    _, rejected = checked_rows(pl.read_csv(SAMPLE, infer_schema=False))
    assert [(row.row, row.reason) for row in rejected] == [
        (5, "usage_date is no date"),
        (6, "no service"),
        (7, "cost is no number"),
    ]


@pytest.mark.parametrize("cost", ["9" * 20, "9" * 40, "NaN", "inf", "", "1,5"])
def test_a_cost_that_can_not_be_counted_costs_its_row_alone(cost):
    rows = pl.read_csv(SAMPLE, infer_schema=False)[:2]
    table = rows.with_columns(cost=pl.Series(["0.1", cost]))
    good, rejected = checked_rows(table)
    assert (good.height, [row.reason for row in rejected]) == (1, ["cost is no number"])


def test_parquet_is_read_as_well(engine, tmp_path):
    path = tmp_path / "billing.parquet"
    pl.read_csv(SAMPLE, infer_schema=False).write_parquet(path)
    assert export(engine, {"source": str(path)}).rows == 4


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("missing.csv", "there is no file missing.csv"),
        ("bigquery://acme-billing/x; DROP TABLE y", "is no table"),
    ],
)
def test_a_source_that_can_not_be_read_fails_at_once(engine, source, says):
    run = engine.submit(gcp_billing_export, {"source": source})
    engine.drain()
    assert says in engine.info(run).error.message
    assert len(engine.executed) == 1


def test_a_missing_column_is_named(engine, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("tenant_id,service\na,b\n")
    run = engine.submit(gcp_billing_export, {"source": str(path)})
    engine.drain()
    assert "no column usage_date, cost, currency" in engine.info(run).error.message


def test_bigquery_gives_the_same_as_the_file(engine, server):
    assert export(engine, TABLE).totals == export(engine, FILE, "other").totals
    assert len(server.jobs) == 1
    [sql] = server.jobs.values()
    assert sql.endswith("FROM `acme-billing.exports.gcp_billing`")


def test_a_job_of_the_same_name_is_not_started_twice(server):
    client = BigQuery(server.url, poll=0.001)
    first = client.query("acme-billing", "SELECT 1", "holdfast-r1")
    assert client.query("acme-billing", "SELECT 1", "holdfast-r1") == first
    assert (list(server.jobs), server.refused) == (["holdfast-r1"], ["holdfast-r1"])


@pytest.mark.parametrize(("code", "kind"), [(503, Transient), (429, Transient), (403, Permanent)])
def test_errors_of_the_server_are_passing_or_not(server, code, kind):
    server.failures.append(code)
    with pytest.raises(kind, match=f"BigQuery answered {code}: as planned"):
        BigQuery(server.url).query("acme-billing", "SELECT 1", "j")


@pytest.mark.parametrize(("reason", "kind"), [("backendError", Transient), ("invalid", Permanent)])
def test_a_job_that_failed_is_followed_by_one_with_a_number(server, reason, kind):
    client = BigQuery(server.url, poll=0.001)
    server.breaks = [reason]
    with pytest.raises(kind, match=f"job j failed: {reason}, as planned"):
        client.query("acme-billing", "SELECT 1", "j")
    assert len(client.query("acme-billing", "SELECT 1", "j")) == 7
    assert len(client.query("acme-billing", "SELECT 1", "j")) == 7
    assert list(server.jobs) == ["j", "j-2"]


def test_a_failed_export_that_is_resumed_asks_again(engine, server):
    server.breaks = ["invalid"]
    run = engine.submit(gcp_billing_export, TABLE)
    engine.drain()
    assert "failed: invalid, as planned" in engine.info(run).error.message
    engine.call(engine.app.operations.resume(run.id))
    engine.drain()
    assert engine.info(run).state == "succeeded"
    assert len(server.jobs) == 2


def test_one_live_export_for_each_tenant(engine):
    first = engine.submit(gcp_billing_export, FILE, tenant="acme1281")
    assert engine.submit(gcp_billing_export, TABLE, tenant="acme1281").id == first.id
    assert engine.submit(gcp_billing_export, FILE, tenant="acme9999").created


@pytest.mark.parametrize("input", [FILE, TABLE], ids=["file", "bigquery"])
def test_it_survives_a_crash_anywhere(input, provide, server):
    report = assert_crash_safe(gcp_billing_export, input, provide=provide, max_boundaries=12)
    assert report.takeovers > 0
    assert not server.jobs or set(server.refused) <= set(server.jobs)
