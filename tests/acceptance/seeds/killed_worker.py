"""`holdfast worker` that kills itself, as `kill -9` does, at one boundary between it and the
outside.

KILL_AT names it: `before` or `after`, and a command of the store, `publish:TOPIC`, or `ack`.
RECORD is a file that gets the name of every boundary. DEAD_AFTER is how soon it takes over what a
dead member of its subscription held, in seconds."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from holdfast.adapters.redis import bus
from holdfast.adapters.redis.bus import RedisBus, RedisDelivery
from holdfast.adapters.redis.store import RedisStore
from holdfast.cli.main import main

WHEN, _, WHAT = os.environ.get("KILL_AT", "").partition(" ")
RECORD = os.environ.get("RECORD")


def strike(when: str, *names: str) -> None:
    if RECORD and when == "before":
        with Path(RECORD).open("a") as file:
            file.writelines(f"{name}\n" for name in names)
    if when == WHEN and WHAT in names:
        os.kill(os.getpid(), signal.SIGKILL)


def around(owner: Any, name: str, boundaries: Any) -> None:
    original = getattr(owner, name)

    async def call(self: Any, *arguments: Any) -> Any:
        names = boundaries(*arguments)
        strike("before", *names)
        answer = await original(self, *arguments)
        strike("after", *names)
        return answer

    setattr(owner, name, call)


def _named(command: Any) -> str:
    kind, step = type(command).__name__, getattr(command, "step", "")
    if kind == "PutRecord":
        return f"{kind}:{command.key}"
    item = "[]" if step and getattr(command, "key", "") else ""
    return f"{kind}:{step}{item}" if step else kind


around(RedisStore, "apply", lambda commands: [_named(command) for command in commands])
around(RedisBus, "publish", lambda topic, message: [f"publish:{topic}"])
around(RedisDelivery, "ack", lambda: ["ack"])

if __name__ == "__main__":
    bus.DEAD_AFTER = float(os.environ.get("DEAD_AFTER", bus.DEAD_AFTER))
    main(["worker", *sys.argv[1:]])
