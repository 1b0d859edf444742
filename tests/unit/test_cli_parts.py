"""The parts behind the commands: input from the command line, bars on a timeline, exit codes,
help."""

import io
from datetime import UTC, datetime, timedelta

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from holdfast import errors
from holdfast.cli.exits import ExitCode, RunEnded, code_for
from holdfast.cli.inputs import NOTHING, read_input
from holdfast.cli.main import all_commands, load_command, root
from holdfast.cli.render import timeline
from holdfast.cli.render.runs import run_table
from holdfast.errors import InvalidInput
from holdfast.model.run import ErrorInfo, StepStatus
from holdfast.services.steps import StepView
from holdfast.services.views import RunSummary

# --- input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ([], NOTHING),
        (["a=1"], {"a": "1"}),
        (["a:=1"], {"a": 1}),
        (["a="], {"a": ""}),
        (["a=b=c"], {"a": "b=c"}),
        (["a.b.c=x", "a.b.d:=[1, 2]"], {"a": {"b": {"c": "x", "d": [1, 2]}}}),
        ([":=5"], 5),
        ([":=null"], None),
        ([":=[1, 2]"], [1, 2]),
        (["[1, 2]"], [1, 2]),
        ([' {"a": "b=c"}', "d=e"], {"a": "b=c", "d": "e"}),
        (["=Ada"], "Ada"),
        (["="], ""),
        ([':={"a": {}}', "a.b=x"], {"a": {"b": "x"}}),
        (["url=http://x?a:=b"], {"url": "http://x?a:=b"}),
        (["name=grüße 🎉"], {"name": "grüße 🎉"}),
        (["5"], 5),
        (['"a=b"'], "a=b"),
        (["null"], None),
    ],
)
def test_input_is_assigned_by_name(words, value):
    assert read_input(words, None) == value


@pytest.mark.parametrize("word", ["a", "a:={", "{a=1}", "a:=NaN x", ":=" + "[" * 100_000])
def test_input_that_is_not_understood_is_refused(word):
    with pytest.raises(InvalidInput):
        read_input([word], None)


def test_assignments_lie_over_the_file(tmp_path):
    file = tmp_path / "in.json"
    file.write_text('{"a": {"b": 1, "c": 2}}')
    assert read_input(["a.b:=9"], str(file)) == {"a": {"b": 9, "c": 2}}


# --- timeline -------------------------------------------------------------------------------------

moments = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))


@given(
    start=moments, end=moments, begun=moments, ended=st.none() | moments, room=st.integers(1, 80)
)
def test_a_bar_never_leaves_the_axis_whatever_the_clocks_did(start, end, begun, ended, room):
    axis = timeline.Axis(start, end, end)
    step = StepView("s", StepStatus.COMPLETED, started=begun, finished=ended)
    offset, length = axis.position(step, room)
    assert 0 <= offset < room
    assert 1 <= length <= room - offset


def test_bars_are_as_long_as_their_steps():
    start = datetime(2026, 1, 1, tzinfo=UTC)
    axis = timeline.Axis(start, start + timedelta(seconds=10), start)
    half = StepView(
        "s", StepStatus.COMPLETED, started=start + timedelta(seconds=5), finished=axis.end
    )
    assert axis.position(half, 40) == (20, 20)


@pytest.mark.parametrize("status", [StepStatus.PENDING, StepStatus.SKIPPED])
def test_what_did_not_run_has_no_bar(status):
    now = datetime.now(UTC)
    assert timeline.Axis(now, now, now).position(StepView("s", status, started=now), 10) == (0, 0)


# --- tables ---------------------------------------------------------------------------------------


def summary_of(**changes):
    now = datetime.now(UTC)
    values = dict.fromkeys(RunSummary.__struct_fields__)
    values |= {
        "id": "0" * 26,
        "tenant": "acme",
        "pipeline": "report",
        "lane": "default",
        "state": "failed",
    }
    values |= {"attempts": 1, "attempt_limit": 5, "created": now, "duration": 1.0}
    return RunSummary(**(values | changes))


def drawn(renderable, width):
    out = io.StringIO()
    Console(file=out, width=width).print(renderable)
    return out.getvalue()


@pytest.mark.parametrize("width", [30, 60, 80, 200])
def test_ids_are_never_cut_however_narrow_the_terminal(width):
    run = summary_of(reason="a very long reason " * 20)
    assert run.id in drawn(run_table([run]), width)


def test_a_run_takes_one_line_however_long_its_reason():
    lines = drawn(run_table([summary_of(reason="a very long reason " * 20)]), 80).splitlines()
    assert len(lines) == 2
    assert lines[1].rstrip().endswith("…")


def test_when_nobody_looks_nothing_is_cut_off():
    reason = "a very long reason " * 20
    assert reason.strip() in drawn(run_table([summary_of(reason=reason)]), 10_000)


# --- exit codes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ConfigurationError("x"), 2),
        (errors.DefinitionError("x"), 2),
        (errors.InvalidInput("x"), 2),
        (errors.UnknownPipeline("x"), 7),
        (errors.NotFound("x"), 7),
        (errors.Conflict("x"), 6),
        (errors.LeaseLost("x"), 6),
        (errors.RunFailed("x", "run"), 5),
        (errors.RunCancelled("x"), 5),
        (errors.StoreUnavailable("x"), 1),
        (PermissionError("x"), 4),
        (ZeroDivisionError("x"), 1),
    ],
)
def test_each_kind_of_error_has_its_exit_code(error, code):
    assert code_for(error) == code


def test_exit_codes_are_the_documented_ones():
    assert {code.value for code in ExitCode} == {0, 1, 2, 3, 4, 5, 6, 7, 8, 130, 143}


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (InvalidInput("no such column"), False),
        (errors.ConfigurationError("no key is set"), True),
        (errors.Permanent("refused"), True),
        (errors.StepTimeout("too slow"), True),
        (ValueError("a bug"), True),
    ],
)
def test_the_same_command_is_suggested_unless_only_other_input_can_help(error, again):
    info = ErrorInfo(type(error).__name__, str(error))
    command = str(RunEnded.repeatable(summary_of(error=info)))
    assert f"failed: {info}" in command
    assert ("the same command tries again from there" in command) == again


# --- help -----------------------------------------------------------------------------------------


def commands():
    for name in all_commands():
        command = load_command(name)
        assert command is not None, name
        yield from verbs(name, command)


def verbs(name, command):
    children = getattr(command, "commands", None)
    if children is None:
        yield pytest.param(command, id=name)
        return
    for verb, child in children.items():
        yield from verbs(f"{name} {verb}", child)


@pytest.mark.parametrize("command", list(commands()))
def test_every_command_explains_itself_with_an_example_and_takes_the_global_options(command):
    text = command.get_help(click.Context(command, info_name=command.name))
    assert "Example" in text
    assert "holdfast" in text
    for option in ("--store", "--app", "--profile", "--json", "--debug", "--color"):
        assert option in text


def test_the_list_of_commands_names_those_there_are():
    """It is written down so that `--help` imports none of them."""
    assert root.list_commands(click.Context(root)) == list(all_commands())
    assert all(line.endswith(".") for line in all_commands().values())
