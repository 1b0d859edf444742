"""The program's own log, on stderr: lines for people or JSON for machines."""

from __future__ import annotations

import json
import logging
import os
import sys
from datetime import UTC, datetime

from holdfast.model.trace_context import current
from holdfast.settings import Logs

OTHERS = ("asyncio", "uvicorn", "python_multipart")
"""Libraries whose warnings stand between our lines, in the same format."""


def set_up(logs: Logs, *, level: str | None = None) -> None:
    handler = logging.StreamHandler(sys.stderr)
    formatter = _formatter(logs.format)
    handler.setFormatter(formatter)
    root = logging.getLogger("holdfast")
    root.handlers[:] = [handler]
    root.setLevel((level or logs.level).upper())
    if root.isEnabledFor(logging.INFO):
        for name in getattr(formatter, "debug", ()):
            logging.getLogger(name).setLevel(logging.DEBUG)
    root.propagate = False
    for name in OTHERS:
        logging.getLogger(name).handlers[:] = [handler]
        logging.getLogger(name).propagate = False


def is_on_cloud_run() -> bool:
    """A service or a job there."""
    return bool(os.environ.get("K_SERVICE") or os.environ.get("CLOUD_RUN_JOB"))


def _project() -> str | None:
    """Cloud Run itself does not name it."""
    return os.environ.get("GOOGLE_CLOUD_PROJECT") or os.environ.get("PUBSUB_PROJECT_ID")


def _formatter(name: str) -> logging.Formatter:
    if name == "auto":
        name = "json" if is_on_cloud_run() else "text"
    if name == "text":
        return TextLines()
    if name == "json":
        return JsonLines()
    from holdfast.bootstrap import apps

    return apps.find_log_format(name)()


class TextLines(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S")


class JsonLines(logging.Formatter):
    """One object a line; `severity` is what cloud log viewers look for, and so is the trace, by the
    name that Google Cloud has for it."""

    def __init__(self) -> None:
        super().__init__()
        self._project = _project() if is_on_cloud_run() else None

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "severity": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
            **self._trace(),
        }
        if record.exc_text:
            line["traceback"] = record.exc_text
        elif record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)

    def _trace(self) -> dict[str, str | bool]:
        if (context := current()) is None:
            return {}
        if self._project is None:
            return {"trace_id": context.trace_id, "span_id": context.span_id}
        return {
            "logging.googleapis.com/trace": f"projects/{self._project}/traces/{context.trace_id}",
            "logging.googleapis.com/spanId": context.span_id,
            "logging.googleapis.com/trace_sampled": context.sampled,
        }
