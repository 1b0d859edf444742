"""The one state machine: what each command does, as a pure function.

    decide(command, facts, now) -> Decision

Facts and the store's time go in; what comes out is the reply and what changes: fields of a run, its
event, a dead letter, an audit entry, a lock. Stores load facts and write changes. Those that run in
this process (memory, SQLite) decide every command here. Servers decide here whatever is rare, and
have the hot path in their own language; the contract suite and random scripts compare the two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.model import commands as c
from holdfast.model.machine import attempts, intake, interventions, letters, locks, records
from holdfast.model.machine.changes import Decision
from holdfast.model.machine.facts import Facts, Now

RULES: dict[type, Callable[[Any, Any, Now], Decision]] = {
    c.Submit: intake.submit,
    c.Claim: attempts.claim,
    c.Renew: attempts.renew,
    c.SaveCheckpoint: attempts.save_checkpoint,
    c.Quarantine: attempts.quarantine,
    c.SaveProgress: attempts.save_progress,
    c.LogLine: attempts.log_line,
    c.Settle: attempts.settle,
    c.Cancel: interventions.cancel,
    c.PauseRun: interventions.pause_run,
    c.Resume: interventions.resume,
    c.Sweep: interventions.sweep,
    c.Prune: interventions.prune,
    interventions.SweepRun: interventions.sweep_run,
    interventions.PruneRun: interventions.prune_run,
    c.DefineLane: interventions.define_lane,
    c.LimitTenant: interventions.limit_tenant,
    c.Acquire: locks.acquire,
    c.RenewLocks: locks.renew_locks,
    c.ReleaseLock: locks.release_lock,
    c.ForceRelease: locks.force_release,
    c.Bury: letters.bury,
    c.MarkRedriven: letters.mark_redriven,
    c.Discard: letters.discard,
    c.PutRecord: records.put_record,
    c.DeleteRecord: records.delete_record,
}


def decide(command: c.Command[Any], facts: Facts, now: Now) -> Decision:
    return RULES[type(command)](command, facts, now)
