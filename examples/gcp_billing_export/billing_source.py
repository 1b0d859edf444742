"""Where billing rows come from."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import polars as pl
from bigquery import BigQuery
from billing_rows import COLUMNS

from holdfast import Permanent

_TABLE = re.compile(r"[A-Za-z0-9_]+\.[A-Za-z0-9_$]+")
_PROJECT = re.compile(r"[a-z][a-z0-9-]{4,28}[a-z0-9]")


def read(source: str, bigquery: BigQuery, job_key: str) -> pl.DataFrame:
    """`file.csv`, `file.parquet` or `bigquery://project/dataset.table`, every cell as a text."""
    if source.startswith("bigquery:"):
        return _from_bigquery(source, bigquery, job_key)
    path = Path(source)
    if not path.is_file():
        raise Permanent(f"there is no file {source}")
    if path.suffix == ".parquet":
        return pl.read_parquet(path)
    return pl.read_csv(path, infer_schema=False)


def _from_bigquery(source: str, bigquery: BigQuery, job_key: str) -> pl.DataFrame:
    project, table = urlsplit(source).netloc, urlsplit(source).path.strip("/")
    if not _PROJECT.fullmatch(project) or not _TABLE.fullmatch(table):
        raise Permanent(f"{source!r} is no table: write bigquery://project/dataset.table")
    columns = ", ".join(COLUMNS)
    sql = f"SELECT {columns} FROM `{project}.{table}`"  # both are checked above
    rows = bigquery.query(project, sql, job_id(job_key))
    return pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String))


def job_id(key: str) -> str:
    """A job id of BigQuery: letters, digits, `_` and `-`."""
    return "holdfast-" + re.sub(r"[^A-Za-z0-9_-]", "-", key)
