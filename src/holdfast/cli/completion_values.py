"""Values for shell completion: pipeline names and run ids. On any error there are none."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from holdfast.cli.session import Session, wait_for

LIMIT = 50


def pipeline_names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    try:
        names = _session(ctx).discovered.pipelines
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

    async with session.service() as service:
        page = await service.runs.list(RunFilter(id_prefix=incomplete or None), limit=LIMIT)
    return [CompletionItem(run.id, help=f"{run.pipeline} {run.state}") for run in page.items]


def _session(ctx: click.Context) -> Session:
    return ctx.find_root().ensure_object(Session)
