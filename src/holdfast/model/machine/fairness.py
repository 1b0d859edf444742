"""Tenants take turns: how a claim is divided between those that wait."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.model.machine.facts import RunFacts, WaitingTenant


def take_turns(waiting: Sequence[WaitingTenant], limit: int) -> list[RunFacts]:
    """In rounds: each tenant one run, those with the fewest running first, then as they come; until
    `limit` runs are chosen or none is left."""
    queues = [
        list(tenant.runs if tenant.room is None else tenant.runs[: max(0, tenant.room)])
        for tenant in sorted(waiting, key=lambda tenant: tenant.running)
    ]
    chosen: list[RunFacts] = []
    for number in range(max(map(len, queues), default=0)):
        chosen += [queue[number] for queue in queues if number < len(queue)]
        if len(chosen) >= limit:
            break
    return chosen[: max(0, limit)]
