"""`holdfast check`: look for mistakes without opening the store or running anything."""

from __future__ import annotations

from collections.abc import Callable

import click

from holdfast.cli.commands import CliCommand, session_of
from holdfast.cli.exits import ExitCode
from holdfast.cli.session import Session
from holdfast.errors import HoldfastError
from holdfast.ports.health import Finding, make_finding


@click.command(cls=CliCommand, local="this looks at the settings and pipelines here")
@session_of
def command(session: Session) -> int:
    """Check settings and pipelines. Exit code 0 if there are no problems, 8 otherwise.

    \b
    Example:
      holdfast --app pipelines.py check
    """
    from holdfast.cli.render.findings import check_lines

    findings = _findings(session)
    session.out.items(findings, lambda: check_lines(findings))
    failed = any(finding.status == "fail" for finding in findings)
    return ExitCode.PROBLEMS if failed else ExitCode.OK


def _findings(session: Session) -> list[Finding]:
    """Each check builds on those before it, so the first problem of a kind ends the list. Apps that
    can't be loaded are warnings: everything else works without them."""
    from holdfast.bootstrap.apps import app_findings
    from holdfast.cli.main import COMMANDS

    findings = [_try("settings", lambda: _settings(session))]
    if _is_ok(findings[-1]):
        findings += [
            _try("adapters", lambda: _adapters(session)),
            _try("pipelines", lambda: _pipelines(session)),
        ]
    if _is_ok(findings[-1]):
        findings.append(_try("lanes", lambda: _lanes(session)))
        findings.append(_try("projections", lambda: _projections(session)))
    return [*findings, *app_findings(reserved=COMMANDS)]


def _is_ok(finding: Finding) -> bool:
    return finding.status == "ok"


def _try(name: str, look: Callable[[], str]) -> Finding:
    try:
        return make_finding(name, look())
    except HoldfastError as error:
        return make_finding(name, str(error), fail=True)


def _settings(session: Session) -> str:
    origins = session.loaded.origins.values()
    origins_used = [origin for origin in origins if origin != "default"]
    return f"{len(origins_used)} given, {len(origins) - len(origins_used)} by default"


def _adapters(session: Session) -> str:
    from holdfast.settings import redacted

    options = session.app_options
    options.make_store()
    blobs, bus, documents = (
        options.make_blobs(),
        options.make_bus(),
        options.make_documents(),
    )
    adapters = (
        options.store_url or "a store made in code",
        options.blobs_url or ("blobs made in code" if blobs else "no blobs"),
        f"bus {options.bus_url or ('made in code' if bus else 'none')}",
        *([f"documents {options.documents_url or 'made in code'}"] if documents else []),
    )
    return ", ".join(redacted(adapter) for adapter in adapters)


def _pipelines(session: Session) -> str:

    pipelines = session.discovered.pipelines
    session.refuse_nothing_to_do()
    for pipeline in pipelines.values():
        _ = pipeline.result_step  # raises when it has no steps or names none
    return (
        "none"
        if not pipelines
        else ", ".join(
            f"{name} ({_steps(len(pipeline.steps))})" for name, pipeline in pipelines.items()
        )
    )


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count} steps"


def _lanes(session: Session) -> str:
    from holdfast.engine.lanes import lanes_of

    lanes = lanes_of(session.discovered.pipelines.values())
    return ", ".join(f"{lane.name} ({lane.order})" for lane in lanes) or "none"


def _projections(session: Session) -> str:
    from holdfast.bootstrap import projections_of

    return ", ".join(projections_of(session.app_options, session.discovered.pipelines.values()))
