"""Apps: found by name, imported on use; a broken one harms nobody else."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.findings import look

from holdfast import Context, Pipeline
from holdfast.bootstrap import apps
from holdfast.bootstrap.providers import Providers
from holdfast.cli.main import COMMANDS, all_commands, load_command
from holdfast.errors import ConfigurationError
from holdfast.settings.values import Settings
from holdfast.testing import TestEngine

GARDEN = """
import click
from holdfast import App, Pipeline
from holdfast.ports.health import make_finding

class Gardener:
    def __init__(self, rake):
        self.rake = rake

def gardener(use):
    return Gardener("rake")

@click.command()
def command():
    click.echo("raking")

async def look(settings):
    yield make_finding("tools", f"a rake, for {settings.tenant}")

garden = Pipeline("garden", input=str)

@garden.step
async def rake(request: str) -> str:
    return request
"""
APP = """
from holdfast import App

app = App(
    name="garden",
    commands="garden_parts:command",
    pipelines={"garden": "garden_parts:garden"},
    providers={"garden_parts:Gardener": "garden_parts:gardener"},
    checks={"garden": "garden_parts:look"},
)
"""


class Site:
    """A folder of installed packages that declare apps."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(self, package: str, entry: str, **modules: str) -> None:
        info = self.folder / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{apps.GROUP}]\n{entry}\n")
        for name, code in modules.items():
            (self.folder / f"{name}.py").write_text(code)

    def holdfast(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if "HOLDFAST" not in name}
        return subprocess.run(
            [sys.executable, "-m", "holdfast", *words],
            env={**environment, "PYTHONPATH": str(self.folder)},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    _forget()
    yield Site(tmp_path)
    _forget()
    for name in set(sys.modules) - before:
        del sys.modules[name]


def _forget() -> None:
    apps._entry_points.cache_clear()
    apps.third_party.cache_clear()


@pytest.fixture
def garden(site: Site) -> Site:
    site.install("green", "garden = garden_app:app", garden_app=APP, garden_parts=GARDEN)
    return site


# --- shipped --------------------------------------------------------------------------------------


def test_every_part_of_a_shipped_app_can_be_loaded() -> None:
    for app in apps.SHIPPED.values():
        references = [
            *([app.commands] if app.commands else []),
            *app.pipelines.values(),
            *app.providers,
            *app.providers.values(),
            *app.log_formats.values(),
            *app.projections.values(),
            *app.checks.values(),
        ]
        assert all(apps.load_part(app, reference) for reference in references)
        assert app.name not in COMMANDS
        for name, reference in app.pipelines.items():
            assert apps.load_part(app, reference).name == name


def test_without_its_extra_a_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    app = apps.App(name="report", extra="holdfast[report]", needs=("numpy", "no_such_module"))
    monkeypatch.setattr(apps, "SHIPPED", {"report": app})
    with pytest.raises(
        ConfigurationError, match=r"no_such_module.*pip install 'holdfast\[report\]"
    ):
        apps.require_extra(app)


def test_a_module_that_is_missing_is_named_with_the_extra() -> None:
    app = apps.App(name="x", extra="holdfast[x]", commands="no_such_module:command")
    with pytest.raises(ConfigurationError, match=r"needs no_such_module.*holdfast\[x\]"):
        apps.load_part(app, app.commands)


def test_without_its_extra_the_command_line_says_what_to_install(site: Site) -> None:
    hidden = "import sys\nsys.modules['numpy'] = None\n"
    (site.folder / "sitecustomize.py").write_text(hidden)
    for words in (["report", "build", "comments.csv"], ["report", "validate", "out"]):
        process = site.holdfast(*words)
        assert process.returncode == 2
        assert process.stderr == (
            "holdfast: `holdfast report` needs numpy, which is not installed: "
            "pip install 'holdfast[report]'\n"
        )
    assert site.holdfast("--help").returncode == 0


CORE_ALONE = """
import sys
sys.modules |= dict.fromkeys(["av", "numpy"])  # what reports and transcription need
sys.modules |= dict.fromkeys(["holdfast.apps.report", "holdfast.apps.transcription"])
"""


def test_without_the_extras_of_its_apps_everything_else_works(site: Site) -> None:
    (site.folder / "sitecustomize.py").write_text(CORE_ALONE)
    (site.folder / "own.py").write_text(GARDEN)
    own = ("--app", "own:garden", "--store", "sqlite:///own.db")
    assert site.holdfast(*own, "run", "garden", "--input", '"a"').stdout == '"a"\n'
    assert site.holdfast(*own, "worker", "--once").returncode == 0
    assert site.holdfast(*own, "check").returncode == 0
    assert site.holdfast("pipelines", "list").returncode == 0
    doctor = site.holdfast("doctor")
    assert doctor.returncode == 0, doctor.stdout
    assert "not installed; pip install 'holdfast[report]' brings it" in doctor.stdout
    for words in (["worker"], ["run", "report"], ["pipelines", "graph", "metadata"]):
        refused = site.holdfast(*words)
        assert refused.returncode != 0
        assert "; pip install 'holdfast[report]' brings report; pip" in refused.stderr
    demo = site.holdfast("serve", "--demo")
    assert (demo.returncode, "holdfast[report]" in demo.stderr) == (2, True)
    assert not (site.folder / "holdfast-demo").exists()


# --- other packages' ------------------------------------------------------------------------------


def test_an_entry_point_becomes_a_command_pipelines_ports_and_checks(garden: Site) -> None:
    assert all_commands()["garden"] == "From green 1.0."
    assert "garden_app" not in sys.modules
    command = load_command("garden")
    assert command is not None
    assert command.name == "command"
    app = apps.find_app("garden")
    assert app is not None
    assert apps.load_part(app, app.pipelines["garden"]).name == "garden"
    assert look(apps.load_part(app, app.checks["garden"])(Settings(tenant="acme")))[
        "tools"
    ].seen.endswith("acme")
    gardener = apps.load_part(app, "garden_parts:Gardener")
    assert Providers({})[gardener].rake == "rake"


def test_other_packages_are_not_imported_for_other_commands(garden: Site) -> None:
    """Those who look at runs, ask for help or name a shipped command import no app at all."""
    for words in (["--help"], ["version"], ["runs", "--help"], ["report", "--help"]):
        process = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "holdfast", *words],
            env={**os.environ, "PYTHONPATH": str(garden.folder)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert "garden" not in process.stderr


def test_the_command_line_runs_another_packages_app(garden: Site) -> None:
    assert "garden" in garden.holdfast("--help").stdout
    assert garden.holdfast("garden").stdout == "raking\n"
    ran = garden.holdfast("run", "garden", "--input", ':="leaves"')
    assert json.loads(ran.stdout) == "leaves", ran.stderr
    findings = json.loads(garden.holdfast("doctor", "--json").stdout)["items"]
    assert [item["seen"] for item in findings if item["area"] == "garden"] == [
        "a rake, for default"
    ]
    assert [item["seen"] for item in findings if item["area"] == "apps"] == ["from green 1.0"]


BROKEN = {
    "garden = no_such_package:app": "ModuleNotFoundError",
    "garden = garden_app:nothing": "AttributeError",
    "garden = garden_app:number": "is a int, not a holdfast.App",
    "garden = garden_app:crash": "ZeroDivisionError",
    "garden = garden_app:misnamed": "calls itself 'other'",
    "report = garden_app:report": "holdfast has an app of that name itself",
}
PARTS = """
from holdfast import App

number = 7
misnamed = App(name="other")
report = App(name="report")

def __getattr__(name):
    if name == "crash":
        1 / 0
    raise AttributeError(name)
"""


@pytest.mark.parametrize("entry", BROKEN)
def test_a_broken_app_is_a_warning_and_nothing_else(site: Site, entry: str) -> None:
    site.install("rotten", entry, garden_app=PARTS)
    _, [broken] = apps.third_party()
    assert BROKEN[entry] in broken.reason
    assert broken.package == "rotten 1.0"
    [finding] = apps.app_findings()
    assert (finding.status, finding.fix) == ("warn", "upgrade or uninstall rotten 1.0")
    assert [app.name for app in apps.installed()] == list(apps.SHIPPED)


def test_of_two_apps_of_one_name_the_first_is_used_and_the_other_named(garden: Site) -> None:
    garden.install("weeds", "garden = garden_app:app")
    [app], [broken] = apps.third_party()
    assert app is apps.find_app("garden")
    assert {apps.declared()["garden"], broken.package} == {"green 1.0", "weeds 1.0"}
    assert "has an app of that name, too" in broken.reason


def test_a_broken_app_crashes_no_other_command(site: Site) -> None:
    site.install("rotten", "garden = garden_app:crash", garden_app=PARTS)
    assert site.holdfast("pipelines", "list").returncode == 0
    checked = site.holdfast("check")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "ZeroDivisionError" in checked.stdout
    doctor = site.holdfast("doctor", "--json")
    items = json.loads(doctor.stdout)["items"]
    assert [item["status"] for item in items if item["area"] == "apps"] == ["warn"]
    own = site.holdfast("garden")
    assert own.returncode == 2
    assert "app 'garden' of rotten 1.0 can't be used" in own.stderr


def test_pipelines_of_an_app_that_cannot_be_imported_are_left_out(site: Site) -> None:
    app = 'from holdfast import App\napp = App(name="garden", pipelines={"x": "nowhere:x"})'
    site.install("half", "garden = garden_app:app", garden_app=app)
    listed = site.holdfast("pipelines", "list", "--json")
    names = {item["name"] for item in json.loads(listed.stdout)["items"]}
    assert names == {"report", "metadata", "transcription"}
    assert "warning: the pipelines of app garden are left out" in listed.stderr


def test_holdfasts_own_commands_come_first(site: Site) -> None:
    app = 'from holdfast import App\napp = App(name="runs", commands="x:y")'
    site.install("greedy", "runs = garden_app:app", garden_app=app)
    assert all_commands()["runs"] == COMMANDS["runs"]
    [finding] = apps.app_findings(reserved=COMMANDS)
    assert finding.status == "warn"


# --- ports ----------------------------------------------------------------------------------------


class Rake:
    closed = 0

    async def aclose(self) -> None:
        self.closed += 1


def test_what_is_given_comes_before_what_an_app_provides(garden: Site) -> None:
    app = apps.find_app("garden")
    assert app is not None
    gardener = apps.load_part(app, "garden_parts:Gardener")
    assert Providers({gardener: "mine"})[gardener] == "mine"


def test_a_port_is_made_once_closed_once_and_made_anew_after_that() -> None:
    instances: list[Rake] = []

    def make(use: object) -> Rake:
        instances.append(Rake())
        return instances[-1]

    instance = Rake()
    providers = Providers({int: instance}, {f"{__name__}:Rake": make})
    assert providers[Rake] is providers[Rake]
    asyncio.run(providers.aclose())
    assert [rake.closed for rake in (*instances, instance)] == [1, 1]
    assert providers[Rake] is instances[1]


def test_what_nobody_provides_is_named_with_the_remedy() -> None:
    assert Rake not in Providers({})
    with pytest.raises(ConfigurationError, match=r"provide=\{Rake: …\}"):
        Providers({})[Rake]


def test_a_step_uses_what_an_app_provides(garden: Site) -> None:
    import garden_parts  # type: ignore[import-not-found]

    pipeline: Pipeline[str] = Pipeline("uses", input=str)

    @pipeline.step
    async def use(request: str, ctx: Context) -> str:
        return ctx.use(garden_parts.Gardener).rake

    engine = TestEngine(pipeline)
    run = engine.submit(pipeline, "x")
    engine.drain()
    assert engine.result(run) == "rake"
    engine.close()
