"""How an attempt ends: whatever came back becomes one command, or nothing when the lease is lost.

all steps have results        succeeded
the worker drains             handover: queued at once, the attempt does not count
Pause                         paused
a step wants to wait long     retry after its delay
store out of reach            retry
a step failed for good        failed
LeaseLost                     nothing is written: the new holder goes on
"""

from __future__ import annotations

import asyncio

import msgspec

from holdfast.engine.execution import Execution
from holdfast.engine.mapping import first_cause
from holdfast.engine.results import describe
from holdfast.engine.retrying import StepFailed, TryLater
from holdfast.engine.waiters import Ending
from holdfast.errors import LeaseLost, Pause, Permanent, StoreUnavailable
from holdfast.model.commands import Outcome, Settle
from holdfast.model.retry import Retry, is_retryable
from holdfast.model.run import ErrorInfo

_encode = msgspec.json.Encoder().encode


async def attempt(execution: Execution) -> Settle | None:
    """Execute, and say how it ended. Cancelling the task hands the run over, unless the lease is
    lost."""
    try:
        await execution.run()
    except asyncio.CancelledError:
        return None if execution.lease.lost else _settle(execution, "handover")
    except BaseExceptionGroup as group:
        return settlement(execution, first_cause(group))
    except Exception as error:
        return settlement(execution, error)
    return settlement(execution, None)


def settlement(execution: Execution, error: BaseException | None) -> Settle | None:
    match error:
        case None if execution.complete:
            return _succeeded(execution)
        case None:
            return _settle(execution, "handover")
        case LeaseLost():
            return None
        case Pause():
            return _settle(execution, "paused", reason=describe(error))
        case StepFailed():
            return _settle(execution, "failed", error=error.info)
        case TryLater():
            return _settle(execution, "retry", error=error.info, delay=error.delay, deferred=True)
        case StoreUnavailable():
            return _settle(
                execution,
                "retry",
                error=_info(error),
                delay=Retry().delay(execution.claimed.attempt),
            )
        case Permanent():
            return _settle(execution, "failed", error=_info(error))
        case _ if is_retryable(error):
            delay = Retry().delay(execution.claimed.attempt, error)
            return _settle(execution, "retry", error=_info(error), delay=delay)
        case _:
            return _settle(execution, "failed", error=_info(error))


def _succeeded(execution: Execution) -> Settle:
    return Settle(
        execution.claimed.run,
        execution.lease.epoch,
        "succeeded",
        result=execution.results[execution.plan.result].stored,
        progress=execution.progress_text(),
        last=execution.last,
    )


def _settle(
    execution: Execution,
    outcome: Outcome,
    *,
    error: ErrorInfo | None = None,
    reason: str | None = None,
    delay: float = 0,
    deferred: bool = False,
) -> Settle:
    return Settle(
        execution.claimed.run,
        execution.lease.epoch,
        outcome,
        error=_encode(error).decode() if error else None,
        reason=reason,
        delay=delay,
        progress=execution.progress_text(),
        last=execution.last,
        deferred=deferred,
    )


def _info(error: BaseException) -> ErrorInfo:
    return ErrorInfo(type(error).__name__, describe(error))


def ending(settle: Settle) -> Ending | None:
    """What those who wait for the run are told; None when it is not over."""
    if settle.outcome == "succeeded":
        return Ending("succeeded", result=settle.result)
    if settle.outcome == "failed":
        error = msgspec.json.decode(settle.error, type=ErrorInfo) if settle.error else None
        return Ending("failed", error=error)
    return None
