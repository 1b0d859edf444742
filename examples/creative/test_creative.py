"""cd examples/creative && python -m pytest"""

from __future__ import annotations

import asyncio
import shutil
from typing import Any

import pytest
from pipeline import ESPEAK, JobMessage, creative, storyboard

from holdfast import Holdfast
from holdfast.errors import RunFailed
from holdfast.testing import assert_crash_safe

JOB = JobMessage(
    job_id="job-1",
    user_id="ada@example.org",
    content="A <b>city</b> wakes up. Coffee smells!\x00 Trams ring in the fog.",
    metadata={"campaign": "spring"},
)


def made(job: JobMessage) -> tuple[dict, dict[str, bytes | None], list[str]]:
    async def story():
        async with Holdfast("memory:", [creative]) as app:
            run = await app.submit(creative, job)
            output = await run.result()
            payloads = app.runtime.payloads
            paths = {"video": output.video, "audio": output.audio}
            files = {name: await payloads.get(at) if at else None for name, at in paths.items()}
            steps = [
                event.data for event in await app.store.history(run.id) if "step" in event.type
            ]
            return output.model_dump(), files, steps

    return asyncio.run(story())


def test_content_becomes_a_storyboard():
    output, files, steps = made(JOB)
    assert output["metadata"] == {
        "preset": "quick_social",
        "quality": 1.0,
        "scenes": 3,
        "seconds": 7.4,
        "campaign": "spring",
    }
    page = (files["video"] or b"").decode()
    assert "<b>" not in page
    assert "Trams ring in the fog." in page
    names = ["INPUT_SANITIZED", "AGENTS_EXECUTED", "QA_TECH", "QA_SEMANTIC", "FINAL_APPROVAL"]
    assert all(any(f'"{name}"' in step for step in steps) for name in [*names, "DELIVERED"])


def test_content_is_narrated_where_espeak_is_installed(monkeypatch):
    _, files, _ = made(JOB)
    if shutil.which(ESPEAK):
        assert (files["audio"] or b"").startswith(b"RIFF")
    monkeypatch.setattr("pipeline.ESPEAK", "no-such-program")
    output, files, _ = made(JOB)
    assert (output["audio"], files["audio"]) == (None, None)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"preset": "none"}, "unknown preset 'none'"),
        ({"content": "<p> </p>"}, "nothing is left"),
        ({"content": "word " * 60 + ".", "preset": "premium_spot"}, "scene 1 is long"),
    ],
)
def test_what_is_not_good_enough_fails_and_says_why(change, reason):
    with pytest.raises(RunFailed, match=reason):
        made(JOB.model_copy(update=change))


def test_a_page_is_safe_whatever_the_text_says():
    assert "&lt;script&gt;" in storyboard("<script>", [])


def comparable(output: dict[str, Any]) -> dict[str, Any]:
    """What has to be the same whoever made it: an address begins with the attempt, and ends with
    the digest of the file."""
    files = {name: (output[name] or "").rpartition("/")[2] for name in ("audio", "video")}
    return output | files


def test_it_is_crash_safe():
    report = assert_crash_safe(creative, JOB, same_result=comparable)
    assert report.takeovers > 0
