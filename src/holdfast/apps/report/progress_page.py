"""What a browser shows while a report is made: its steps with real counts, anew every two seconds.
No script, so it works everywhere."""

from __future__ import annotations

from html import escape

from holdfast.model.duration import humanise
from holdfast.model.run import RunState, StepStatus
from holdfast.services.steps import StepView
from holdfast.services.views import RunView

REFRESH = 2
"""Seconds."""
NAMES = {
    "comments": "Reading the comments",
    "clustering": "Finding topics",
    "opinions": "Looking at the votes",
    "claims": "Finding claims",
    "sort_and_deduplicate": "Joining claims that say the same",
    "cruxes": "Looking for what divides people",
    "summaries": "Writing summaries",
    "report": "Making the report",
}
CLASSES = {StepStatus.COMPLETED: "done", StepStatus.IN_PROGRESS: "runs"}
STYLE = """
:root { color-scheme: light dark; font: 17px/1.5 system-ui, sans-serif; }
main { max-width: 36rem; margin: 12vh auto 0; padding: 0 1.2rem; }
h1 { font-size: 1.5rem; text-wrap: balance; }
ol { list-style: none; padding: 0; }
li { display: grid; grid-template-columns: 1.5rem 1fr auto; padding: .3rem 0; }
li::before { content: "·"; }
.waits { opacity: .6; }
.done::before { content: "✓"; }
.runs { font-weight: 600; }
.runs::before { content: "▸"; }
progress { width: 100%; height: .6rem; }
.error { color: light-dark(#a11, #f88); white-space: pre-wrap; }
"""


def progress_page(view: RunView) -> str:
    run = view.run
    request = view.input if isinstance(view.input, dict) else {}
    title = escape(str(request.get("title") or "Your report"))
    is_over = view.state in (RunState.FAILED, RunState.CANCELLED)
    refresh = "" if is_over else f'<meta http-equiv="refresh" content="{REFRESH}">'
    steps = "".join(map(_step, view.steps))
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">{refresh}
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title><style>{STYLE}</style></head>
<body><main><h1>{title}</h1><p role="status">{escape(_sentence(view))}</p>
{_bar(view)}<ol>{steps}</ol>{_error(view)}
<p><small>{escape(run.key or run.id)}</small></p></main></body></html>
"""


def _sentence(view: RunView) -> str:
    match view.state:
        case RunState.QUEUED:
            return "It waits for a worker; this page looks again by itself."
        case RunState.PAUSED:
            return f"It is paused: {view.run.reason or 'somebody will go on with it'}."
        case RunState.FAILED:
            return "It could not be made. What was done is kept."
        case RunState.CANCELLED:
            return "It was cancelled."
    left = [step.left for step in view.steps if step.left is not None]
    if left:
        return f"About {humanise(max(left))} left in this step."
    return "It is being made; this page looks again by itself."


def _bar(view: RunView) -> str:
    if view.state != RunState.RUNNING or not view.steps:
        return ""
    shares = [_share(step) for step in view.steps]
    return f'<progress max="1" value="{sum(shares) / len(shares):.3f}">…</progress>'


def _share(step: StepView) -> float:
    if step.status in (StepStatus.COMPLETED, StepStatus.SKIPPED):
        return 1.0
    return (step.done or 0) / step.total if step.total else 0.0


def _step(step: StepView) -> str:
    kind = CLASSES.get(step.status, "waits")
    counts = f"{step.done or 0:,} of {step.total:,}" if step.total else ""
    if step.status == StepStatus.SKIPPED:
        counts = "left out"
    name = escape(NAMES.get(step.name, step.name))
    return f'<li class="{kind}"><span>{name}</span><span>{counts}</span></li>'


def _error(view: RunView) -> str:
    return f'<p class="error">{escape(str(view.run.error))}</p>' if view.run.error else ""
