"""Dead letters, each open until it is redriven or discarded."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.adapters.memory.state import State
from holdfast.model.commands import Bury, Discard, MarkRedriven
from holdfast.ports.store import DeadLetter


def bury(state: State, command: Bury) -> bool:
    if command.id in state.dead_letters:
        return False
    state.dead_letters[command.id] = DeadLetter(
        command.id,
        command.source,
        command.reason,
        command.body,
        dict(command.attributes),
        command.tenant,
        state.clock.now(),
    )
    state.touch()
    return True


def mark_redriven(state: State, command: MarkRedriven) -> bool:
    if not close(state, command.id, "redriven"):
        return False
    state.note(command.actor, "dlq.redrive", command.id, "")
    return True


def discard(state: State, command: Discard) -> bool:
    letter = state.dead_letters.get(command.id)
    if not close(state, command.id, "discarded"):
        return False
    if letter and letter.run in state.runs:
        state.runs[letter.run].holds_lane = False
    state.note(command.actor, "dlq.discard", command.id, command.reason)
    return True


def close(state: State, id: str, resolution: str) -> bool:
    """Whether there was such a letter and it was open."""
    letter = state.dead_letters.get(id)
    if letter is None or letter.closed is not None:
        return False
    state.dead_letters[id] = replace(letter, closed=state.clock.now(), resolution=resolution)
    state.touch()
    return True
