"""As much of BigQuery as an export needs: a query as a job, by its REST interface.

The caller names the job. A second job of that name is refused by the server, so asking again after
a crash finds the first one: looking whether a job runs and then starting one would leave a gap
between the two. A job that has failed keeps its name for ever, so the next one gets a number."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from holdfast import Permanent, Transient

RETRIED = (408, 429, 500, 502, 503, 504)
PASSING = ("backendError", "internalError", "rateLimitExceeded", "jobBackendError")
"""Why a job may fail that would succeed later."""
MOST_JOBS = 100


class JobFailed(Exception):
    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class BigQuery:
    """Calls block. `poll` is the time between two looks at a job that is not done, in seconds."""

    def __init__(self, url: str, token: str = "", *, poll: float = 1.0) -> None:
        self._url = url.rstrip("/")
        self._token = token
        self._poll = poll

    @classmethod
    def from_environment(cls) -> BigQuery:
        url = os.environ.get("BIGQUERY_URL") or "https://bigquery.googleapis.com"
        return cls(url, os.environ.get("BIGQUERY_TOKEN", ""))

    def query(self, project: str, sql: str, job_id: str) -> list[dict[str, Any]]:
        """The rows of a query. The same `job_id` again gives those of the same job, unless that has
        failed."""
        for number in range(1, MOST_JOBS):
            name = job_id if number == 1 else f"{job_id}-{number}"
            is_new = self._insert(project, sql, name)
            try:
                self._wait_for(project, name)
            except JobFailed as error:
                if is_new:
                    kind = Transient if error.reason in PASSING else Permanent
                    raise kind(f"BigQuery job {name} failed: {error}") from None
                continue  # an earlier try
            return [row for page in self._pages(project, name) for row in page]
        raise Permanent(f"BigQuery has {MOST_JOBS} failed jobs {job_id}")

    def _insert(self, project: str, sql: str, job_id: str) -> bool:
        """Whether the job was not there before."""
        body = {
            "jobReference": {"projectId": project, "jobId": job_id},
            "configuration": {"query": {"query": sql, "useLegacySql": False}},
        }
        return self._call("POST", f"projects/{project}/jobs", body, accepts=409) != {}

    def _wait_for(self, project: str, job_id: str) -> None:
        """Until it is done."""
        while True:
            status = self._call("GET", f"projects/{project}/jobs/{job_id}")["status"]
            if error := status.get("errorResult"):
                raise JobFailed(error.get("reason", ""), error.get("message", ""))
            if status["state"] == "DONE":
                return
            time.sleep(self._poll)

    def _pages(self, project: str, job_id: str) -> Iterator[list[dict[str, Any]]]:
        token = ""
        while True:
            parameters = {"maxResults": "10000", **({"pageToken": token} if token else {})}
            path = f"projects/{project}/queries/{job_id}?{urlencode(parameters)}"
            answer = self._call("GET", path)
            names = [field["name"] for field in answer["schema"]["fields"]]
            yield [_row(names, row) for row in answer.get("rows", [])]
            if not (token := answer.get("pageToken", "")):
                return

    def _call(self, method: str, path: str, body: Any = None, accepts: int = 0) -> dict[str, Any]:
        request = Request(
            f"{self._url}/bigquery/v2/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "Authorization": f"Bearer {self._token}"},
        )
        try:
            with urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except HTTPError as error:
            if error.code == accepts:
                return {}
            kind = Transient if error.code in RETRIED else Permanent
            raise kind(f"BigQuery answered {error.code}: {_reason(error)}") from None
        except URLError as error:
            raise Transient(f"BigQuery can't be reached: {error.reason}") from None


def _row(names: list[str], row: dict[str, Any]) -> dict[str, Any]:
    return dict(zip(names, [cell["v"] for cell in row["f"]], strict=True))


def _reason(error: HTTPError) -> str:
    try:
        return json.load(error)["error"]["message"]
    except (ValueError, KeyError, TypeError):
        return error.reason
