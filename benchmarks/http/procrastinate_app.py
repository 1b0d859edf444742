"""A FastAPI app in front of procrastinate: each request defers one job."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from procrastinate import App, PsycopgConnector
from pydantic import BaseModel

jobs = App(connector=PsycopgConnector(conninfo=os.environ["BENCH_STORE"], min_size=5, max_size=20))


@jobs.task(name="noop")
async def noop(input: Any = None) -> None: ...


class Job(BaseModel):
    input: Any = None


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with jobs.open_async():
        await jobs.schema_manager.apply_schema_async()
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/jobs", status_code=202)
async def create(job: Job) -> dict[str, str]:
    id = await noop.defer_async(input=job.input)
    return {"id": str(id), "state": "queued"}
