"""Dead letters, each open until it is redriven or discarded."""

from __future__ import annotations

from holdfast.model.commands import Bury, Discard, MarkRedriven
from holdfast.model.event import EventType
from holdfast.model.machine.changes import (
    AddAudit,
    AddLetterEvent,
    Change,
    ChangeRun,
    CloseLetter,
    Decision,
    OpenLetter,
    encode,
)
from holdfast.model.machine.facts import Facts, Now


def bury(command: Bury, facts: Facts, now: Now) -> Decision:
    if facts.letter(command.id) is not None:
        return Decision(False)
    letter = OpenLetter(
        command.id,
        command.source,
        command.reason,
        dict(command.attributes),
        command.tenant,
        body=command.body,
    )
    data = {"source": command.source, "reason": command.reason}
    event = EventType.MESSAGE_DEAD_LETTERED
    return Decision(True, [letter, AddLetterEvent(command.id, event, encode(data).decode())])


def mark_redriven(command: MarkRedriven, facts: Facts, now: Now) -> Decision:
    letter = facts.letter(command.id)
    if letter is None or letter.closed is not None:
        return Decision(False)
    audit = AddAudit(command.actor, "dlq.redrive", command.id, "")
    return Decision(True, [CloseLetter(command.id, "redriven"), audit])


def discard(command: Discard, facts: Facts, now: Now) -> Decision:
    letter = facts.letter(command.id)
    if letter is None or letter.closed is not None:
        return Decision(False)
    changes: list[Change] = [CloseLetter(command.id, "discarded")]
    run = facts.run(letter.run) if letter.run else None
    if run is not None and run.holds_lane:
        changes.append(ChangeRun(run.id, {"holds_lane": False}))
    audit = AddAudit(command.actor, "dlq.discard", command.id, command.reason)
    return Decision(True, [*changes, audit])
