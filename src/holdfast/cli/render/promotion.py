"""What people see of a promotion: what there is of each kind, and what to do next."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from holdfast.cli.promote import PromotionView
from holdfast.cli.render.tables import colored, table
from holdfast.model.duration import humanise

STATES = ("queued", "running", "paused", "succeeded", "failed", "cancelled")
KINDS = (
    "runs",
    "checkpoints",
    "quarantined",
    "events",
    "log lines",
    "dead letters",
    "lanes",
    "tenants",
    "locks",
    "records",
    "audit entries",
)
TARGETS = {
    "new": "is reachable; the store will be created",
    "empty": "is reachable and empty",
    "half filled": "is half filled by this promotion, which goes on from there",
    "in use": "is reachable",
}


def promotion_page(view: PromotionView) -> RenderableType:
    title = Text.assemble((view.source, "bold"), " → ", (view.target, "bold"))
    return Group(
        title, Text(), _kinds(view), Text(), *(_moved(view) if view.moved else _planned(view))
    )


def _kinds(view: PromotionView) -> Table:
    kinds = sorted(
        (kind for kind in view.kinds if kind["count"]), key=lambda kind: KINDS.index(kind["kind"])
    )
    rows = [
        (k["kind"], f"{k['count']:,}", _size(k["bytes"]), _detail(k["kind"], view)) for k in kinds
    ]
    return table(
        ["KIND", "COUNT", "SIZE", ""], rows or [("nothing", "0", "", None)], right=("COUNT", "SIZE")
    )


def _detail(kind: str, view: PromotionView) -> Text | None:
    if kind != "runs":
        return None
    parts = [
        Text.assemble(f"{view.runs[state]:,} ", colored(state))
        for state in STATES
        if view.runs.get(state)
    ]
    keys = [Text(f"{view.keys:,} with a key")] if view.keys else []
    return Text(", ").join([*parts, *keys])


def _size(size: int) -> str:
    for unit, length in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= length:
            return f"{size / length:.1f} {unit}"
    return f"{size} B"


def _planned(view: PromotionView) -> list[RenderableType]:
    lines = (
        [_good(f"{view.target} {TARGETS[view.target_is]}")] if view.target_is != "in use" else []
    )
    lines += [_bad(obstacle) for obstacle in view.obstacles]
    lines += _missing(view)
    lines.append(Text("nothing was changed: this was a dry run", style="dim"))
    return [*lines, *_next(view, "then set")]


def _moved(view: PromotionView) -> list[RenderableType]:
    return [
        _good(
            f"moved in {humanise(view.seconds)}, read back, and the same on both sides, run by run"
        ),
        *_missing(view),
        Text(
            f"{view.source} is closed: who opens it is told where its runs are; --undo takes it "
            "back"
        ),
        *_next(view, "now set"),
    ]


def _missing(view: PromotionView) -> list[Text]:
    blobs = view.blobs
    if not blobs.missing:
        return []
    return [
        _bad(
            f"{blobs.missing} of {blobs.values} values are not in the blob store "
            f"{blobs.place or '(none is set)'}"
        )
    ]


def _next(view: PromotionView, lead: str) -> list[Text]:
    """The settings that have to change, and why."""
    lines = [Text(), Text(lead), Text(f"  HOLDFAST_STORE={view.target}")]
    if view.blobs.set is None:
        return lines
    lines.append(Text(f"  HOLDFAST_BLOBS={view.blobs.set}"))
    note = f"{view.blobs.values:,} values above 32 KiB, and all artifacts, stay there"
    is_folder = view.blobs.set.startswith("file:") and not view.target.startswith("sqlite:")
    hint = "; workers on other machines need that folder too" if is_folder else ""
    lines.append(Text(f"    {note}{hint}", style="dim"))
    return lines


def _good(text: str) -> Text:
    return Text.assemble(("✔ ", "green"), text)


def _bad(text: str) -> Text:
    return Text.assemble(("✘ ", "red"), text)
