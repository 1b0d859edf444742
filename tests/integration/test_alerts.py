"""Alerts and dashboard: they name metrics that exist, fire and are silent as they should, and each
alert has a page."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from tests.missing import or_skip

from holdfast.model.metrics import BY_NAME, METRICS

ROOT = Path(__file__).parents[2]
PROMETHEUS = ROOT / "deploy" / "prometheus"
DASHBOARD = ROOT / "deploy" / "grafana" / "holdfast.json"
RULES = yaml.safe_load((PROMETHEUS / "rules.yml").read_text())
TESTS = yaml.safe_load((PROMETHEUS / "rules_test.yml").read_text())
EVERY = [rule for group in RULES["groups"] for rule in group["rules"]]
ALERTS = {rule["alert"]: rule for rule in EVERY if "alert" in rule}
KEDA = ROOT / "deploy" / "kubernetes" / "keda.yaml"


def named(text: str) -> set[str]:
    """The metrics that a text names, without the endings of histograms."""
    names = set(re.findall(r"\b(?:pipeline|holdfast)_[a-z0-9_]+\b", text)) - {"pipeline_id"}
    return {re.sub(r"_(bucket|sum|count)$", "", n) if n not in BY_NAME else n for n in names}


def promtool(*words: str) -> str:
    def find() -> str:
        program = shutil.which("promtool")
        if program is None:
            raise FileNotFoundError("promtool is missing: make prometheus")
        return program

    process = subprocess.run(
        [or_skip(find), *words], cwd=PROMETHEUS, capture_output=True, text=True, timeout=60
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


def test_the_rules_are_valid():
    assert f"{len(EVERY)} rules found" in promtool("check", "rules", "rules.yml")
    promtool("check", "config", "--syntax-only", "prometheus.yml")


def test_alerts_fire_and_are_silent_as_they_should():
    assert "SUCCESS" in promtool("test", "rules", "rules_test.yml")


@pytest.mark.parametrize("alert", ALERTS)
def test_each_alert_is_tested_both_ways_and_has_a_page(alert):
    tests = [test for group in TESTS["tests"] for test in group["alert_rule_test"]]
    expected = [test["exp_alerts"] for test in tests if test["alertname"] == alert]
    assert [] in expected
    assert any(expected)
    page = ALERTS[alert]["annotations"]["runbook_url"]
    assert page == f"docs/runbooks/{alert}.md"
    text = (ROOT / page).read_text()
    assert all(f"\n## {part}\n" in text for part in ("What it means for users", "Look", "Do"))
    assert f"[{alert}]({alert}.md)" in (ROOT / "docs" / "runbooks" / "README.md").read_text()


def test_no_page_is_about_an_alert_that_does_not_exist():
    pages = {page.stem for page in (ROOT / "docs" / "runbooks").glob("*.md")} - {"README"}
    assert pages == set(ALERTS)


@pytest.mark.parametrize(
    "path",
    [PROMETHEUS / "rules.yml", PROMETHEUS / "rules_test.yml", DASHBOARD, KEDA],
    ids=lambda path: path.name,
)
def test_every_metric_that_is_named_exists(path):
    assert named(path.read_text()) - set(BY_NAME) == set()


def test_the_dashboard_shows_every_metric():
    panels = json.loads(DASHBOARD.read_text())["panels"]
    expressions = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    left_out = {"pipeline_lock_acquired_timestamp_seconds"}
    assert set(BY_NAME) - named(" ".join(expressions)) == left_out
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_every_metric_is_documented_with_its_labels():
    text = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    for metric in METRICS:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        row = f"| `{metric.name}` | {metric.kind} | {labels} | {metric.help} |"
        assert row in text
