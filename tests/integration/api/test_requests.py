"""What is wrong with a request is said in a problem document; nothing of it reaches the store."""

from __future__ import annotations

import select
import socket
from contextlib import suppress

import pytest
from tests.integration.api.live import LiveApi

from holdfast import Holdfast
from holdfast.api import bodies, create_app, server

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
        ("POST", "/v1/locks/a%00b/release", (422, "invalid-input")),
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


def test_head_is_get_without_the_body(memory_api: LiveApi) -> None:
    for path, status in (("/health", 200), ("/v1/runs", 200), ("/nowhere", 404)):
        head, get = memory_api.http.head(path), memory_api.get(path)
        assert (head.status_code, head.content) == (status, b"")
        assert head.headers["content-type"] == get.headers["content-type"]
    stream = memory_api.http.head("/v1/events", headers={"Accept": "text/event-stream"})
    assert stream.headers["content-type"].startswith("text/event-stream")
    while memory_api.app.state.hub.followers:  # whoever asked for no body follows nothing
        assert memory_api.get("/health").status_code == 200


@pytest.mark.parametrize("sent", ['"漢字"', "漢字", '"漢\\"字"'])
def test_a_key_in_the_header_may_be_any_text(memory_api: LiveApi, sent: str) -> None:
    key = sent.strip('"').replace('\\"', '"')
    headers = {"Idempotency-Key": sent.encode()}
    answer = memory_api.post(RUNS, {"input": {"name": "Ada"}}, headers=headers)
    assert answer.json()["run"]["key"] == key
    latin = memory_api.post(
        RUNS, {"input": {"name": "Ada"}}, headers={"Idempotency-Key": "é".encode("latin-1")}
    )
    assert latin.json()["run"]["key"] == "é"


def test_the_callers_request_id_is_answered(memory_api: LiveApi) -> None:
    answer = memory_api.get("/health", headers={"X-Request-Id": "trace-7"})
    assert answer.headers["x-request-id"] == "trace-7"
    odd = memory_api.get("/health", headers={"X-Request-Id": "a b<script>"})
    assert odd.headers["x-request-id"] != "a b<script>"


def test_the_header_and_the_body_must_not_name_two_keys(memory_api: LiveApi) -> None:
    body = {"input": {"name": "Ada"}, "key": "a"}
    answer = memory_api.post(RUNS, body, headers={"Idempotency-Key": "b"})
    assert problem(answer) == (400, "two-keys")


def test_a_body_that_is_announced_as_too_large_is_refused_without_being_read() -> None:
    with LiveApi(make=lambda holdfast: create_app(holdfast, max_body=1000)) as api:
        with connected(api) as announced:
            announced.sendall(head_of(RUNS, "Content-Length: 1000000000"))
            assert status_of(announced) == 413
        with connected(api) as waiting:  # as curl does, which then sends nothing
            waiting.sendall(head_of(RUNS, "Content-Length: 2000", "Expect: 100-continue"))
            assert status_of(waiting) == 413
        chunks = (b" " * 600 for _ in range(3))
        assert problem(api.http.post(RUNS, content=chunks)) == (413, "too-large")
        assert api.get("/v1/runs").json()["items"] == []


@pytest.mark.parametrize("path", [RUNS, "/create", "/login"])
@pytest.mark.parametrize("framing", ["Transfer-Encoding: chunked", "Content-Length: 1073741824"])
def test_a_body_that_does_not_end_is_refused_while_it_comes(path: str, framing: str) -> None:
    """A gigabyte, sent for as long as the service takes it: the answer comes early, the connection
    is closed, little was sent, and others are answered meanwhile."""
    limit, gigabyte, piece = 1_000_000, 1 << 30, b" " * 65536
    sent = 0
    with LiveApi(make=lambda holdfast: create_app(holdfast, max_body=limit)) as api:
        with connected(api) as streaming:
            form = "Content-Type: multipart/form-data; boundary=x"
            kind = form if path == "/create" else "Content-Type: application/json"
            streaming.sendall(head_of(path, framing, kind))
            if path == "/create":
                begin = b"--x\r\nContent-Disposition: form-data; name=file; filename=a\r\n\r\n"
                piece = begin.ljust(len(piece))
            if "chunked" in framing:
                piece = b"%x\r\n%b\r\n" % (len(piece), piece)
            answered = False
            while sent < gigabyte and not answered:
                streaming.sendall(piece)
                sent += len(piece)
                answered = bool(select.select([streaming], [], [], 0)[0])
            assert status_of(streaming) == 413
            assert api.get("/health").status_code == 200
            with suppress(OSError):  # it is closed
                while sent < gigabyte:
                    streaming.sendall(piece)
                    sent += len(piece)
        assert sent < gigabyte / 4
        assert api.get("/v1/runs").json()["items"] == []


def connected(api: LiveApi) -> socket.socket:
    host, port = api.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=10)


def head_of(path: str, *headers: str) -> bytes:
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: localhost", *headers, "", ""]).encode()


def status_of(connection: socket.socket) -> int:
    """Of the answer, which also says that the connection ends."""
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += (part := connection.recv(4096))
        assert part, answer
    assert b"connection: close" in answer.lower()
    return int(answer.split()[1])


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "example.org"},
        {"Origin": "https://example.org"},
        {"Origin": "null"},
        {"X-Forwarded-For": "127.0.0.1"},
        {"X-Real-IP": "127.0.0.1"},
        {"Forwarded": "for=127.0.0.1"},
        {"Via": "1.1 proxy"},
    ],
    ids=str,
)
def test_without_keys_neither_pages_nor_clients_of_others_can_call(
    memory_api: LiveApi, headers
) -> None:
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


HEAD = f"POST {RUNS} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"


@pytest.mark.parametrize(
    ("begun", "answered"),
    [
        ("", b""),
        (HEAD[:30], b""),
        (HEAD[:-2], b""),
        (HEAD, b"HTTP/1.1 408"),
        (HEAD + "{", b"HTTP/1.1 408"),
    ],
    ids=["nothing", "half a line", "half a head", "no body", "half a body"],
)
def test_who_does_not_go_on_is_not_waited_for(
    begun: str, answered: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "HEAD_TIME", 0.1)
    monkeypatch.setattr(server, "SWEEP", 0.05)
    monkeypatch.setattr(bodies, "READ_TIMEOUT", 0.1)
    with LiveApi() as api, connected(api) as slow:
        slow.sendall(begun.encode())
        received = b""
        while piece := slow.recv(65536):  # until it is closed
            received += piece
        assert received[: len(answered) or None] == answered
        assert api.get("/health").status_code == 200


def test_a_form_that_does_not_arrive_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "FORM_TIMEOUT", 0.1)
    with LiveApi() as api, connected(api) as slow:
        form = "Content-Type: multipart/form-data; boundary=x"
        slow.sendall(head_of("/create", "Content-Length: 1000", form) + b"--x\r\n")
        assert status_of(slow) == 408


def test_no_answer_waits_for_an_acknowledgement() -> None:
    """Also of an event loop that is not uvloop, which sees to it by itself."""
    with (
        server.listen("127.0.0.1", 0) as listening,
        socket.create_connection(listening.getsockname()),
        listening.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


class Transport:
    def __init__(self) -> None:
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


class Cycle:
    def __init__(self, *, response_complete: bool) -> None:
        self.response_complete = response_complete


class Connection:
    """As much of uvicorn's protocols as is looked at."""

    def __init__(self, cycle: Cycle | None) -> None:
        self.cycle = cycle
        self.transport = Transport()


def test_a_connection_in_use_is_not_closed() -> None:
    silent = Connection(None)
    streaming = Connection(Cycle(response_complete=False))
    busy = Connection(Cycle(response_complete=True))
    callers = server.SlowCallers([silent, streaming, busy, object()])
    for second in range(0, 100, 5):
        busy.cycle = Cycle(response_complete=True)  # the next request, answered
        callers.close_slow(float(second))
        assert silent.transport.is_closed == (second > server.HEAD_TIME)
    assert not streaming.transport.is_closed
    assert not busy.transport.is_closed
