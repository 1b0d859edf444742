"""What a worker says about its runs in the program's log. `docs/reference/logs.md` lists the lines.

A failure's traceback is the stored one: of bounded length, without secrets. It is added to the
record as `exc_text`, which every formatter of Python's logging prints below the message."""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from holdfast.engine.attempt import Attempt
from holdfast.model.commands import Settle
from holdfast.model.duration import humanise
from holdfast.model.run import ErrorInfo

log = logging.getLogger("holdfast.worker")

_decode_error = msgspec.json.Decoder(ErrorInfo).decode


def log_started(attempt: Attempt, worker: str) -> None:
    if log.isEnabledFor(logging.INFO):  # there may be thousands of runs a second
        claimed = attempt.claimed
        log.info(
            "run %s of %s: started, attempt %d on worker %s",
            claimed.run,
            claimed.pipeline,
            claimed.attempt,
            worker,
            extra=_fields(attempt, worker=worker),
        )


def log_settled(attempt: Attempt, settle: Settle, duration: float) -> None:
    """The outcome is durable."""
    if settle.outcome == "succeeded" and not log.isEnabledFor(logging.INFO):
        return
    run, pipeline, fields = settle.run, attempt.claimed.pipeline, _fields(attempt)
    match settle.outcome:
        case "succeeded":
            took = humanise(duration)
            log.info("run %s of %s: succeeded in %s", run, pipeline, took, extra=fields)
        case "handover":
            log.info("run %s of %s: handed over", run, pipeline, extra=fields)
        case "paused":
            log.info("run %s of %s: paused: %s", run, pipeline, settle.reason, extra=fields)
        case "retry":
            log.warning(
                "run %s of %s: attempt %d failed, next in %s: %s",
                run,
                pipeline,
                attempt.claimed.attempt,
                humanise(settle.delay),
                _error(settle),
                extra=fields,
            )
        case "failed":
            _log_failed(attempt, _error(settle))


def log_lease_lost(attempt: Attempt) -> None:
    log.info(
        "run %s of %s: lease lost, stopped without writing an outcome",
        attempt.claimed.run,
        attempt.claimed.pipeline,
        extra=_fields(attempt),
    )


def log_retry(attempt: Attempt, name: str, tries: str, delay: float, reason: str) -> None:
    """A step or item is tried again in place."""
    log.warning(
        "run %s of %s: %s failed, try %s, next in %s: %s",
        attempt.claimed.run,
        attempt.claimed.pipeline,
        name,
        tries,
        humanise(delay),
        reason,
        extra=_fields(attempt, step=name),
    )


def _log_failed(attempt: Attempt, error: ErrorInfo) -> None:
    if not log.isEnabledFor(logging.ERROR):
        return
    claimed = attempt.claimed
    record = log.makeRecord(
        log.name,
        logging.ERROR,
        __file__,
        0,
        "run %s of %s: failed, attempt %d: %s",
        (claimed.run, claimed.pipeline, claimed.attempt, error),
        None,
        extra=_fields(attempt, step=error.step, key=error.key),
    )
    record.exc_text = error.traceback
    log.handle(record)


def _error(settle: Settle) -> ErrorInfo:
    return _decode_error(settle.error) if settle.error else ErrorInfo("Unknown", "no reason given")


def _fields(attempt: Attempt, **more: Any) -> dict[str, Any]:
    """For formatters that write JSON."""
    claimed = attempt.claimed
    fields = {"run": claimed.run, "pipeline": claimed.pipeline, "attempt": claimed.attempt}
    return {"fields": {**fields, **{name: value for name, value in more.items() if value}}}
