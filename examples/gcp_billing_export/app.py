"""Export billing rows: one live export for each tenant.

export HOLDFAST_APP=examples/gcp_billing_export/app.py:app
holdfast run gcp_billing_export --input source=billing.csv
"""

from __future__ import annotations

from hashlib import sha256

import polars as pl
from bigquery import BigQuery
from billing_rows import Checked, MissingColumns, checked_rows, from_parquet, to_parquet, totals
from billing_source import read
from pydantic import BaseModel

from holdfast import BlockingContext, Holdfast, Permanent, Pipeline

EXAMPLES = 20


class BillingExport(BaseModel):
    """`source` is a CSV or Parquet file, or `bigquery://project/dataset.table`."""

    source: str
    trigger_by: str = "api_user"


class Day(BaseModel):
    """The rows of one day, and the digest of their Parquet file."""

    day: str
    rows: int
    sha256: str


class Partition(Day):
    """Where the file is: an artifact of the run. Its address is the run's own, so it is no part of
    the result, which is the same for the same rows."""

    where: str


class Total(BaseModel):
    tenant_id: str
    day: str
    service: str
    currency: str | None
    micros: int
    rows: int


class Summary(BaseModel):
    rows: int
    rejected: int
    partitions: list[Day]
    totals: list[Total]


gcp_billing_export = Pipeline("gcp_billing_export", input=BillingExport, unique=True, timeout="1h")


@gcp_billing_export.step(timeout="30m")
def rows(input: BillingExport, ctx: BlockingContext) -> Checked:
    """Read the source and keep what is fit."""
    table = read(input.source, ctx.use(BigQuery), ctx.idempotency_key)
    try:
        good, rejected = checked_rows(table)
    except MissingColumns as error:
        raise Permanent(str(error)) from error
    if rejected:
        ctx.log.warning(f"{len(rejected)} rows are left out")
    return Checked(
        rows=good.height,
        rejected=len(rejected),
        examples=rejected[:EXAMPLES],
        days=good.get_column("day").unique().sort().to_list(),
        where=ctx.artifact("rows.parquet", to_parquet(good)),
    )


@gcp_billing_export.step
def partitions(rows: Checked, ctx: BlockingContext) -> list[Partition]:
    """A Parquet file a day, each a checkpoint of its own."""
    table = from_parquet(ctx.read(rows.where))

    def write(day: str) -> Partition:
        part = table.filter(pl.col("day") == day)
        data = to_parquet(part)
        where = ctx.artifact(f"usage_date-{day}.parquet", data)
        return Partition(day=day, rows=part.height, sha256=sha256(data).hexdigest(), where=where)

    return ctx.map(write, rows.days, concurrency=1)


@gcp_billing_export.step
def summary(rows: Checked, partitions: list[Partition], ctx: BlockingContext) -> Summary:
    table = from_parquet(ctx.read(rows.where))
    return Summary(
        rows=rows.rows,
        rejected=rows.rejected,
        partitions=[Day.model_validate(part.model_dump(exclude={"where"})) for part in partitions],
        totals=[Total.model_validate(total) for total in totals(table)],
    )


app = Holdfast(pipelines=[gcp_billing_export], provide={BigQuery: BigQuery.from_environment()})
