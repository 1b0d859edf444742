"""What `holdfast serve --demo` shows: a report of sample comments, and the file to make one's own
from."""

from __future__ import annotations

from pathlib import Path

from holdfast.app import Holdfast
from holdfast.apps.report.request import ReportRequest
from holdfast.apps.report.service import Reports, write_files
from holdfast.apps.report.uploads import upload
from holdfast.model.codec import codec_for

SAMPLE = Path(__file__).with_name("sample") / "riverside.csv"
COMMENTS = "comments.csv"
TENANT = "default"


async def demo(app: Holdfast, folder: Path) -> list[str]:
    """Start the report, unless it is there already; the lines say where to look."""
    write_files({COMMENTS: SAMPLE.read_bytes()}, folder)
    with SAMPLE.open("rb") as source:
        file = await upload(app.runtime.payloads, TENANT, COMMENTS, source)
    request = codec_for(ReportRequest).validate(
        {
            "file": file,
            "title": "What Riverside wants",
            "question": "What should become of the riverside and of Bridge Street?",
            "cruxes": True,
        }
    )
    handle = await Reports(app).build(request, tenant=TENANT, actor="demo")
    return [
        f"a report of sample comments: {{url}}/report/{handle.id}",
        f"one of your own: curl -F file=@{folder / COMMENTS} -F title='My report' {{url}}/create",
    ]
