"""Findings as tests look at them: by the name of the check."""

from __future__ import annotations

import asyncio

from holdfast.ports.health import Finding, Findings
from holdfast.services.doctor import named


async def gathered(checks: Findings) -> dict[str, Finding]:
    """As `holdfast doctor` has them: what keeps a check from going on is a finding, too."""
    findings = [finding async for finding in named("area", checks)]
    names = [finding.check for finding in findings]
    assert len(set(names)) == len(names), f"a check appears twice: {names}"
    for finding in findings:
        assert finding.seen
        assert finding.status == "ok" or (finding.why and finding.fix), finding
    return {finding.check: finding for finding in findings}


def look(checks: Findings) -> dict[str, Finding]:
    return asyncio.run(gathered(checks))


def troubles(findings: dict[str, Finding]) -> dict[str, str]:
    """What is not well."""
    return {name: finding.status for name, finding in findings.items() if finding.status != "ok"}
