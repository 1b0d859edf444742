"""A server that speaks as much of BigQuery as the export needs, for tests: jobs by name, each
executed once, answers in pages, not done at the first look."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

PAGE = 2


class FakeBigQuery:
    """`with FakeBigQuery(rows) as server:` then ask at `server.url`."""

    def __init__(self, rows: list[dict[str, str | None]]) -> None:
        self.rows = rows
        self.jobs: dict[str, str] = {}
        """Job → query. Each was executed once."""
        self.refused: list[str] = []
        """Jobs that were there already when somebody wanted to start them."""
        self.looked: set[str] = set()
        self.failures: list[int] = []
        """Codes to answer with before anything else."""
        self.breaks: list[str] = []
        """Reasons for which the next jobs fail."""
        self.broken: dict[str, str] = {}
        """Job → why it failed."""
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.answer(*fake.insert(body))

            def do_GET(self) -> None:
                url = urlsplit(self.path)
                kind, job = url.path.split("/")[-2:]
                page = parse_qs(url.query).get("pageToken", ["0"])[0]
                self.answer(*(fake.status(job) if kind == "jobs" else fake.results(job, int(page))))

            def answer(self, code: int, body: dict[str, Any]) -> None:
                if fake.failures:
                    code, body = fake.failures.pop(0), {"error": {"message": "as planned"}}
                data = json.dumps(body).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> FakeBigQuery:
        Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def insert(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        job = body["jobReference"]["jobId"]
        if job in self.jobs:
            self.refused.append(job)
            return 409, {"error": {"message": f"Already Exists: Job {job}"}}
        self.jobs[job] = body["configuration"]["query"]["query"]
        if self.breaks:
            self.broken[job] = self.breaks.pop(0)
        return 200, {"jobReference": body["jobReference"]}

    def status(self, job: str) -> tuple[int, dict[str, Any]]:
        if job not in self.jobs:
            return 404, {"error": {"message": f"Not found: Job {job}"}}
        if job not in self.looked:
            self.looked.add(job)
            return 200, {"status": {"state": "RUNNING"}}
        if reason := self.broken.get(job):
            error = {"reason": reason, "message": f"{reason}, as planned"}
            return 200, {"status": {"state": "DONE", "errorResult": error}}
        return 200, {"status": {"state": "DONE"}}

    def results(self, job: str, start: int) -> tuple[int, dict[str, Any]]:
        if job not in self.looked or job in self.broken:
            return 400, {"error": {"message": f"Job {job} has no results"}}
        names = list(self.rows[0])
        page = self.rows[start : start + PAGE]
        more = {"pageToken": str(start + PAGE)} if start + PAGE < len(self.rows) else {}
        return 200, {
            "jobComplete": True,
            "schema": {"fields": [{"name": name, "type": "STRING"} for name in names]},
            "rows": [{"f": [{"v": row[name]} for name in names]} for row in page],
            **more,
        }
