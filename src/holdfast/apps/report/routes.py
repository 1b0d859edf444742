"""Reports over HTTP: upload a file, watch its progress, open the page.

POST /create              a file as a form, or the JSON of the earlier service
GET  /report/{id}         its state as JSON; for a browser its progress, then the page
GET  /report/{id}/{file}  report.html, report.json, claims.csv, …
"""

from __future__ import annotations

import mimetypes
from typing import Any
from urllib.parse import quote

import msgspec
from fastapi import APIRouter
from msgspec import UNSET, Struct, UnsetType
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from holdfast.api.access import Access, PageReader, Submitter
from holdfast.api.answers import answer, tagged_bytes
from holdfast.api.bodies import check_depth, read_body, read_form
from holdfast.api.documentation import documented
from holdfast.api.problems import Problem
from holdfast.apps.report.pipeline import report
from holdfast.apps.report.progress_page import progress_page
from holdfast.apps.report.request import ReportRequest
from holdfast.apps.report.service import PAGE, Reports
from holdfast.apps.report.uploads import upload
from holdfast.engine.handle import RunHandle
from holdfast.errors import InvalidInput, NotFound
from holdfast.model.codec import codec_for
from holdfast.model.run import RunState, StepStatus
from holdfast.services.views import RunView

router = APIRouter(tags=["reports"])

STEP_WORDS = {
    "comments": "queued",
    "clustering": "clustering",
    "opinions": "clustering",
    "claims": "extraction",
    "sort_and_deduplicate": "dedup",
    "cruxes": "summarizing",
    "summaries": "summarizing",
    "report": "wrappingup",
}
"""What the earlier service called the states of a report under way."""
FORM_FIELDS = ("title", "question", "description", "language", "model", "report_id")


class Created(Struct, rename="camel"):
    message: str
    filename: str
    json_url: str
    report_url: str


class Metadata(Struct, rename="camel"):
    report_id: str
    title: str
    created_date: str
    num_comments: int | UnsetType = UNSET
    num_people: int | UnsetType = UNSET
    num_topics: int | UnsetType = UNSET
    num_claims: int | UnsetType = UNSET


class ReportState(Struct, rename="camel", omit_defaults=True):
    """`status` is queued, clustering, extraction, dedup, summarizing, wrappingup, finished or
    failed."""

    status: str
    metadata: Metadata
    is_owner: bool
    data_url: str | UnsetType = UNSET
    error_message: str | UnsetType = UNSET


@router.post(
    "/create", **documented(Created, description="The report is being made.", body=dict[str, Any])
)
async def create_report(request: Request, access: Submitter) -> Response:
    """Make a report. A form has the file (`file`) and what it is called (`title`, `question`, …);
    `votes` may be a second file, and `request` is JSON with all else that a report can be told.
    JSON is `{userConfig, data: ["csv", rows]}`."""
    fields = await _fields(request, access)
    report_request = codec_for(ReportRequest).validate(fields)
    await access.service.pipelines.show(report.name)  # or nobody here knows of reports
    reports = Reports(access.holdfast)
    handle = await reports.build(report_request, tenant=access.tenant, actor=access.caller.actor)
    path = f"{request.scope.get('root_path', '')}/report/{quote(handle.id, safe='')}"
    filename = report_request.file.filename if report_request.file else f"{handle.id}.json"
    return answer(
        Created("Request received.", filename, f"{path}/report.json", path),
        status=202,
        headers={"Location": path, **({} if handle.created else {"Holdfast-Existing": "true"})},
    )


async def _fields(request: Request, access: Access) -> dict[str, Any]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        async with read_form(request, max_files=2, max_fields=50) as form:
            return await _of_form(form, access)
    if kind != "application/json":
        raise Problem(
            415,
            "unsupported-media-type",
            "send a form with a file: curl -F file=@comments.csv …, or JSON",
        )
    body = await read_body(request)
    check_depth(body)
    try:
        return _of_json(msgspec.json.decode(body, type=dict[str, Any]))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Problem(400, "no-json", f"the body is no JSON: {error}") from error


async def _of_form(form: FormData, access: Access) -> dict[str, Any]:
    payloads, tenant = access.holdfast.runtime.payloads, access.tenant
    fields = _of_request(form.get("request"))
    fields |= {name: form[name] for name in FORM_FIELDS if form.get(name)}
    for name in ("file", "votes"):
        part = form.get(name)
        if isinstance(part, UploadFile):
            fields[name] = await upload(payloads, tenant, part.filename or name, part.file)
    if "file" not in fields:
        raise InvalidInput("the form has no file: curl -F file=@comments.csv …")
    if cruxes := form.get("cruxes"):
        fields["cruxes"] = cruxes in ("1", "true", "on", "yes")
    return fields


def _of_request(text: Any) -> dict[str, Any]:
    """What the command line sends beside the files: the fields of a request."""
    if not text:
        return {}
    if not isinstance(text, str):
        raise InvalidInput("request is a file: send it as a text")
    check_depth(text.encode())
    try:
        fields = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise InvalidInput(f"request is no JSON object: {error}") from error
    return {name: value for name, value in fields.items() if name not in ("file", "votes")}


def _of_json(body: dict[str, Any]) -> dict[str, Any]:
    """The body of the earlier service: rows under `data`, and what they are called."""
    config, data = body.get("userConfig") or {}, body.get("data")
    if not isinstance(config, dict):
        raise InvalidInput("userConfig is no object")
    if not (isinstance(data, list) and len(data) == 2 and isinstance(data[1], list)):
        raise InvalidInput('data is not ["csv", rows]')
    fields: dict[str, Any] = {"rows": data[1], "cruxes": bool(config.get("cruxesEnabled"))}
    fields |= {
        name: config[name] for name in ("title", "description", "question") if config.get(name)
    }
    if model := body.get("model"):
        if not isinstance(model, str):
            raise InvalidInput("model is no text")
        fields["model"] = model if ":" in model else f"openai:{model}"
    return fields


@router.get("/report/{report_id}", **documented(ReportState, description="State, or a page."))
async def show_report(request: Request, report_id: str, access: PageReader) -> Response:
    """How far a report is. A browser gets a page that shows it, and the report once it is made."""
    view = await _view(access, report_id)
    if "text/html" not in request.headers.get("accept", ""):
        return answer(await _state(request, access, view))
    if view.state == RunState.SUCCEEDED:
        return await _file(request, access, view.run.id, PAGE)
    return HTMLResponse(progress_page(view), headers={"Cache-Control": "no-store"})


@router.get(
    "/report/{report_id}/{file}",
    **documented("application/octet-stream", description="The bytes."),
)
async def report_file(request: Request, report_id: str, file: str, access: PageReader) -> Response:
    """One of the files of a finished report."""
    view = await _view(access, report_id)
    if view.state != RunState.SUCCEEDED:
        raise NotFound(f"report {report_id} is {_word(view)}: its files come when it is finished")
    return await _file(request, access, view.run.id, file)


async def _view(access: Access, report_id: str) -> RunView:
    try:
        view = await access.service.runs.show(report_id)
    except NotFound:
        view = None
    if view is None or view.run.pipeline != report.name:
        raise NotFound(f"there is no report {report_id!r:.80}")
    return view


async def _file(request: Request, access: Access, run: str, name: str) -> Response:
    handle = RunHandle(access.holdfast.runtime, run, report)
    files = (await Reports(access.holdfast).result(handle)).files
    if name not in files:
        raise NotFound(f"report {run} has no file {name!r:.80}; it has {', '.join(sorted(files))}")
    data = await access.holdfast.runtime.payloads.get(files[name])
    if data is None:
        raise NotFound(f"{name} of report {run} is missing from the blob store: make it anew")
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    headers = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
    return tagged_bytes(request, data, kind, headers)


async def _state(request: Request, access: Access, view: RunView) -> ReportState:
    run = view.run
    title = view.input.get("title", "") if isinstance(view.input, dict) else ""
    metadata = Metadata(run.key or run.id, title, run.created.isoformat())
    state = ReportState(_word(view), metadata, is_owner=run.tenant == access.tenant)
    if view.state == RunState.SUCCEEDED:
        handle = RunHandle(access.holdfast.runtime, run.id, report)
        result = await Reports(access.holdfast).result(handle)
        metadata.num_comments, metadata.num_people = result.comments, result.people
        metadata.num_topics, metadata.num_claims = result.topics, result.claims
        root = request.scope.get("root_path", "")
        state.data_url = f"{root}/report/{quote(run.id, safe='')}/report.json"
    elif run.error is not None:
        state.error_message = str(run.error)
    return state


def _word(view: RunView) -> str:
    match view.state:
        case RunState.SUCCEEDED:
            return "finished"
        case RunState.FAILED | RunState.CANCELLED:
            return "failed"
        case RunState.QUEUED:
            return "queued"
    under_way = [step.name for step in view.steps if step.status == StepStatus.IN_PROGRESS]
    return STEP_WORDS.get(under_way[0], "wrappingup") if under_way else "queued"
