"""Records: small documents, each written over the version that its writer has seen."""

from __future__ import annotations

from holdfast.model.commands import DeleteRecord, PutRecord
from holdfast.model.machine.changes import Decision, RemoveRecord, WriteRecord
from holdfast.model.machine.facts import Facts, Now, RecordFacts
from holdfast.model.replies import Changed, Stored


def _live(key: str, facts: Facts, now: Now) -> RecordFacts | None:
    record = facts.record(key)
    return record if record is not None and record.is_live(now) else None


def put_record(command: PutRecord, facts: Facts, now: Now) -> Decision:
    record = _live(command.key, facts, now)
    version = record.version if record else None
    if record is not None and version == command.version:  # its answer was lost
        return Decision(Stored(record.version, record.updated))
    if version != command.expected:
        return Decision(Changed(version))
    until = None if command.ttl is None else now.mono + command.ttl
    written = RecordFacts(
        command.key, command.value, command.version, now.wall, until, command.ttl or 0.0
    )
    return Decision(Stored(command.version, now.wall), [WriteRecord(written)])


def delete_record(command: DeleteRecord, facts: Facts, now: Now) -> Decision:
    record = _live(command.key, facts, now)
    if record is None or record.version != command.expected:
        return Decision(False)
    return Decision(True, [RemoveRecord(command.key)])
