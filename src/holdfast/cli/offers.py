"""What the shell offers after Tab: pipeline names and run ids. Trouble means no offers, never an
error."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from holdfast.cli.session import Session, wait_for

OFFERS = 50


def pipeline_names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    try:
        names = _session(ctx).found.pipelines
    except Exception:
        return []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def run_ids(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    try:
        return wait_for(_runs(_session(ctx), incomplete))
    except Exception:
        return []


async def _runs(session: Session, incomplete: str) -> list[CompletionItem]:
    from holdfast.ports.store import RunFilter

    async with session.reading() as store:
        found = await store.runs(RunFilter(id_prefix=incomplete or None), limit=OFFERS)
    return [CompletionItem(run.id, help=f"{run.pipeline} {run.state}") for run in found]


def _session(ctx: click.Context) -> Session:
    return ctx.find_root().ensure_object(Session)
