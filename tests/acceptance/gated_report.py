"""A pipeline that ends as reports do, once a file is there: its only artifact is its report."""

import asyncio
import os
from pathlib import Path
from typing import Any

from holdfast import Context, Pipeline
from holdfast.apps.report import report_documents

report = Pipeline("report", input=dict, key=lambda job: job["id"])
report_documents.viewer_json = lambda data: data


@report.step(name="report")
async def write(request: dict[str, Any], ctx: Context) -> dict[str, Any]:
    gate = Path(os.environ["GATE"])
    while not gate.exists():  # noqa: ASYNC110, ASYNC240  (another process makes it)
        await asyncio.sleep(0.05)
    artifact = await ctx.artifact("report.json", b'{"made": "of report.json"}')
    return {"files": {"report.json": artifact}, "topics": 1, "claims": 2, "people": 3}
