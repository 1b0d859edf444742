"""Jobs that wait for a file before they end."""

import asyncio
import os
from pathlib import Path
from typing import Any

from holdfast import Pipeline

jobs = Pipeline("jobs", input=dict, key=lambda job: job["job_id"])


@jobs.step
async def work(request: dict[str, Any]) -> dict[str, Any]:
    gate = Path(os.environ["GATE"])
    while not gate.exists():  # noqa: ASYNC110, ASYNC240  (another process makes it)
        await asyncio.sleep(0.05)
    return {"made": request["job_id"]}
