"""The program's own log, on stderr: lines for people or JSON for machines."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

from holdfast.settings import Logs


def set_up(logs: Logs, *, level: str | None = None) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if logs.format == "json" else TextLines())
    root = logging.getLogger("holdfast")
    root.handlers[:] = [handler]
    root.setLevel((level or logs.level).upper())
    root.propagate = False


class TextLines(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S")


class JsonLines(logging.Formatter):
    """One object a line; `severity` is what cloud log viewers look for."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "severity": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_text:
            line["traceback"] = record.exc_text
        elif record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)
