"""`holdfast.Client` against a real service: the shapes and errors of holdfast itself."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest
from tests.integration.api.live import LiveApi

from holdfast import AsyncClient, Client, Conflict, RunFailed
from holdfast.errors import ConfigurationError, KeyReused, NotFound, StillRunning, StoreUnavailable
from holdfast.model.run import RunState
from holdfast.ports.store import RunFilter
from holdfast.services.service import Submission


@pytest.fixture
def client(memory_api: LiveApi):
    with Client(memory_api.url) as client:
        yield client


def test_a_run_is_submitted_watched_and_read(client: Client) -> None:
    accepted = client.submit("greet", {"name": "Ada"}, key="c-1", labels={"user": "42"})
    assert accepted.created
    types = [event.type for event in client.watch(accepted.run.id)]
    assert (types[0], types[-1]) == ("run.queued", "run.completed")
    assert client.result("c-1")["text"] == "hello Ada"
    assert client.runs.find("c-1").state == "succeeded"
    [run] = client.runs.list(RunFilter(labels={"user": "42"})).items
    assert run.id == accepted.run.id
    assert not client.submit("greet", {"name": "Ada"}, key="c-1").created


def test_views_are_those_of_the_command_line(client: Client) -> None:
    run = client.submit("greet", {"name": "Eve"}).run.id
    assert client.wait(run, 20).state == "succeeded"
    *_, last = client.runs.watch(run)
    assert [step.name for step in last.steps] == ["hello", "card"]
    [artifact] = client.runs.artifacts(run)
    assert client.runs.artifact(run, artifact.id) == b"hello Eve"
    assert client.runs.logs(run)[0].message == "greeting Eve"
    assert client.runs.explain(run).state == "succeeded"
    assert [event.seq for event in client.runs.events(run, after=3)] == [4, 5]
    again = client.runs.rerun(run, from_step="card")
    assert client.wait(again.run, 20).parent == run


@pytest.mark.parametrize("key", ["a/b", "/", "..", ".", "漢字?#%2F", 'a "b" \\'])
def test_a_run_is_named_by_any_key(client: Client, key: str) -> None:
    accepted = client.submit("greet", {"name": "Ada"}, key=key)
    assert accepted.run.key == key
    assert client.wait(key, 20).id == accepted.run.id
    assert client.result(key)["text"] == "hello Ada"
    assert [event.type for event in client.watch(key)][-1] == "run.completed"
    with pytest.raises(NotFound, match="no run"):
        client.runs.show(f"{key}/nobody")


def test_errors_are_those_of_holdfast(client: Client) -> None:
    run = client.submit("slow", "a").run.id
    with pytest.raises(StillRunning):
        client.result(run, timeout=0)
    assert client.runs.cancel(run, reason="enough").state == "cancelled"
    with pytest.raises(Conflict) as conflict:
        client.runs.pause(run)
    assert conflict.value.run_id == run
    with pytest.raises(NotFound):
        client.runs.show("nobody")
    client.submit("greet", {"name": "Ada"}, key="once")
    with pytest.raises(KeyReused):
        client.submit("greet", {"name": "Bob"}, key="once")
    failed = client.submit("greet", {"name": "x", "trouble": "fail"}).run.id
    with pytest.raises(RunFailed, match="no greeting today"):
        client.result(failed)
    [letter] = client.dead_letters.list().items
    assert client.dead_letters.show(letter.id).error is not None
    assert client.dead_letters.discard(letter.id, reason="test").changed


def test_many_are_submitted_at_once(client: Client) -> None:
    inputs = [{"name": f"n{number}"} for number in range(3)]
    accepted = client.runs.submit_many("greet", inputs, about=Submission(delay=3600))
    assert [item.run.state for item in accepted] == [RunState.QUEUED] * 3


def test_the_installation_is_looked_at(client: Client) -> None:
    assert {lane.name for lane in client.lanes.list()} == {"default"}
    assert [view.name for view in client.pipelines.list()] == ["greet", "slow"]
    assert client.pipelines.schema("greet")["properties"].keys() == {"name", "trouble"}
    assert len(client.workers()) == 1
    with pytest.raises(NotFound):
        client.locks.release("nothing")
    with pytest.raises(NotFound):
        client.projections.find("nothing")
    assert client.audit() is not None


def test_the_same_is_there_for_asynchronous_programs(memory_api: LiveApi) -> None:
    async def scenario() -> None:
        async with AsyncClient(memory_api.url) as client:
            run = (await client.submit("greet", {"name": "Ada"})).run.id
            events = [event.type async for event in client.watch(run)]
            assert events[-1] == "run.completed"
            assert (await client.result(run))["text"] == "hello Ada"

    asyncio.run(scenario())


def test_a_service_that_is_away_is_said(client: Client) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with (
        Client(f"http://127.0.0.1:{port}") as other,
        pytest.raises(StoreUnavailable, match="serve"),
    ):
        other.runs.show("x")
    for url in ("ftp://example.org", "localhost:8080", "http://me:secret@example.org"):
        with pytest.raises(ConfigurationError):
            Client(url)


def test_a_lost_answer_is_asked_for_again_where_that_is_safe() -> None:
    """A server that closes the first connection after the request, and answers the second."""
    requests: list[bytes] = []
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        for number in range(2):
            connection, _ = listening.accept()
            with connection:
                requests.append(connection.recv(65536))
                if number:
                    body = b'{"items": []}'
                    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n"
                    connection.sendall(head.encode() + body)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with Client(f"http://127.0.0.1:{listening.getsockname()[1]}") as client:
        assert client.runs.list(RunFilter()).items == []
    thread.join(10)
    listening.close()
    assert len(requests) == 2
