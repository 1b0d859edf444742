"""Rules of the state machine, each broken once: the contract of the store has to notice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from holdfast.adapters.memory.tables import Tables
from holdfast.model import commands as c
from holdfast.model.machine import RULES, attempts, failing, intake, interventions
from holdfast.model.machine.changes import (
    Change,
    ChangeRun,
    Decision,
    OpenLetter,
    PutLock,
    WriteRecord,
)
from holdfast.model.machine.facts import LockFacts, Now, RecordFacts, RunFacts, WaitingTenant
from holdfast.model.replies import Stored
from holdfast.model.run import RunState

Patch = pytest.MonkeyPatch


def without(patch: Patch, command: type, *fields: str) -> None:
    """The command leaves these fields of its run as they are."""
    rule = RULES[command]

    def forgetful(command: Any, facts: Any, now: Now) -> Decision:
        decision = rule(command, facts, now)
        changes = [_left_out(change, fields) for change in decision.changes]
        return msgspec.structs.replace(decision, changes=changes)

    patch.setitem(RULES, command, forgetful)


def _left_out(change: Change, fields: tuple[str, ...]) -> Change:
    if not isinstance(change, ChangeRun):
        return change
    remaining = {name: value for name, value in change.fields.items() if name not in fields}
    return ChangeRun(change.run, remaining)


def attempts_not_counted(patch: Patch) -> None:
    """A claim does not count as an attempt."""
    without(patch, c.Claim, "attempts")


def hand_over_counts(patch: Patch) -> None:
    """A run that was handed over has lost an attempt."""
    without(patch, c.Settle, "attempts")


def pause_counts(patch: Patch) -> None:
    """A run that somebody paused has lost an attempt."""
    without(patch, c.PauseRun, "attempts")


def cancel_without_epoch(patch: Patch) -> None:
    """A cancel does not raise the epoch."""
    without(patch, c.Cancel, "epoch")


def resume_without_attempts(patch: Patch) -> None:
    """A resumed run has no fresh attempts."""
    without(patch, c.Resume, "attempt_limit")


def ended_lease_revived(patch: Patch) -> None:
    """A renewal brings an ended lease back."""

    def renew(command: c.Renew, facts: Any, now: Now) -> Decision:
        runs = [(facts.run(id), epoch) for id, epoch in command.held]
        lost = [(run.id, epoch) for run, epoch in runs if run.epoch != epoch]
        until = {"lease_until": now.mono + command.ttl}
        renewed = [ChangeRun(run.id, until) for run, epoch in runs if run.epoch == epoch]
        return Decision(lost, renewed)

    patch.setitem(RULES, c.Renew, renew)


def deposed_leader_claims(patch: Patch) -> None:
    """Whoever once led a fifo lane may claim from it."""

    def head(command: Any, lane: Any, facts: Any, now: Now) -> list[RunFacts]:
        run = facts.fifo_head(lane.name)
        return [run] if run is not None and run.is_due(now) else []

    patch.setattr(attempts, "_head", head)


def key_conflict_hidden(patch: Patch) -> None:
    """A key that is used for something else answers with the other run, as if nothing was wrong."""
    submit = intake.submit

    def quiet(command: c.Submit, facts: Any, now: Now) -> Decision:
        decision = submit(command, facts, now)
        reply = msgspec.structs.replace(decision.reply, conflict=False)
        return msgspec.structs.replace(decision, reply=reply)

    patch.setitem(RULES, c.Submit, quiet)


def unique_slot_ignored(patch: Patch) -> None:
    """A unique pipeline gets a second live run."""
    patch.setattr(Tables, "slot_holder", lambda self, tenant, pipeline: None)


def delay_ignored(patch: Patch) -> None:
    """A retry does not wait for its delay."""
    patch.setattr(RunFacts, "is_due", lambda self, now: True)


def living_swept(patch: Patch) -> None:
    """The sweeper takes runs whose lease has not ended."""

    def every_running(self: Tables, limit: int, now: Now) -> list[RunFacts]:
        return [row.facts for row in self.runs.values() if row.facts.state is RunState.RUNNING]

    patch.setattr(Tables, "ended_leases", every_running)
    patch.setattr(RunFacts, "is_held", lambda self, epoch, now: False)


def unfair(patch: Patch) -> None:
    """The first tenant is served until it has nothing left."""

    def one_after_the_other(waiting: list[WaitingTenant], limit: int) -> list[RunFacts]:
        return [run for tenant in waiting for run in tenant.runs][:limit]

    patch.setattr(attempts, "take_turns", one_after_the_other)


def tenant_limit_ignored(patch: Patch) -> None:
    """A tenant may have as many running runs as it likes."""
    patch.setattr(Tables, "room", lambda self, tenant: None)


def quarantine_not_counted(patch: Patch) -> None:
    """Every damaged result is the first one."""
    patch.setattr(Tables, "quarantined", lambda self, run, step: 0)


def record_without_version(patch: Patch) -> None:
    """A record is written over whatever is there."""

    def put(command: c.PutRecord, facts: Any, now: Now) -> Decision:
        record = RecordFacts(command.key, command.value, command.version, now.wall)
        return Decision(Stored(command.version, now.wall), [WriteRecord(record)])

    patch.setitem(RULES, c.PutRecord, put)


def forced_release_without_epoch(patch: Patch) -> None:
    """A lock that is taken away by force keeps its epoch."""
    release = RULES[c.ForceRelease]

    def same_epoch(command: c.ForceRelease, facts: Any, now: Now) -> Decision:
        epoch = facts.lock(command.name).epoch if facts.lock(command.name) else 0
        decision = release(command, facts, now)
        changes = [
            PutLock(LockFacts(change.lock.name, epoch)) if isinstance(change, PutLock) else change
            for change in decision.changes
        ]
        return msgspec.structs.replace(decision, changes=changes)

    patch.setitem(RULES, c.ForceRelease, same_epoch)


def no_dead_letter(patch: Patch) -> None:
    """A run fails and leaves no dead letter."""
    fail = failing.fail

    def silent(*arguments: Any, **fields: Any) -> list[Change]:
        changes = fail(*arguments, **fields)
        return [change for change in changes if not isinstance(change, OpenLetter)]

    patch.setattr(attempts, "fail", silent)
    patch.setattr(interventions, "fail", silent)


def holders_not_notified(patch: Patch) -> None:
    """Who cancels a run wakes workers that look for work, and not the one that has it."""
    patch.setattr(c.Cancel, "wake", property(lambda self: c.Wake.WORKERS))


NOTICED_BY: dict[Callable[[Patch], None], str] = {
    attempts_not_counted: "test_every_claim_raises_epoch_and_attempt",
    hand_over_counts: "test_a_hand_over_is_claimable_at_once_and_does_not_count",
    pause_counts: "test_a_running_run_is_paused_and_the_attempt_does_not_count",
    cancel_without_epoch: "test_every_live_run_can_be_cancelled_at_once",
    resume_without_attempts: "test_a_failed_run_is_reopened_with_more_attempts",
    ended_lease_revived: "test_an_ended_lease_is_never_revived",
    deposed_leader_claims: "test_a_leader_deposed_by_force_claims_nothing",
    key_conflict_hidden: "test_a_key_reused_for_something_else_is_a_conflict",
    unique_slot_ignored: "test_a_unique_pipeline_has_one_live_run_for_each_tenant",
    delay_ignored: "test_a_retry_waits_for_its_delay",
    living_swept: "test_a_sweep_leaves_the_living_alone",
    unfair: "test_each_tenant_is_given_its_share_or_all_it_has",
    tenant_limit_ignored: "test_a_tenant_at_its_limit_does_not_wait",
    quarantine_not_counted: "test_quarantine_counts_what_a_step_lost_in_this_run_so_far",
    record_without_version: "test_only_who_knows_the_version_replaces_it",
    forced_release_without_epoch: "test_a_forced_release_raises_the_epoch_and_is_audited",
    no_dead_letter: "test_a_run_fails_with_its_error_and_one_dead_letter",
    holders_not_notified: "test_who_holds_a_lease_is_notified_when_it_is_taken_away",
}
"""The test of the contract that fails with each of them."""
