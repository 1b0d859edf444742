"""Progress on stderr: a live page on a terminal, one line for each change anywhere else."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from holdfast.cli.output import Output
from holdfast.model.duration import humanise
from holdfast.model.run import StepStatus
from holdfast.services.steps import StepView
from holdfast.services.views import RunView


class RunProgress(Protocol):
    def show(self, view: RunView) -> None: ...


def progress_on(out: Output) -> AbstractContextManager[RunProgress]:
    """What suits the place where stderr goes to."""
    return (
        LivePage(out)
        if out.errors.is_terminal and not out.errors.is_dumb_terminal
        else RunLines(out)
    )


class LivePage:
    """Redraws the steps in place; what was drawn last stays."""

    def __init__(self, out: Output) -> None:
        from rich.live import Live

        self._console = out.errors
        self._live = Live(console=self._console, refresh_per_second=8)

    def __enter__(self) -> LivePage:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, view: RunView) -> None:
        from holdfast.cli.render.steps import step_bars

        self._live.update(step_bars(view, self._console.width))


class RunLines:
    """One line for each change of the run or of a step."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._state = ""
        self._steps: dict[str, str] = {}

    def __enter__(self) -> RunLines:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def show(self, view: RunView) -> None:
        """What happens inside a running run comes after its start and before its end."""
        if view.run.state == "running":
            self._show_state(view)
        for step in view.steps:
            self._show_step(step)
        self._show_state(view)

    def _show_state(self, view: RunView) -> None:
        state = _state_line(view)
        if state != self._state:
            self._state = state
            self._out.note(f"{view.run.id} {state}")

    def _show_step(self, step: StepView) -> None:
        word = "reused" if step.reused else str(step.status)
        if word == self._steps.get(step.name, StepStatus.PENDING):
            return
        self._steps[step.name] = word
        duration = f" in {humanise(step.duration or 0)}" if word == StepStatus.COMPLETED else ""
        error = step.error if step.status == StepStatus.FAILED else None
        reason = f": {error.name}: {error.message}" if error else ""
        self._out.note(f"  {step.name} {word.replace('_', ' ')}{duration}{reason}")


def _state_line(view: RunView) -> str:
    run = view.run
    if run.state == "running":
        return f"running (try {run.attempts} of {run.attempt_limit})"
    reason = str(run.error) if run.error else run.reason
    return f"{run.state}: {reason}" if reason else run.state
