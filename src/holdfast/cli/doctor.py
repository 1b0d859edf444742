"""`holdfast doctor`: look at everything that is running, say what is wrong, why it matters and how
to fix it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.commands import CliCommand, session_of
from holdfast.cli.exits import ExitCode
from holdfast.cli.session import Session, wait_for

if TYPE_CHECKING:
    from holdfast.model.app import App
    from holdfast.ports.health import Finding, Findings


@click.command(
    cls=CliCommand, local="this looks at the store and servers themselves, from where it runs"
)
@click.option(
    "--fix",
    is_flag=True,
    help="First repair what is safe to repair: create or migrate the store, and on Redis switch "
    "eviction off and the append-only file on.",
)
@session_of
def command(session: Session, fix: bool) -> int:
    """Check store, blobs, bus, documents, model and runs, live. Exit code 0 if nothing fails, 8
    otherwise.

    Leaves nothing behind, and shows no password or key. Warnings do not change the exit code.

    \b
    Examples:
      holdfast doctor
      holdfast --store postgresql://db.example.org/app doctor --json
    """
    import logging

    logging.getLogger("holdfast").setLevel(
        logging.CRITICAL
    )  # what adapters warn of is among the findings
    findings = wait_for(_collect(session, fix))
    if session.out.for_people:
        _print_sum(session, findings)
    else:
        session.out.items(findings, lambda: "")
    return (
        ExitCode.PROBLEMS if any(finding.status == "fail" for finding in findings) else ExitCode.OK
    )


async def _collect(session: Session, fix: bool) -> list[Finding]:
    """People see each finding as soon as it is there."""
    from holdfast.cli.render.findings import finding_text

    findings: list[Finding] = []
    async for finding in _everything(session, fix):
        if session.out.for_people:
            is_first = not findings or findings[-1].area != finding.area
            session.out.console.print(finding_text(finding, is_first, session.out.console.width))
        findings.append(finding)
    return findings


def _print_sum(session: Session, findings: list[Finding]) -> None:
    from holdfast.cli.render.findings import sum_of_findings

    session.out.console.print(sum_of_findings(findings))


# --- what is looked at ----------------------------------------------------------------------------


async def _everything(session: Session, fix: bool) -> Findings:
    """Settings come first: without them nobody knows where the rest is."""
    from holdfast.services.doctor import is_ready, named

    findings: list[Finding] = []
    async for finding in named("settings", _settings(session)):
        findings.append(finding)
        yield finding
    if any(finding.status == "fail" for finding in findings):
        return
    async for finding in named("store", _store(session, fix)):
        findings.append(finding)
        yield finding
    areas = [
        ("blobs", _blobs(session)),
        ("bus", _bus(session)),
        ("documents", _documents(session)),
        ("llm", _llm(session)),
    ]
    areas += _app_checks(session)
    if session.app_options.store_url is None or is_ready(findings):
        areas.append(("runs", _runs(session)))
    for area, checks in areas:
        async for finding in named(area, checks):
            yield finding


def _app_checks(session: Session) -> list[tuple[str, Findings]]:
    """Which apps can't be loaded, and what the others look at themselves."""
    from holdfast.bootstrap import apps

    return [
        ("apps", _installed_apps()),
        *(
            (area, _app_check(session, app, check))
            for app in apps.installed()
            for area, check in app.checks.items()
        ),
    ]


async def _installed_apps() -> Findings:
    from holdfast.bootstrap.apps import app_findings
    from holdfast.cli.main import COMMANDS

    for finding in app_findings(reserved=COMMANDS):
        yield finding


async def _app_check(session: Session, app: App, check: str) -> Findings:
    from holdfast.bootstrap.apps import load_part, missing_modules
    from holdfast.ports.health import make_finding

    if missing_modules(app):
        yield make_finding(f"app {app.name}", f"not installed; pip install '{app.extra}' brings it")
        return
    async for finding in load_part(app, check)(session.loaded.settings):
        yield finding


async def _settings(session: Session) -> Findings:
    from holdfast.settings.health import findings

    async for finding in findings(session.loaded):
        yield finding


async def _store(session: Session, fix: bool) -> Findings:
    from holdfast import bootstrap
    from holdfast.ports.health import make_finding
    from holdfast.services.doctor import is_ready, trial
    from holdfast.settings import redacted

    url = session.app_options.store_url
    yield make_finding(
        "address", redacted(url) if url else "made in code: only its behaviour can be checked"
    )
    if url is not None:
        if fix:
            yield make_finding(
                "repair",
                ", ".join(await bootstrap.repair_store(url)) or "created or migrated where needed",
            )
        findings: list[Finding] = []
        async for finding in bootstrap.store_health(url):
            findings.append(finding)
            yield finding
        if not is_ready(findings):
            return
    async for finding in trial(session.app_options.make_store):
        yield finding


async def _blobs(session: Session) -> Findings:
    from holdfast import bootstrap

    options = session.app_options
    if options.blobs_url is None and (options.blobs is not None or options.store_url is None):
        return  # made in code: nothing is known about it
    async for finding in bootstrap.blobs_health(options.blobs_url, options.store_url or ""):
        yield finding


async def _bus(session: Session) -> Findings:
    from holdfast import bootstrap
    from holdfast.bootstrap.pubsub import flow_findings, topology

    options = session.app_options
    if options.bus_url is None and options.bus is not None:
        return  # made in code: nothing is known about it
    url, plan = options.bus_url or "none", topology(session.loaded)
    async for finding in bootstrap.bus_health(url, options.store_url, plan):
        yield finding
    for finding in flow_findings(session.loaded) if url != "none" else ():
        yield finding


async def _documents(session: Session) -> Findings:
    """Where documents go and, if it is another place, where pipeline locks live."""
    from holdfast import bootstrap

    url, locks = session.app_options.documents_url, session.loaded.settings.locks.store
    if url is not None:
        async for finding in bootstrap.documents_health(url):
            yield finding
    if locks is not None and locks != url and bootstrap.has_port(locks, "records"):
        async for finding in bootstrap.documents_health(locks):
            yield finding


async def _llm(session: Session) -> Findings:
    from holdfast import bootstrap

    async for finding in bootstrap.language_model_health(session.loaded.settings.llm):
        yield finding


async def _runs(session: Session) -> Findings:
    import time

    from holdfast.services.doctor import runs

    async with session.reading() as store:
        has_bus = session.app_options.make_bus() is not None
        async for finding in runs(store, has_bus=has_bus, now=time.time()):
            yield finding
