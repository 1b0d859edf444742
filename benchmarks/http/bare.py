"""What a user would write without us: a FastAPI app that inserts a row and answers 202. One commit
for each request, durable as ours is."""

from __future__ import annotations

import json
import os
import sqlite3
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel

STORE = os.environ["BENCH_STORE"]
TABLE = "CREATE TABLE IF NOT EXISTS bare_jobs (id TEXT PRIMARY KEY, body TEXT, state TEXT)"
POOL = 20


class Job(BaseModel):
    input: Any = None


class Sqlite:
    async def open(self) -> None:
        self._db = sqlite3.connect(STORE.removeprefix("sqlite:///"), isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute(TABLE)

    async def close(self) -> None:
        self._db.close()

    async def insert(self, id: str, body: str) -> None:
        self._db.execute("INSERT INTO bare_jobs VALUES (?, ?, 'queued')", (id, body))

    async def read(self, id: str) -> tuple[Any, ...]:
        return self._db.execute("SELECT id, state FROM bare_jobs WHERE id = ?", (id,)).fetchone()


class Postgres:
    async def open(self) -> None:
        from psycopg_pool import AsyncConnectionPool

        self._pool = AsyncConnectionPool(STORE, min_size=POOL, max_size=POOL, open=False)
        await self._pool.open(wait=True)
        async with self._pool.connection() as connection:
            await connection.execute(TABLE)

    async def close(self) -> None:
        await self._pool.close()

    async def insert(self, id: str, body: str) -> None:
        async with self._pool.connection() as connection:
            await connection.execute("INSERT INTO bare_jobs VALUES (%s, %s, 'queued')", (id, body))

    async def read(self, id: str) -> tuple[Any, ...]:
        async with self._pool.connection() as connection:
            cursor = await connection.execute(
                "SELECT id, state FROM bare_jobs WHERE id = %s", (id,)
            )
            return await cursor.fetchone() or ()


store = Postgres() if STORE.startswith("postgresql") else Sqlite()


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    await store.open()
    yield
    await store.close()


app = FastAPI(lifespan=lifespan)


@app.post("/jobs", status_code=202)
async def create(job: Job) -> dict[str, str]:
    id = uuid.uuid4().hex
    await store.insert(id, json.dumps(job.input))
    return {"id": id, "state": "queued"}


@app.get("/jobs/{id}")
async def show(id: str) -> dict[str, str]:
    run, state = await store.read(id)
    return {"id": run, "state": state}
