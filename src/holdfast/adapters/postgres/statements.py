"""The statements that are sent, with the store's schema and our columns filled in."""

from __future__ import annotations

import re
from importlib import resources

from holdfast.adapters.postgres.address import Address
from holdfast.model.machine.facts import RunFacts

_NAMED = re.compile(r"^-- name: (\w+)$", re.MULTILINE)

RUN_COLUMNS = [f"r.{'is_unique' if n == 'unique' else n}" for n in RunFacts.__struct_fields__]
"""Of all_runs."""

FILLED_IN = {
    ":run": f"json_build_array({', '.join(RUN_COLUMNS)})",
    ":letter": (
        "json_build_array(d.id, d.source, d.reason, "
        "translate(encode(coalesce(d.body, convert_to("
        "replace(q.input, U&'\\FFFF' || '1', U&'\\FFFF'), 'UTF8')), 'base64'), E'\\n', ''), "
        "d.attributes, d.tenant, d.created, d.run, d.closed, d.resolution)"
    ),
    ":labelled": (
        "SELECT l.seq FROM :s.labels l JOIN jsonb_each_text($7::jsonb) w "
        "ON w.key = l.name AND w.value = l.value WHERE $1::text IS NULL OR l.tenant = $1 "
        "GROUP BY l.seq "
        "HAVING count(*) = (SELECT count(*) FROM jsonb_object_keys($7::jsonb))"
    ),
    ":now": "coalesce($1::double precision, extract(epoch FROM clock_timestamp()))",
}
_PLACEHOLDER = re.compile("|".join(rf"{name}\b" for name in FILLED_IN))


def load(address: Address) -> dict[str, bytes]:
    """All of queries.sql by name, and the one that writes."""
    text = resources.files("holdfast.adapters.postgres").joinpath("queries.sql").read_text()
    _, *parts = _NAMED.split(text)
    schema = address.quoted_schema
    statements = {
        name: _PLACEHOLDER.sub(lambda match: FILLED_IN[match[0]], sql.strip())
        for name, sql in zip(parts[::2], parts[1::2], strict=True)
    }
    statements = {name: sql.replace(":s.", f"{schema}.") for name, sql in statements.items()}
    statements["apply"] = f"SELECT {schema}.apply($1)"
    return {name: sql.encode() for name, sql in statements.items()}
