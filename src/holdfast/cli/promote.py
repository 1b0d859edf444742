"""`holdfast promote`: from one store to another."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import click
from msgspec import Struct

from holdfast.cli.commands import CliCommand, session_of
from holdfast.cli.exits import ExitCode, Unexpected
from holdfast.cli.session import Session, actor, wait_for

if TYPE_CHECKING:
    from holdfast.services.promotion import Promotion, PromotionPlan


class BlobsView(Struct):
    """Where values above 32 KiB are, and what the setting has to be from now on (None: as it
    is)."""

    values: int
    missing: int
    place: str | None
    set: str | None


class PromotionView(Struct):
    source: str
    target: str
    target_is: str
    moved: bool
    obstacles: list[str]
    runs: dict[str, int]
    kinds: list[dict[str, Any]]
    keys: int
    blobs: BlobsView
    seconds: float


@click.command(cls=CliCommand, local="this works on the stores themselves")
@click.argument("source")
@click.argument("target", required=False)
@click.option(
    "--dry-run", is_flag=True, help="Only show what would be moved, and what prevents it."
)
@click.option("--force", is_flag=True, help="Take runs away from live workers of the source.")
@click.option(
    "--undo",
    is_flag=True,
    help="Undo a promotion: the source is opened again, the target is closed.",
)
@session_of
def command(
    session: Session, source: str, target: str | None, dry_run: bool, force: bool, undo: bool
) -> int:
    """Move everything from one store to another: runs, checkpoints, histories, logs, lanes, locks,
    dead letters, keys.

    The default TARGET is the store of the settings. The source refuses writes while it is copied
    and compared with the target, and is closed after that. If it is interrupted, the same command
    goes on where it was.

    \b
    Examples:
      holdfast promote sqlite:///holdfast.db postgresql://db.example.org/app --dry-run
      holdfast promote sqlite:///holdfast.db postgresql://db.example.org/app
      holdfast promote sqlite:///holdfast.db postgresql://db.example.org/app --undo
    """
    if undo and dry_run:
        raise click.UsageError("--undo and --dry-run do not go together")
    stores = Stores(session, source, target or session.loaded.settings.store)
    return wait_for(_undo(stores, force) if undo else _promote(stores, dry_run, force))


class Stores:
    """The two stores and their blobs."""

    def __init__(self, session: Session, source: str, target: str) -> None:
        from holdfast.bootstrap import default_blobs, make_mover, with_server_settings
        from holdfast.errors import ConfigurationError
        from holdfast.model.clock import SystemClock
        from holdfast.settings import redacted

        self.session = session
        self.clock = SystemClock()
        self.source, self.target = redacted(source), redacted(target)
        settings = session.loaded.settings
        self.movers = [
            make_mover(with_server_settings(url, settings), self.clock) for url in (source, target)
        ]
        if source == target:
            raise ConfigurationError(
                f"{self.source} is given twice: name the store to move, then where to move it"
            )
        setting = settings.blobs
        self.blobs = _absolute(setting or default_blobs(source))
        self.blobs_then = _absolute(setting or default_blobs(target))

    def promotion(self, report_progress: Any) -> Promotion:
        from holdfast.bootstrap import make_blobs
        from holdfast.services.inventory import BlobCheck
        from holdfast.services.promotion import NamedMover, Promotion

        source, target = self.movers
        self.check = BlobCheck(make_blobs(self.blobs) if self.blobs else None)
        return Promotion(
            NamedMover(source, self.source),
            NamedMover(target, self.target),
            self.clock,
            report_progress,
            self.check,
        )

    def view(self, plan: PromotionPlan, moved: bool, took: float) -> PromotionView:
        inventory = plan.inventory
        needed = self.blobs if self.blobs != self.blobs_then else None
        return PromotionView(
            self.source,
            self.target,
            plan.target,
            moved,
            plan.obstacles,
            dict(inventory.states),
            [
                {
                    "kind": name,
                    "count": amount.count,
                    "bytes": amount.bytes,
                    "digest": amount.digest,
                }
                for name, amount in inventory.amounts.items()
            ],
            inventory.keys,
            BlobsView(inventory.values, self.check.missing, self.blobs, needed),
            round(took, 3),
        )


def _absolute(blobs: str | None) -> str | None:
    """A folder by its whole name: it is to be found from anywhere."""
    if blobs is None or not blobs.startswith("file:"):
        return blobs
    return f"file:{Path(unquote(blobs[len('file:') :].removeprefix('//'))).resolve()}"


async def _promote(stores: Stores, dry_run: bool, force: bool) -> int:
    from holdfast.cli.promotion_progress import promotion_progress_on
    from holdfast.cli.render.promotion import promotion_page

    began = time.monotonic()
    with promotion_progress_on(stores.session.out) as progress:
        promotion = stores.promotion(progress.show)
        plan = await (promotion.plan(force=force) if dry_run else _move(promotion, force))
    view = stores.view(plan, not dry_run, time.monotonic() - began)
    stores.session.out.value(view, lambda: promotion_page(view))
    return ExitCode.CONFLICT if view.obstacles else ExitCode.OK


async def _move(promotion: Promotion, force: bool) -> PromotionPlan:
    from holdfast.services.promotion import Different, PromotionPlan

    try:
        return PromotionPlan(await promotion.move(actor(), force=force), "complete")
    except Different as error:
        raise Unexpected(str(error)) from error


async def _undo(stores: Stores, force: bool) -> int:
    await stores.promotion(lambda *_: None).undo(force=force)
    out = stores.session.out
    if out.for_people:
        out.line(f"{stores.source} goes on; {stores.target} is closed")
    else:
        out.json({"source": stores.source, "target": stores.target, "undone": True})
    return ExitCode.OK
