"""Every field of every body, every parameter and every part of a path, with values that do not fit,
about things that are there: nothing is a failure of the service."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.integration.api.live import LiveApi, store_url

from holdfast import Holdfast
from holdfast.api import create_app
from holdfast.model.commands import Bury

DOCUMENT = create_app(Holdfast("memory:")).openapi()
SCHEMAS = DOCUMENT["components"]["schemas"]

TEXTS = ["", " ", "\0", "a\0b", "x" * 5000, "..", "%", "*", "é漢", "\u2028\x1b[31m", "-1", "9" * 30]
VALUES = [
    *TEXTS,
    *(None, True, -1, 0, 1, 2**31, 2**53, 2**63, -(2**63), 10**30, 1.5, -0.5, 1e-300, 1e308),
    *([], {}, [None], ["x"] * 300, [["x"]], {"": ""}, {"a": {"b": []}}, {"running": 0}),
]
BODIES: dict[str, dict[str, Any]] = {
    "/v1/pipelines/{pipeline}/runs": {"input": {"name": "Ada"}, "delay": 3600},
    "/v1/pipelines/{pipeline}/runs/batch": {"inputs": [{"name": "Ada"}], "delay": 3600},
    "/v1/tenants": {"name": "bolt"},
    "/v1/keys": {"tenant": "acme"},
    "/v1/webhooks": {"url": "http://127.0.0.1:9/"},
    "/pipeline/run": {"content": "Ada"},
    "/pipelines/batch/publish": {"tenant_ids": ["acme"], "pipeline_id": "greet"},
    "/jobs": {"youtubeUrl": "https://example.org/talk.mp3"},
}
"""What a body needs beside the field that is tried."""

Operation = tuple[str, str, dict[str, Any]]
OPERATIONS: list[Operation] = [
    (method.upper(), path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
]


@pytest.fixture(scope="module", params=["memory", "postgres"])
def api(request: pytest.FixtureRequest) -> Iterator[LiveApi]:
    with LiveApi(store_url(request.param, Path())) as api:
        yield api


@pytest.fixture(scope="module")
def names(api: LiveApi) -> dict[str, str]:
    """What parts of paths are called that are there."""
    admin = api.call(api.holdfast.keys.create("default", ["admin"], actor="test"))
    api.http.headers["X-Api-Key"] = admin.text
    run = api.submit("Ada", delay=3600)
    api.call(api.holdfast.store.apply([Bury("m-1", "bus", "bad", b"x", {}, "default")]))
    api.call(api.holdfast.tenants.create("acme", actor="test"))
    issued = api.call(api.holdfast.keys.create("acme", ["read"], actor="test"))
    hook = api.post("/v1/webhooks", {"url": "http://127.0.0.1:9/", "events": ["run.failed"]})
    return {
        **dict.fromkeys(("run", "pipeline_logging_id", "job_id"), run),
        **dict.fromkeys(("pipeline", "pipeline_id"), "greet"),
        "id": "m-1",
        "event": f"{run}:1",
        "lane": "default",
        "tenant": "acme",
        "key": issued.key.id,
        "webhook": hook.json()["id"],
    }


def filled(path: str, names: dict[str, str]) -> str:
    return re.sub(r"{(\w+)}", lambda part: quote(names.get(part[1], "nobody"), safe=""), path)


def fields(operation: dict[str, Any]) -> list[str]:
    """Of the JSON that it takes."""
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    schema = SCHEMAS.get(schema.get("$ref", "").rpartition("/")[2], schema)
    return list(schema.get("properties", ()))


def requests(operation: Operation, names: dict[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each with one odd value: where it goes, and with what."""
    _, path, described = operation
    base, there = BODIES.get(path, {}), filled(path, names)
    for field in fields(described):
        for value in VALUES:
            yield there, {"json": base | {field: value}}
    for parameter in described.get("parameters", ()):
        for text in TEXTS:
            if parameter["in"] == "path":
                yield filled(path, names | {parameter["name"]: text}), {"json": base}
            elif parameter["in"] == "query":
                yield there, {"params": {parameter["name"]: text}, "json": base}


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda it: f"{it[0]} {it[1]}")
def test_no_value_is_a_failure(api: LiveApi, names: dict[str, str], operation: Operation) -> None:
    method = operation[0]
    for where, given in requests(operation, names):
        if method in ("GET", "DELETE"):
            given.pop("json")
        answer = api.http.request(method, where, **given)
        assert answer.status_code < 500, (where, given, answer.text)
        if answer.status_code >= 400:
            assert answer.headers["content-type"] == "application/problem+json", (where, given)
