"""The statements that are sent, with the store's schema filled in."""

from __future__ import annotations

import re
from importlib import resources

from holdfast.adapters.postgres.address import Address
from holdfast.adapters.postgres.batch import LONE

_NAMED = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def load(address: Address) -> dict[str, bytes]:
    """All of queries.sql by name, and those that write."""
    text = resources.files("holdfast.adapters.postgres").joinpath("queries.sql").read_text()
    _, *parts = _NAMED.split(text)
    schema = address.quoted_schema
    text_of_schema = schema.replace("'", "''")
    found = {
        name: sql.strip().replace("':s.", f"'{text_of_schema}.").replace(":s.", f"{schema}.")
        for name, sql in zip(parts[::2], parts[1::2], strict=True)
    }
    found["apply"] = f"SELECT {schema}.apply($1)"
    found |= {name: f"SELECT {schema}.{name}($1, $2)" for name in LONE.values()}
    return {name: sql.encode() for name, sql in found.items()}
