"""Forget to document a setting, a command or an option, and a test tells you."""

import dataclasses
import re
from pathlib import Path

import click
import pytest

from holdfast import errors
from holdfast.apps.report.model import document
from holdfast.cli.commands import global_options
from holdfast.cli.exits import ExitCode
from holdfast.cli.main import all_commands, load_command
from holdfast.settings import CONFIG, FIELDS, SECRETS, WITHOUT_EFFECT

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
SETTINGS = (REFERENCE / "settings.md").read_text()
CLI = (REFERENCE / "cli.md").read_text()


def commands() -> dict[str, click.Command]:
    commands: dict[str, click.Command] = {}
    for name in all_commands():
        command = load_command(name)
        assert command is not None, name
        commands |= verbs(name, command)
    return commands


def verbs(name: str, command: click.Command) -> dict[str, click.Command]:
    children = getattr(command, "commands", None)
    if not children:
        return {name: command}
    commands: dict[str, click.Command] = {}
    for verb, child in children.items():
        commands |= verbs(f"{name} {verb}", child)
    return commands


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_every_setting_is_documented_with_all_its_names(field):
    [row] = [line for line in SETTINGS.splitlines() if line.startswith(f"| `{field.name}` |")]
    for name in field.names:
        assert f"`{name}`" in row


def test_no_setting_is_documented_that_does_not_exist():
    table = SETTINGS.partition("## All settings")[2].partition("## Names")[0]
    assert re.findall(r"^\| `([a-z._]+)` \|", table, re.MULTILINE) == [
        field.name for field in FIELDS
    ]


@pytest.mark.parametrize("entry", WITHOUT_EFFECT, ids=lambda entry: entry.names[0])
def test_every_name_without_effect_is_documented_with_its_reason(entry):
    names = ", ".join(f"`{name}`" for name in entry.names)
    assert f"| {names} | {entry.reason} |" in SETTINGS


def test_no_other_name_is_documented_as_without_effect():
    table = SETTINGS.partition("| name | because |")[2].partition("\n\n")[0]
    names = re.findall(r"`([A-Z_]+)`", "".join(re.findall(r"^\| (.*?) \|", table, re.MULTILINE)))
    assert sorted(names) == sorted(name for entry in WITHOUT_EFFECT for name in entry.names)


def test_no_name_is_said_to_have_no_effect_that_has_one():
    names = [name for entry in WITHOUT_EFFECT for name in entry.names]
    assert len(names) == len(set(names))
    assert not set(names) & {name for field in FIELDS for name in field.names}


@pytest.mark.parametrize("name", [CONFIG, SECRETS])
def test_variables_about_places_are_documented(name):
    assert f"`{name}`" in SETTINGS


def section(path: str) -> str:
    return re.split(r"(?m)^##", CLI.partition(f"# `holdfast {path}`\n")[2])[0]


@pytest.mark.parametrize("path", commands())
def test_every_command_is_documented_with_all_its_options_and_an_example(path):
    command = commands()[path]
    text = section(path)
    assert f" {path}" in text.partition("```console")[2]
    for option in command.params:
        if isinstance(option, click.Option) and option.expose_value:
            for name in (*option.opts, *option.secondary_opts):
                assert name in text, f"{path} {name}"


def test_every_global_option_is_documented():
    for option in global_options():
        assert all(name in CLI.partition("## Exit codes")[0] for name in option.opts)


@pytest.mark.parametrize("code", list(ExitCode))
def test_every_exit_code_is_documented(code):
    codes = CLI.partition("## Exit codes")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in codes.splitlines() if line.startswith("| ")]
    assert str(code.value) in re.findall(r"\d+", " ".join(rows))


def fields_of(kind: type) -> set[str]:
    """The names of all fields of a document, nested ones included."""
    names: set[str] = set()
    for field in dataclasses.fields(kind):
        names.add(field.name)
        for nested in re.findall(r"[A-Z]\w+", str(field.type)):
            inner = getattr(document, nested, None)
            if dataclasses.is_dataclass(inner):
                names |= fields_of(inner)  # type: ignore[arg-type]
    return names


def test_every_field_of_a_report_is_documented():
    text = (REFERENCE / "report.md").read_text()
    assert {name for name in fields_of(document.Report) if f"`{name}`" not in text} == set()


def test_every_error_is_documented_with_its_kind():
    rows = re.findall(r"(?m)^\| `(\w+)` \| (?:`(\w+)`)? ?\|", (REFERENCE / "errors.md").read_text())
    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type)
        and issubclass(kind, errors.HoldfastError)
        and kind not in (errors.HoldfastError, errors.Fix)
    ]
    bases = {kind.__name__: kind.__base__.__name__.replace("HoldfastError", "") for kind in kinds}
    assert dict(rows) == bases
