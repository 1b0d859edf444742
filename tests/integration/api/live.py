"""A service on a real socket, in a thread of the test's process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import httpx2
from fastapi import FastAPI
from pydantic import BaseModel
from tests import postgres_server, redis_server

from holdfast import Context, Holdfast, Pause, Permanent, Pipeline
from holdfast.api import create_app
from holdfast.api.server import listen, serve, url_of
from holdfast.bootstrap import Options
from holdfast.model.options import WorkerOptions
from holdfast.settings.values import Webhooks

STORES = ("memory", "sqlite", "postgres", "redis")
WEBHOOKS = Webhooks("a key that is long enough for a test", ("127.0.0.1",))


class Greeting(BaseModel):
    name: str
    trouble: str = ""


greet = Pipeline("greet", input=Greeting)


@greet.step
async def hello(greeting: Greeting, ctx: Context) -> str:
    ctx.log.info(f"greeting {greeting.name}")
    if greeting.trouble == "fail":
        raise Permanent("no greeting today")
    if greeting.trouble == "pause":
        raise Pause("later")
    return f"hello {greeting.name}"


@greet.step
async def card(greeting: Greeting, hello: str, ctx: Context) -> dict[str, str]:
    return {"text": hello, "file": await ctx.artifact("card-1.txt", hello.encode())}


slow = Pipeline("slow", input=str, unique=True)


@slow.step
async def sleep(input: str) -> str:
    await asyncio.sleep(60)
    return input


def store_url(kind: str, folder: Path) -> str:
    match kind:
        case "sqlite":
            return f"sqlite:///{folder / 'runs.db'}"
        case "postgres":
            return postgres_server.shared_server().url(postgres_server.fresh_schema())
        case "redis":
            return redis_server.shared_server().url(prefix=redis_server.fresh_prefix())
    return "memory:"


class LiveApi:
    """`with LiveApi(store) as api: api.get("/health")`. Requests are made by httpx2; `call` runs a
    coroutine in the service's own event loop."""

    def __init__(
        self,
        store: str = "memory:",
        *,
        worker: bool = True,
        pipelines: tuple[Pipeline[Any], ...] = (greet, slow),
        make: Callable[[Holdfast], FastAPI] = create_app,
    ) -> None:
        blobs = None if store.startswith(("memory", "sqlite")) else "memory:"
        self._options = Options(
            store,
            blobs,
            works=worker,
            worker=WorkerOptions(grace=0.2),  # steps that sleep need not be waited for
            webhooks=WEBHOOKS,
        )
        self._pipelines, self._make = pipelines, make
        self._ready: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> LiveApi:
        self._thread.start()
        self._ready.result(30)
        self.http = httpx2.Client(base_url=self.url, timeout=30)
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()
        self.stop()
        self._thread.join(30)
        assert not self._thread.is_alive()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        try:
            self.holdfast = Holdfast.from_options(self._options, self._pipelines)
            async with self.holdfast:
                self.app = self._make(self.holdfast)
                listening = listen("127.0.0.1", 0)
                self.url = url_of(listening)
                self._ready.set_result(None)
                await serve(self.app, listening, self._stop.wait)
        except BaseException as error:
            if not self._ready.done():
                self._ready.set_exception(error)
            raise

    def call(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    # --- requests ---------------------------------------------------------------------------------

    def get(self, path: str, **options: Any) -> httpx2.Response:
        return self.http.get(path, **options)

    def post(self, path: str, json: Any = None, **options: Any) -> httpx2.Response:
        return self.http.post(path, json=json, **options)

    def submit(self, name: str = "Ada", pipeline: str = "greet", **more: Any) -> str:
        input = {"name": name} if pipeline == "greet" else name
        answer = self.post(f"/v1/pipelines/{pipeline}/runs", {"input": input, **more})
        assert answer.status_code in (200, 202), answer.text
        return answer.json()["run"]["id"]

    def ended(self, run: str) -> dict[str, Any]:
        """The run, once it has ended."""
        return self.get(f"/v1/runs/{run}", headers={"Prefer": "wait=20"}).json()["run"]
