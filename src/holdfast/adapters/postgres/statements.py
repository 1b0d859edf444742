"""The statements that are sent, with the store's schema and our columns filled in."""

from __future__ import annotations

import re
from importlib import resources

from holdfast.adapters.postgres.address import Address
from holdfast.model.machine.facts import RunFacts

RUN_COLUMNS = [f"r.{'is_unique' if n == 'unique' else n}" for n in RunFacts.__struct_fields__]
"""Of all_runs."""

FILTER = (
    "($1::text IS NULL OR q.tenant = $1) AND ($2::text IS NULL OR q.pipeline = $2) "
    "AND ($4::text IS NULL OR q.lane = $4) AND ($5::text IS NULL OR q.key = $5) "
    "AND ($6::text IS NULL OR q.id >= $6 AND q.id < $6 || U&'\\+10FFFF') "
    "AND ($7::text IS NULL OR q.seq IN ("
    "SELECT l.seq FROM :s.labels l JOIN jsonb_each_text($7::jsonb) w "
    "ON w.key = l.name AND w.value = l.value WHERE $1::text IS NULL OR l.tenant = $1 "
    "GROUP BY l.seq HAVING count(*) = (SELECT count(*) FROM jsonb_object_keys($7::jsonb))))"
)
"""What a RunFilter asks of a row `q`; but for $3, the state, which stands in no single column."""

FILLED_IN = {
    ":open": (  # with its key
        "(SELECT *, (SELECT q.key FROM :s.requests q WHERE q.id = o.id) AS key FROM :s.open_runs o)"
    ),
    ":run": f"json_build_array({', '.join(RUN_COLUMNS)})",
    ":letter": (
        "json_build_array(d.id, d.source, d.reason, "
        "translate(encode(coalesce(d.body, convert_to("
        "replace(q.input, U&'\\FFFF' || '1', U&'\\FFFF'), 'UTF8')), 'base64'), E'\\n', ''), "
        "d.attributes, d.tenant, d.created, d.run, d.closed, d.resolution)"
    ),
    ":now": "coalesce($1::double precision, extract(epoch FROM clock_timestamp()))",
}
CALLS = {
    "apply": "apply($1)",
    "outbox": "next_events($1::bigint, $2::bigint)",
    "facts": "facts($2::jsonb, $1::double precision)",
    "ended_leases": "ended_leases($2, :now)",
    "expired": "expired($2, $3, $4, $5, :now)",
    "channel": "channel()",
}
"""The functions of the schema that are called as they are."""

_PLACEHOLDER = re.compile("|".join(rf"{name}\b" for name in FILLED_IN))
_FILTER = re.compile(r":filter\((\w)\)")
_NAMED = re.compile(r"^-- (rows|value): (\w+)$", re.MULTILINE)


def load(address: Address) -> dict[str, bytes]:
    """All of queries.sql, and the calls, by name."""
    text = resources.files("holdfast.adapters.postgres").joinpath("queries.sql").read_text()
    _, *parts = _NAMED.split(text)
    statements = {name: f"SELECT :s.{call}" for name, call in CALLS.items()}
    for kind, name, sql in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        statements[name] = f"SELECT to_json(ARRAY(\n{sql}\n))" if kind == "rows" else sql
    return {name: _filled(sql, address).encode() for name, sql in statements.items()}


def _filled(sql: str, address: Address) -> str:
    sql = _PLACEHOLDER.sub(lambda match: FILLED_IN[match[0]], sql)
    sql = _FILTER.sub(lambda match: FILTER.replace("q.", f"{match[1]}."), sql)
    return sql.replace(":s.", f"{address.quoted_schema}.")
