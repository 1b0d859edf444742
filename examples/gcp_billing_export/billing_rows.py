"""What a billing row has to look like. Money is counted in millionths: sums of it are exact."""

from __future__ import annotations

from io import BytesIO

import polars as pl
from pydantic import BaseModel

MICROS = 1_000_000
COLUMNS = ("tenant_id", "service", "usage_date", "cost", "currency")


class Rejected(BaseModel):
    """A row that is left out, by its number in the source, counted from 1."""

    row: int
    reason: str


class Checked(BaseModel):
    rows: int
    rejected: int
    examples: list[Rejected]
    """The first of the rejected ones."""
    days: list[str]
    where: str
    """The rows that are fit, as an artifact."""


class MissingColumns(ValueError):
    pass


def checked_rows(table: pl.DataFrame) -> tuple[pl.DataFrame, list[Rejected]]:
    """The rows that are fit, in a fixed order, and what is wrong with the others."""
    missing = [name for name in COLUMNS if name not in table.columns]
    if missing:
        raise MissingColumns(f"the source has no column {', '.join(missing)}")
    parsed = table.select(pl.col(name).cast(pl.String) for name in COLUMNS).with_columns(
        row=pl.int_range(1, pl.len() + 1),
        day=pl.col("usage_date").str.slice(0, 10).str.to_date("%Y-%m-%d", strict=False),
        micros=(pl.col("cost").cast(pl.Decimal(38, 6), strict=False) * MICROS).cast(
            pl.Int64, strict=False
        ),
    )
    reason = (
        pl.when(pl.col("tenant_id").fill_null("").str.strip_chars() == "")
        .then(pl.lit("no tenant_id"))
        .when(pl.col("service").fill_null("").str.strip_chars() == "")
        .then(pl.lit("no service"))
        .when(pl.col("day").is_null())
        .then(pl.lit("usage_date is no date"))
        .when(pl.col("micros").is_null())
        .then(pl.lit("cost is no number"))
    )
    judged = parsed.with_columns(reason=reason)
    bad = judged.filter(pl.col("reason").is_not_null()).select("row", "reason")
    good = judged.filter(pl.col("reason").is_null()).select(
        "tenant_id", "service", pl.col("day").cast(pl.String), "micros", "currency"
    )
    rejected = [Rejected(row=row, reason=why) for row, why in bad.iter_rows()]
    return good.sort("day", "tenant_id", "service", "micros"), rejected


def totals(rows: pl.DataFrame) -> list[dict[str, str | int]]:
    """By service, day and tenant; money in millionths."""
    keys = ["tenant_id", "day", "service", "currency"]
    added = rows.group_by(keys).agg(pl.col("micros").sum(), pl.len().alias("rows"))
    return added.sort(keys).to_dicts()


def to_parquet(rows: pl.DataFrame) -> bytes:
    buffer = BytesIO()
    rows.write_parquet(buffer)
    return buffer.getvalue()


def from_parquet(data: bytes) -> pl.DataFrame:
    return pl.read_parquet(BytesIO(data))
