"""What is wrong with a request is said in a problem document; nothing of it reaches the store."""

from __future__ import annotations

import socket

import pytest
from tests.integration.api.live import LiveApi

from holdfast import Holdfast
from holdfast.api import create_app

RUNS = "/v1/pipelines/greet/runs"


def problem(answer) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert body["status"] == answer.status_code
    assert body["type"] == f"urn:holdfast:problem:{body['code']}"
    assert body["request_id"] == answer.headers["x-request-id"]
    return answer.status_code, body["code"]


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/nowhere", (404, "not-found")),
        ("DELETE", "/v1/runs", (405, "method-not-allowed")),
        ("GET", "/v1/runs/nobody", (404, "not-found")),
        ("GET", "/v1/runs?limit=0", (422, "invalid-input")),
        ("GET", "/v1/runs?limit=many", (422, "invalid-input")),
        ("GET", "/v1/runs?cursor=-1", (422, "invalid-input")),
        ("GET", "/v1/runs?state=lost", (422, "invalid-input")),
        ("GET", "/v1/runs?label=user", (422, "invalid-input")),
        ("POST", "/v1/pipelines/nothing/runs", (404, "unknown-pipeline")),
        ("POST", "/v1/runs/nobody/cancel", (404, "not-found")),
    ],
)
def test_a_wrong_request_is_a_problem(memory_api: LiveApi, method, path, expected) -> None:
    assert problem(memory_api.http.request(method, path)) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"{", (400, "no-json")),
        (b"\xff\xfe", (400, "no-json")),
        (b"[]", (422, "invalid-input")),
        (b'{"input": {"name": 7}}', (422, "invalid-input")),
        (b'{"input": {"name": "a"}, "labels": {"a": 1}}', (422, "invalid-input")),
        (b'{"input": {"name": "a"}, "delay": -1}', (422, "invalid-input")),
        (b'{"input": {"name": "a"}, "priority": 1e400}', (422, "invalid-input")),
        (b'{"input": {"name": "a"}, "key": ""}', (422, "invalid-input")),
        (b'{"input": ' + b"[" * 200 + b"]" * 200 + b"}", (422, "too-deep")),
        (b"[" * 100_000, (422, "too-deep")),
    ],
    ids=str,
)
def test_a_wrong_body_is_a_problem(memory_api: LiveApi, body: bytes, expected) -> None:
    before = len(memory_api.get("/v1/runs").json()["items"])
    assert problem(memory_api.http.post(RUNS, content=body)) == expected
    assert len(memory_api.get("/v1/runs").json()["items"]) == before


def test_brackets_in_texts_are_no_depth(memory_api: LiveApi) -> None:
    name = '["' * 300
    assert memory_api.post(RUNS, {"input": {"name": name}}).status_code == 202


def test_the_callers_request_id_is_answered(memory_api: LiveApi) -> None:
    answer = memory_api.get("/health", headers={"X-Request-Id": "trace-7"})
    assert answer.headers["x-request-id"] == "trace-7"
    odd = memory_api.get("/health", headers={"X-Request-Id": "a b<script>"})
    assert odd.headers["x-request-id"] != "a b<script>"


def test_the_header_and_the_body_must_not_name_two_keys(memory_api: LiveApi) -> None:
    body = {"input": {"name": "Ada"}, "key": "a"}
    answer = memory_api.post(RUNS, body, headers={"Idempotency-Key": "b"})
    assert problem(answer) == (400, "two-keys")


def test_a_large_body_is_refused_without_being_read() -> None:
    with LiveApi(make=lambda holdfast: create_app(holdfast, max_body=1000)) as api:
        host, port = api.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=10) as announced:
            head = f"POST {RUNS} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n"
            announced.sendall(head.encode())
            assert announced.recv(100).startswith(b"HTTP/1.1 413")
        chunks = (b" " * 600 for _ in range(3))
        assert problem(api.http.post(RUNS, content=chunks)) == (413, "too-large")
        assert api.get("/v1/runs").json()["items"] == []


@pytest.mark.parametrize(
    "headers",
    [{"Host": "example.org"}, {"Origin": "https://example.org"}, {"Origin": "null"}],
    ids=str,
)
def test_without_keys_web_pages_of_others_can_not_call(memory_api: LiveApi, headers) -> None:
    answer = memory_api.get("/v1/runs", headers=headers)
    assert problem(answer) == (403, "no-keys")
    assert "holdfast tenants keys create" in answer.json()["detail"]


def test_a_bug_is_a_problem_without_its_details() -> None:
    def make(holdfast: Holdfast):
        api = create_app(holdfast)

        @api.get("/bug")
        async def bug() -> None:
            raise ZeroDivisionError("with a secret")

        return api

    with LiveApi(make=make) as api:
        answer = api.get("/bug")
        assert problem(answer) == (500, "internal-error")
        assert "secret" not in answer.text
