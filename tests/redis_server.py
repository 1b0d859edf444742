"""The Redis server of the tests: a skip on a laptop that has none, a failure in CI."""

from __future__ import annotations

import os
from functools import cache
from itertools import count

from holdfast.testing.servers import redis
from holdfast.testing.servers.redis import free_port as free_port
from tests.endings import at_the_end
from tests.missing import or_skip

_numbers = count(1)


class RedisServer(redis.RedisServer):
    def program(self, name: str) -> str:
        return executable(name)


def executable(name: str) -> str:
    return or_skip(lambda: redis.executable(name))


@cache
def shared_server() -> RedisServer:
    """One for all tests of this process; each takes a prefix of its own."""
    server = RedisServer("--appendonly", "no")
    at_the_end(server.end)
    server.start()
    return server


def fresh_prefix() -> str:
    return f"t{os.getpid()}-{next(_numbers)}:"
