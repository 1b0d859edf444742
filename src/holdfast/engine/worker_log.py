"""What a worker says about its runs in the program's log. `docs/reference/logs.md` lists the lines.

A failure's traceback is the stored one: of bounded length, without secrets."""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from holdfast.engine.attempt import Attempt
from holdfast.engine.payloads import is_reference
from holdfast.engine.tracebacks import log_error
from holdfast.model.commands import Settle
from holdfast.model.duration import humanise
from holdfast.model.lease_losses import REMEDY, Blocked
from holdfast.model.run import ErrorInfo, StepStatus

log = logging.getLogger("holdfast.worker")

_decode_error = msgspec.json.Decoder(ErrorInfo).decode


steps = logging.getLogger("holdfast.steps")


def log_started(attempt: Attempt, worker: str, active: int, concurrency: int) -> None:
    """`active` runs of at most `concurrency` are under way here now, this one included."""
    if log.isEnabledFor(logging.INFO):  # there may be thousands of runs a second
        claimed = attempt.claimed
        log.info(
            "run %s of %s: started, attempt %d on worker %s",
            claimed.run,
            claimed.pipeline,
            claimed.attempt,
            worker,
            extra=_fields(
                attempt, "started", worker=worker, active=active, concurrency=concurrency
            ),
        )


def log_settled(attempt: Attempt, settle: Settle, duration: float) -> None:
    """The outcome is durable."""
    if settle.outcome == "succeeded" and not log.isEnabledFor(logging.INFO):
        return
    run, pipeline = settle.run, attempt.claimed.pipeline
    fields = _fields(attempt, settle.outcome)
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


def log_lease_lost(attempt: Attempt, blocked: Blocked | None) -> None:
    run, pipeline = attempt.claimed.run, attempt.claimed.pipeline
    fields = _fields(attempt, "lease_lost")
    if blocked is None:
        log.info(
            "run %s of %s: lease lost, stopped without writing an outcome",
            run,
            pipeline,
            extra=fields,
        )
    else:
        log.error(
            "run %s of %s: lease lost because %s. %s", run, pipeline, blocked, REMEDY, extra=fields
        )


def log_step(attempt: Attempt, step: str, change: str) -> None:
    """A step is executed, has ended, or is left out. For those who ask for it: a run may have many
    steps."""
    if steps.isEnabledFor(logging.DEBUG):
        claimed = attempt.claimed
        steps.debug(
            "run %s of %s: step %s %s",
            claimed.run,
            claimed.pipeline,
            step,
            change,
            extra=_fields(attempt, f"step_{change}", step=step),
        )


def log_abandoned(attempt: Attempt) -> None:
    """The worker stops, and the code of the run does not."""
    records = attempt.journal.step_records().values()
    open_steps = [record.step for record in records if record.status is StepStatus.IN_PROGRESS]
    log.warning(
        "run %s of %s: handed over although %s has not ended; it can write nothing any more",
        attempt.claimed.run,
        attempt.claimed.pipeline,
        f"step {open_steps[0]}" if len(open_steps) == 1 else "its code",
        extra=_fields(attempt, "abandoned", step=open_steps[0] if open_steps else None),
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
        extra=_fields(attempt, "step_retry", step=name),
    )


def _log_failed(attempt: Attempt, error: ErrorInfo) -> None:
    claimed = attempt.claimed
    about = {"step": error.step, "key": error.key, "error": error.name, "reason": error.message}
    log_error(
        log,
        "run %s of %s: failed, attempt %d: %s",
        (claimed.run, claimed.pipeline, claimed.attempt, error),
        error.traceback,
        _fields(attempt, "failed", **about),
    )


def _error(settle: Settle) -> ErrorInfo:
    return _decode_error(settle.error) if settle.error else ErrorInfo("Unknown", "no reason given")


def _fields(attempt: Attempt, event: str, **more: Any) -> dict[str, Any]:
    """For formatters that write JSON, or lines of their own."""
    claimed = attempt.claimed
    fields = {
        "event": f"run.{event}",
        "run": claimed.run,
        "pipeline": claimed.pipeline,
        "lane": claimed.lane,
        "attempt": claimed.attempt,
        **_identity(attempt),
    }
    return {"fields": {**fields, **{name: value for name, value in more.items() if value}}}


def _identity(attempt: Attempt) -> dict[str, Any]:
    """What the pipeline says of the run's input: the key and the labels that people know it by."""
    pipeline = attempt.pipeline
    if pipeline.key is None and pipeline.labels is None:
        return {}
    if attempt.identity is None:
        attempt.identity = _identified(attempt)
    return attempt.identity


def _identified(attempt: Attempt) -> dict[str, Any]:
    pipeline, text = attempt.pipeline, attempt.claimed.input
    if is_reference(text):
        return {}
    try:
        value = pipeline.input.decode(text)
        key = pipeline.key(value) if pipeline.key is not None else None
        labels = dict(pipeline.labels(value)) if pipeline.labels is not None else {}
    except Exception:  # the run itself will say what is wrong with its input
        return {}
    return {name: value for name, value in {"run_key": key, "labels": labels}.items() if value}
