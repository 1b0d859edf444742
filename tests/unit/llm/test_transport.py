"""The real transport, on real sockets."""

import asyncio

import pytest

from holdfast.adapters.llm.transport import CutShort, HttpTransport
from holdfast.errors import Transient


async def served(answer, story):
    """Play a story against a server that does what `answer(reader, writer)` says."""
    connections = 0

    async def connected(reader, writer):
        nonlocal connections
        connections += 1
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                await answer(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    transport = HttpTransport(proxies=False)
    try:
        result = await story(transport, f"http://127.0.0.1:{port}/v1/x")
    finally:
        await transport.aclose()
        server.close()
    return result, connections


def saying(data: bytes, then_close: bool = False):
    async def answer(reader, writer):
        writer.write(data)
        await writer.drain()
        if then_close:
            writer.close()
            raise ConnectionError

    return answer


OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"


def post(data: bytes, then_close: bool = False, timeout: float = 5.0):
    async def story(transport, url):
        return await transport.post(url, {"x-test": "1"}, b"", timeout)

    return asyncio.run(served(saying(data, then_close), story))


def test_connections_are_kept_open_and_used_again():
    async def story(transport, url):
        for _ in range(10):
            await transport.post(url, {}, b"", 5.0)
        await asyncio.gather(*(transport.post(url, {}, b"", 5.0) for _ in range(8)))
        await asyncio.gather(*(transport.post(url, {}, b"", 5.0) for _ in range(8)))

    _, connections = asyncio.run(served(saying(OK), story))
    assert connections == 8


def test_an_answer_is_read_whole_however_it_is_sent():
    chunked = (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nX-Name: a\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    )
    answer, _ = post(chunked)
    assert (answer.status, answer.body, answer.headers["x-name"]) == (200, b"{}", "a")
    until_close, _ = post(b"HTTP/1.1 200 OK\r\n\r\n{}", then_close=True)
    assert until_close.body == b"{}"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", Transient),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n", Transient),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{}", CutShort),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{}", CutShort),
        (b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\nnope", Transient),
        (b"SSH-2.0-OpenSSH_9.2\r\n", Transient),
        (b"HTTP/1.1 abc\r\n\r\n", Transient),
    ],
)
def test_what_is_not_a_whole_answer_is_transient(data, kind):
    with pytest.raises(kind) as caught:
        post(data, then_close=True)
    assert type(caught.value) is kind
    assert "127.0.0.1:" in str(caught.value)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


def test_an_endless_answer_is_cut_off():
    async def forever(reader, writer):
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b" " * 1_000_000)
            await writer.drain()

    async def story(transport, url):
        with pytest.raises(CutShort, match="more than 10 MiB"):
            await transport.post(url, {}, b"", 20.0)

    asyncio.run(served(forever, story))


def test_a_compressed_bomb_is_cut_off_as_well():
    import gzip

    bomb = gzip.compress(b" " * 50_000_000)
    head = (
        f"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {len(bomb)}\r\n\r\n".encode()
    )
    with pytest.raises(CutShort, match="more than 10 MiB"):
        post(head + bomb)


def test_the_whole_call_has_to_be_over_in_time():
    async def drip(reader, writer):
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:  # each byte comes in time, the answer never does
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.02)

    async def story(transport, url):
        with pytest.raises(Transient, match=r"within 0\.2 s"):
            await transport.post(url, {}, b"", 0.2)

    asyncio.run(served(drip, story))


def test_redirects_are_not_followed():
    moved = (
        b"HTTP/1.1 302 Found\r\nlocation: http://elsewhere.invalid/\r\ncontent-length: 0\r\n\r\n"
    )
    answer, _ = post(moved)
    assert (answer.status, answer.headers["location"]) == (302, "http://elsewhere.invalid/")


def test_a_connection_that_the_server_has_closed_is_not_used_again():
    async def once(reader, writer):
        writer.write(OK)
        await writer.drain()
        writer.close()
        raise ConnectionError

    async def story(transport, url):
        for _ in range(5):
            assert (await transport.post(url, {}, b"", 5.0)).status == 200
            await asyncio.sleep(0.01)

    _, connections = asyncio.run(served(once, story))
    assert connections == 5
