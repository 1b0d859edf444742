"""The outbox: committed events, in order, until a relay confirms that they reached the bus."""

from __future__ import annotations

from itertools import islice

from holdfast.adapters.memory.state import State
from holdfast.model.commands import ConfirmOutbox, ReadOutbox
from holdfast.model.event import Event


def read_outbox(state: State, command: ReadOutbox) -> list[Event]:
    return list(islice(state.outbox.values(), command.limit))


def confirm_outbox(state: State, command: ConfirmOutbox) -> None:
    state.confirmed = max(state.confirmed, command.position)
    for position in [position for position in state.outbox if position <= state.confirmed]:
        del state.outbox[position]
