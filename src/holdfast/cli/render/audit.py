"""The interventions: when, who, what, why."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType

from holdfast.cli.render.tables import empty, moment, table
from holdfast.services.audit import AuditView


def audit_table(items: Sequence[AuditView]) -> RenderableType:
    if not items:
        return empty("interventions")
    headings = ("WHEN", "WHO", "WHAT", "TARGET", "WHY")
    rows = [
        [moment(entry.at), entry.actor, entry.action, entry.target, entry.reason] for entry in items
    ]
    return table(headings, rows, whole=("TARGET",), free="WHY")
