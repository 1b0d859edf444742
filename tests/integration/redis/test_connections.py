"""Connections that break, answers that are lost, servers that hang or forget: nothing lies, and all
of it heals."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.integration.redis.helpers import (
    Network,
    a_checkpoint,
    a_claim,
    a_server,
    a_store,
    a_submit,
    opened,
)
from tests.missing import openssl
from tests.redis_server import fresh_prefix, shared_server

from holdfast.adapters.redis import link
from holdfast.adapters.redis.address import parse
from holdfast.adapters.redis.store import RedisStore
from holdfast.errors import StoreUnavailable
from holdfast.model.commands import Acquire, Acquired, Held, Settle, Submitted


@asynccontextmanager
async def behind_a_network(timeout: float = 5.0) -> AsyncIterator[tuple[RedisStore, Network]]:
    prefix = fresh_prefix()
    async with Network(shared_server().port) as network:
        url = f"redis://127.0.0.1:{network.port}/0?prefix={prefix}&timeout={timeout}"
        async with opened(RedisStore(url)) as store:
            yield store, network


async def with_its_answer_lost(store: RedisStore, network: Network, command: object) -> None:
    network.lose_answers = True
    with pytest.raises(StoreUnavailable, match="can't be reached"):
        await store.apply([command])  # type: ignore[list-item]
    network.lose_answers = False


def test_an_acquire_whose_answer_was_lost_is_asked_again_and_does_not_lie() -> None:
    async def story() -> None:
        async with behind_a_network() as (store, network):
            take = Acquire("lock", "mine", "me", 30.0)
            await with_its_answer_lost(store, network, take)
            assert await store.apply([take]) == [Acquired(1)]
            [other] = await store.apply([Acquire("lock", "theirs", "them", 30.0)])
            assert isinstance(other, Held)
            assert other.owner == "me"

    asyncio.run(story())


def test_a_submit_whose_answer_was_lost_is_the_same_run() -> None:
    async def story() -> None:
        async with behind_a_network() as (store, network):
            await with_its_answer_lost(store, network, a_submit("r1"))
            assert await store.apply([a_submit("r1")]) == [Submitted("r1", True, "queued")]
            assert len(await store.history("r1")) == 1

    asyncio.run(story())


def test_a_checkpoint_whose_answer_was_lost_completes_its_step_once() -> None:
    async def story() -> None:
        async with behind_a_network() as (store, network):
            await store.apply([a_submit("r1"), a_claim()])
            await with_its_answer_lost(store, network, a_checkpoint("r1", 1))
            assert await store.apply([a_checkpoint("r1", 1)]) == [None]
            assert [event.type for event in await store.history("r1")].count("step.completed") == 1

    asyncio.run(story())


def test_a_store_that_is_closed_while_it_connects_keeps_no_connection() -> None:
    async def story() -> None:
        async with a_store() as store:
            here = store._links.here()
            (await here.command_wire()).close()
            submitting = asyncio.create_task(store.apply([a_submit("r1")]))
            await asyncio.sleep(0)  # it has begun to connect
            await store.close()
            with pytest.raises(StoreUnavailable, match="closed meanwhile"):
                await submitting
            assert all(wire is None or wire.closed for wire in here._wires)

    asyncio.run(story())


def test_cut_connections_are_made_again() -> None:
    async def story() -> None:
        async with behind_a_network() as (store, network):
            for number in range(5):
                await store.apply([a_submit(f"r{number}")])
                network.cut()
                try:
                    run_view = await store.run(f"r{number}")
                except StoreUnavailable:  # sent before the loop had noticed
                    run_view = await store.run(f"r{number}")
                assert run_view is not None

    asyncio.run(story())


def test_everybody_who_waits_on_a_broken_connection_is_told() -> None:
    async def story() -> None:
        async with behind_a_network() as (store, network):
            network.lose_answers = True
            calls = [
                asyncio.create_task(store.apply([a_submit(f"r{number}")])) for number in range(20)
            ]
            failed = await asyncio.gather(*calls, return_exceptions=True)
            assert all(isinstance(error, StoreUnavailable) for error in failed)
            assert len({id(error) for error in failed}) == 20
            network.lose_answers = False
            again = await asyncio.gather(
                *[store.apply([a_submit(f"r{number}")]) for number in range(20)]
            )
            assert all(reply.created for [reply] in again)

    asyncio.run(story())


def test_notifications_arrive_again_after_their_connection_broke() -> None:
    async def story() -> None:
        prefix = fresh_prefix()
        async with Network(shared_server().port) as network:
            near = RedisStore(f"redis://127.0.0.1:{network.port}/0?prefix={prefix}")
            far = RedisStore(shared_server().url(prefix))
            async with opened(near), opened(far):
                version = await near.wait(0, 5.0)  # it has subscribed
                network.cut()
                version = await asyncio.wait_for(
                    near.wait(version, 30.0), 10.0
                )  # it has subscribed again
                waiting = asyncio.create_task(near.wait(version, 30.0))
                await far.apply([a_submit("r1")])
                assert await asyncio.wait_for(waiting, 5.0) > version

    asyncio.run(story())


def test_our_own_changes_notify_once() -> None:
    async def story() -> None:
        async with a_store() as store:
            version = await store.wait(0, 5.0)
            await store.apply([a_submit("r1")])
            version = await store.wait(version, 5.0)
            assert await store.wait(version, 0.1) == version

    asyncio.run(story())


def test_a_server_that_has_forgotten_the_scripts_gets_them_again() -> None:
    async def story(redis_url: str) -> None:
        async with opened(RedisStore(redis_url)) as store:
            await store.apply([a_submit("r1")])
            redis.call("SCRIPT", "FLUSH")
            [claimed], _ = await asyncio.gather(
                store.apply([a_claim()]), store.apply([a_submit("r2")])
            )
            assert [run.run for run in claimed] == ["r1"]
            redis.call("SCRIPT", "FLUSH")
            assert await store.run("r2") is not None

    with a_server() as redis:
        asyncio.run(story(redis.url()))


def test_a_server_that_hangs_is_given_up_after_the_time_out_and_used_again_later() -> None:
    async def story(redis_url: str) -> None:
        async with opened(RedisStore(redis_url)) as store:
            redis.pause()
            with pytest.raises(StoreUnavailable, match=r"within 0\.2 s"):
                await store.apply([a_submit("r1")])
            with pytest.raises(StoreUnavailable):
                await store.run("r1")
            redis.resume()
            await store.apply([a_submit("r2")])
            assert await store.run("r2") is not None

    with a_server() as redis:
        asyncio.run(story(redis.url(timeout="0.2")))


def test_a_server_without_memory_accepts_nothing_at_all() -> None:
    async def story(redis_url: str) -> None:
        async with opened(RedisStore(redis_url)) as store:
            await store.apply([a_submit("r1"), a_claim()])
            before = redis.call("DBSIZE")
            redis.call("CONFIG", "SET", "maxmemory", "1")
            with pytest.raises(StoreUnavailable, match="no memory left"):
                await store.apply([a_submit("r2", input='"x"'), a_submit("r3")])
            with pytest.raises(StoreUnavailable, match="no memory left"):
                await store.apply([a_checkpoint("r1", 1)])
            assert redis.call("DBSIZE") == before
            assert [event.type for event in await store.history("r1")] == [
                "run.queued",
                "run.started",
            ]
            redis.call("CONFIG", "SET", "maxmemory", "0")
            assert await store.apply(
                [a_submit("r2"), a_checkpoint("r1", 1), Settle("r1", 1, "succeeded")]
            )
            assert len(await store.history("r1")) == 4

    with a_server() as redis:
        asyncio.run(story(redis.url()))


def test_calls_that_are_given_up_do_not_disturb_the_others() -> None:
    async def story() -> None:
        async with a_store() as store:
            calls = [
                asyncio.create_task(store.apply([a_submit(f"r{number}")])) for number in range(10)
            ]
            await asyncio.sleep(0)
            for call in calls[::2]:
                call.cancel()
            replies = await asyncio.gather(*calls, return_exceptions=True)
            assert [reply[0].run for reply in replies[1::2]] == [
                f"r{number}" for number in (1, 3, 5, 7, 9)
            ]  # type: ignore[index]
            assert await store.run("r9") is not None

    asyncio.run(story())


def test_whoever_gives_up_connecting_leaves_no_connection_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        reached = asyncio.Event()

        async def hang(*_: object) -> None:
            reached.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(link, "_moved_to", hang)
        task = asyncio.create_task(link.find_master(parse(redis.url())))
        await reached.wait()
        task.cancel()
        await asyncio.wait([task])
        async with asyncio.timeout(10):
            while "connected_clients:1\n" not in await asyncio.to_thread(
                redis.call, "INFO", "clients"
            ):
                pass

    with a_server() as redis:
        asyncio.run(story())


def test_loops_come_and_go() -> None:
    """Each event loop has its own connections, closed when it ends; the store outlives them all."""
    store = RedisStore(shared_server().url(fresh_prefix()))
    asyncio.run(store.open())
    for number in range(3):
        asyncio.run(store.apply([a_submit(f"r{number}")]))
        assert len(store._links) == 0
    assert asyncio.run(store.run("r2")) is not None
    asyncio.run(store.close())


# --- TLS ---


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A key and a certificate for localhost in one file."""
    key, crt = tmp_path / "key.pem", tmp_path / "crt.pem"
    command = [
        openssl(),
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]
    command += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(crt)]
    subprocess.run(command, check=True, capture_output=True)
    both = tmp_path / "both.pem"
    both.write_text(key.read_text() + crt.read_text())
    return both


def test_a_server_behind_tls_is_trusted_by_its_certificate_only(certificate: Path) -> None:
    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", shared_server().port)

        async def pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                target.write(data)
            target.close()

        await asyncio.gather(pump(reader, back), pump(there, writer), return_exceptions=True)

    async def story() -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
        async with await asyncio.start_server(carry, "localhost", 0, ssl=context) as tls:
            port = tls.sockets[0].getsockname()[1]
            url = f"rediss://localhost:{port}/0?prefix={fresh_prefix()}"
            async with opened(RedisStore(f"{url}&ca={certificate}")) as store:
                await store.apply([a_submit("r1")])
                assert await store.run("r1") is not None
            with pytest.raises(StoreUnavailable, match="certificate"):
                await RedisStore(url).open()

    asyncio.run(story())
