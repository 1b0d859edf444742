"""A creative job: content and a preset in, a storyboard and a narrated sound file out.

    holdfast --app examples/creative/pipeline.py run creative \\
        --input job_id=job-1 --input content="A city wakes up. Coffee smells. Trams ring."

    INPUT_SANITIZED ─► AGENTS_EXECUTED ─► QA_TECH ─► QA_SEMANTIC ─► FINAL_APPROVAL ─► DELIVERED

Every scene that the agents make is a checkpoint of its own. The sound file is made where espeak-ng
is installed."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import unicodedata
from hashlib import sha256
from itertools import accumulate
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from holdfast import BlockingContext, Context, Permanent, Pipeline

PRESETS = {"quick_social": 0.6, "brand_campaign": 0.8, "premium_spot": 0.9}
"""The quality that a preset asks for, from 0 to 1."""
MAX_SCENES = 24
ESPEAK = "espeak-ng"


class JobMessage(BaseModel):
    """A job as other systems publish it."""

    model_config = ConfigDict(frozen=True)

    job_id: str = Field(min_length=1)
    user_id: str = ""
    content: str = Field(min_length=1, max_length=20_000)
    preset: str = "quick_social"
    metadata: dict[str, Any] = Field(default_factory=dict)


class Brief(BaseModel):
    """The content as it is safe to work with."""

    sentences: list[str]
    removed: int
    """Characters that were taken out: markup and what can't be printed."""


class Scene(BaseModel):
    number: int
    text: str
    colour: str
    seconds: float


class Scenes(BaseModel):
    scenes: list[Scene]


class Score(BaseModel):
    score: float
    notes: list[str]


class Output(BaseModel):
    """What the job delivers. `video` is the storyboard page, `audio` the narration."""

    audio: str | None
    video: str
    metadata: dict[str, Any]


creative: Pipeline[JobMessage] = Pipeline(
    "creative",
    input=JobMessage,
    key=lambda job: job.job_id,
    labels=lambda job: {"user_id": job.user_id, "preset": job.preset} if job.user_id else {},
)


@creative.step(name="INPUT_SANITIZED")
def sanitize(request: JobMessage) -> Brief:
    """Plain sentences: no markup, nothing that can't be printed."""
    if request.preset not in PRESETS:
        raise Permanent(f"unknown preset {request.preset!r}; known: {', '.join(PRESETS)}")
    text = unicodedata.normalize("NFC", re.sub(r"<[^>]*>", " ", request.content))
    text = "".join(c if c.isprintable() else " " for c in text)
    sentences = [part.strip() for part in re.split(r"(?<=[.!?…。])\s+", text) if part.strip()]
    cleaned = [" ".join(sentence.split()) for sentence in sentences][:MAX_SCENES]
    if not cleaned:
        raise Permanent("nothing is left of the content: send at least one sentence")
    return Brief(sentences=cleaned, removed=max(0, len(request.content) - sum(map(len, cleaned))))


@creative.step(name="AGENTS_EXECUTED")
async def agents(INPUT_SANITIZED: Brief, ctx: Context) -> Scenes:  # noqa: N803  (the step's name)
    """A scene for every sentence."""
    numbered = list(enumerate(INPUT_SANITIZED.sentences, 1))
    scenes = await ctx.map(design, numbered, key=lambda pair: str(pair[0]))
    return Scenes(scenes=scenes)


def design(pair: tuple[int, str]) -> Scene:
    """How long a sentence takes to be said, and a colour of its own."""
    number, text = pair
    hue = int(sha256(text.encode()).hexdigest()[:4], 16) % 360
    return Scene(
        number=number,
        text=text,
        colour=f"hsl({hue} 60% 28%)",
        seconds=round(1.0 + len(text.split()) / 2.5, 1),
    )


@creative.step(name="QA_TECH")
def qa_tech(AGENTS_EXECUTED: Scenes) -> Score:  # noqa: N803
    """Whether it can be shown: no scene too short or too long."""
    long = [scene.number for scene in AGENTS_EXECUTED.scenes if scene.seconds > 20]
    share = 1 - len(long) / len(AGENTS_EXECUTED.scenes)
    return Score(score=round(share, 2), notes=[f"scene {number} is long" for number in long])


@creative.step(name="QA_SEMANTIC")
def qa_semantic(request: JobMessage, AGENTS_EXECUTED: Scenes) -> Score:  # noqa: N803
    """Whether it says what was asked for: the words of the content are in the scenes."""
    words = set(re.findall(r"\w+", re.sub(r"<[^>]*>", " ", request.content).lower()))
    executed_words = set(
        re.findall(r"\w+", " ".join(s.text for s in AGENTS_EXECUTED.scenes).lower())
    )
    missing = sorted(words - executed_words)
    score = 1 - len(missing) / len(words) if words else 0.0
    return Score(score=round(score, 2), notes=[f"{len(missing)} words are missing"][: len(missing)])


@creative.step(name="FINAL_APPROVAL")
def approve(request: JobMessage, QA_TECH: Score, QA_SEMANTIC: Score) -> float:  # noqa: N803
    """Good enough for the preset, or the job fails and says why."""
    quality = min(QA_TECH.score, QA_SEMANTIC.score)
    preset = PRESETS[request.preset]
    if quality < preset:
        notes = "; ".join([*QA_TECH.notes, *QA_SEMANTIC.notes]) or "no notes"
        raise Permanent(f"quality {quality} is below {preset} of {request.preset}: {notes}")
    return quality


@creative.step(name="DELIVERED")
def deliver(
    request: JobMessage,
    AGENTS_EXECUTED: Scenes,  # noqa: N803
    FINAL_APPROVAL: float,  # noqa: N803
    ctx: BlockingContext,
) -> Output:
    """The storyboard and, where espeak-ng is installed, the narration."""
    scenes = AGENTS_EXECUTED.scenes
    sound = narration(" ".join(scene.text for scene in scenes))
    return Output(
        audio=ctx.artifact("narration.wav", sound) if sound else None,
        video=ctx.artifact("storyboard.html", storyboard(request.job_id, scenes).encode()),
        metadata={
            **request.metadata,
            "preset": request.preset,
            "quality": FINAL_APPROVAL,
            "scenes": len(scenes),
            "seconds": round(sum(scene.seconds for scene in scenes), 1),
        },
    )


def narration(text: str) -> bytes | None:
    if shutil.which(ESPEAK) is None:
        return None
    spoken = subprocess.run(
        [ESPEAK, "--stdout", "-s", "150", "--stdin"],
        input=text.encode(),
        capture_output=True,
        timeout=120,
    )
    return spoken.stdout if spoken.returncode == 0 and spoken.stdout else None


STYLE = """
body { font: 16px/1.4 system-ui, sans-serif; max-width: 66em; margin: 2em auto; padding: 0 1em }
ol { display: grid; grid-template-columns: repeat(auto-fill, minmax(16em, 1fr)); gap: 1.5em;
     padding: 0; list-style: none }
.frame { aspect-ratio: 16 / 9; display: grid; place-items: center; padding: 1em; color: white;
         font-size: 1.3em; text-align: center }
time { color: #555 }
"""


def storyboard(title: str, scenes: list[Scene]) -> str:
    """A page without scripts: a frame for every scene, and when it begins."""
    begins = accumulate((scene.seconds for scene in scenes), initial=0.0)
    frames = "\n".join(
        f'<li><div class="frame" style="background: {scene.colour}">{html.escape(scene.text)}</div>'
        f"Scene {scene.number}, <time>{begin:.1f} to {begin + scene.seconds:.1f} s</time></li>"
        for scene, begin in zip(scenes, begins, strict=False)
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{html.escape(title)}: storyboard</title><style>{STYLE}</style>\n"
        f"<h1>Storyboard of {html.escape(title)}</h1>\n<ol>\n{frames}\n</ol></html>"
    )
