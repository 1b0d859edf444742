"""The practical bound on Redis: group commit with nothing around it. No engine, no product, no
safety net.

The same durable writes as holdfast's in the same order (accept, claim, a checkpoint after each
step, result), each awaited before the next. Whatever waits while the server answers goes out as one
call of one script."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import hiredis
import msgspec

from benchmarks.systems import jobs
from benchmarks.systems.common import keep_in_flight, latency, one_at_a_time

SCRIPT = """
for i = 1, #ARGV, 3 do
    local run, field, value = ARGV[i], ARGV[i + 1], ARGV[i + 2]
    if field == 'claim' then
        redis.call('SET', 'lock:' .. run, value, 'NX', 'PX', 30000)
    elseif field ~= 'accept' and redis.call('GET', 'lock:' .. run) ~= 't' then
        return redis.error_reply('lost ' .. run)
    end
    redis.call('HSET', 'run:' .. run, field, value)
    if field == 'result' then redis.call('DEL', 'lock:' .. run) end
end
"""

encode = msgspec.json.Encoder().encode


class Connection(asyncio.Protocol):
    """Commands out, answers in, in the same order."""

    def __init__(self) -> None:
        self._reader = hiredis.Reader()
        self._waiting: deque[asyncio.Future[Any]] = deque()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        while (reply := self._reader.gets()) is not False:
            future = self._waiting.popleft()
            if isinstance(reply, Exception):
                future.set_exception(reply)
            else:
                future.set_result(reply)

    def send(self, *command: str | bytes) -> asyncio.Future[Any]:
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        self._transport.write(hiredis.pack_command(command))
        return future


class Bare:
    """One call under way; the next takes all that has come in the meantime."""

    def __init__(self, connection: Connection, script: str) -> None:
        self._connection = connection
        self._script = script
        self._waiting: list[tuple[tuple[str | bytes, ...], asyncio.Future[None]]] = []
        self._wake = asyncio.Event()
        self._task = asyncio.create_task(self._write())

    def send(self, *values: str | bytes) -> asyncio.Future[None]:
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((values, future))
        self._wake.set()
        return future

    async def _write(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(0)
            self._wake.clear()
            batch, self._waiting = self._waiting, []
            values = itertools.chain.from_iterable(values for values, _ in batch)
            await self._connection.send("EVALSHA", self._script, "0", *values)
            for _, future in batch:
                future.set_result(None)


async def step(number: int) -> dict[str, Any]:
    return {"i": number, "ok": True}


async def one_run(bare: Bare, ids: Iterator[int]) -> None:
    id = str(next(ids))
    await bare.send(id, "accept", b"null")
    await bare.send(id, "claim", b"t")
    for number in range(1, 5):
        await bare.send(id, str(number), encode(await step(number)))
    result = encode(await step(5))
    await bare.send(id, "5", result, id, "result", result)


async def open_bare() -> Bare:
    address = urlsplit(jobs.STORE)
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(Connection, address.hostname, address.port)
    return Bare(connection, (await connection.send("SCRIPT", "LOAD", SCRIPT)).decode())


async def five_runs(count: int) -> dict[str, float]:
    bare, ids = await open_bare(), itertools.count(1)
    await keep_in_flight(jobs.FLIGHT, jobs.FLIGHT, lambda: one_run(bare, ids))
    return {"value": await keep_in_flight(count, jobs.FLIGHT, lambda: one_run(bare, ids))}


async def five_p50(count: int) -> dict[str, float]:
    bare, ids = await open_bare(), itertools.count(1)
    await one_at_a_time(20, lambda: one_run(bare, ids))
    return latency(await one_at_a_time(count, lambda: one_run(bare, ids)))


if __name__ == "__main__":
    jobs.serve(five_runs=five_runs, five_p50=five_p50)
