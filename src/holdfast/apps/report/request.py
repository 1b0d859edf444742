"""What a report is asked with: a file (or rows), and how it should be read and analysed."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from holdfast.apps.report.model.brief import PROMPTS, Brief, GivenTopic
from holdfast.apps.report.time_limits import time_limit_for


class Upload(BaseModel):
    """A file in the blob store, in parts, so that nobody ever has to hold all of it."""

    model_config = ConfigDict(frozen=True)

    filename: str
    sha256: str
    bytes: int
    parts: tuple[str, ...]


NO_PART_OF_THE_QUESTION = ("report_id", "budget", "fresh", "labels", "ignored")


class ReviewedSubtopic(BaseModel):
    """A subtopic as people left it, and the subtopics that it was made of."""

    model_config = ConfigDict(frozen=True)

    ids: tuple[str, ...]
    name: str = Field(min_length=1, max_length=200)
    description: str = ""


class ReviewedTopic(BaseModel):
    model_config = ConfigDict(frozen=True)

    name: str = Field(min_length=1, max_length=200)
    description: str = ""
    subtopics: tuple[ReviewedSubtopic, ...]
    question: str = ""


class ReportRequest(BaseModel):
    """The input of the pipeline `report`. The job message of the earlier report
    worker is understood as well."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: Upload | None = None
    rows: tuple[dict[str, Any], ...] | None = Field(
        None, description="Comments given directly, one object each."
    )
    votes: Upload | None = Field(
        None, description="Who voted how on which comment, in the shape of a Polis export."
    )
    report_id: str = Field(
        "", description="Your own name for this report; without it the content is the name."
    )
    title: str = ""
    question: str = Field("", description="What people were asked.")
    description: str = ""
    language: str = Field(
        "", description="Of the report (BCP 47); empty: the language of most comments."
    )
    model: str = Field(
        "local:",
        description="Who analyses: local:, local:minilm, openai:MODEL, anthropic:MODEL, "
        "google:MODEL.",
    )
    reviewer: str = Field(
        "", description="A second model that reviews names and findings; empty: none."
    )
    budget: float | None = Field(
        None, gt=0, description="US dollars; before more is spent the run pauses."
    )
    cruxes: bool = False
    sort: Literal["people", "claims"] = "people"
    topics: int = Field(0, ge=0, le=50, description="How many; 0: as many as fit.")
    given_topics: tuple[GivenTopic, ...] = ()
    prompts: dict[str, str] = Field(
        default_factory=dict, description="Replacements for our prompts, by name."
    )
    mask: bool = Field(
        False, description="Mask e-mail addresses, phone numbers and the like in the comments."
    )
    columns: dict[str, str] = Field(
        default_factory=dict, description="Role → column, where names do not tell."
    )
    questions: tuple[str, ...] = Field(
        (), description="Columns that each hold the answers to one question."
    )
    max_characters: int = Field(10_000, ge=1)
    max_comments: int = Field(50_000, ge=1)
    keep_moderated: bool = False
    review: bool = Field(
        False, description="Pause when there are topics, until people have reviewed them."
    )
    reviewed: tuple[ReviewedTopic, ...] = Field(
        (), description="The topics as people left them; claims are looked for in these."
    )
    labels: dict[str, str] = Field(
        default_factory=dict, description="What the report's run can be found by: whose it is."
    )
    ignored: tuple[str, ...] = Field(
        (), description="What a job message asked for that has no effect here, and why."
    )
    fresh: bool = Field(False, description="Ask the model again although the answers are known.")

    @model_validator(mode="before")
    @classmethod
    def _understand_job_messages(cls, value: Any) -> Any:
        if isinstance(value, dict) and "config" in value and "data" in value:
            return from_job_message(value)
        return value

    @model_validator(mode="after")
    def _check(self) -> ReportRequest:
        if (self.file is None) == (self.rows is None):
            raise ValueError("give either a file or rows with comments, and not both")
        if self.reviewer.partition(":")[0] == "local":
            raise ValueError("the reviewer has to be a language model, for example openai:MODEL")
        unknown = sorted(set(self.prompts) - set(PROMPTS))
        if unknown:
            raise ValueError(f"there is no prompt {unknown[0]!r}; known: {', '.join(PROMPTS)}")
        return self

    @property
    def key(self) -> str:
        """The idempotency key: the same question finds the report that is there."""
        if self.report_id and self.reviewed:  # the one without is the run that paused
            return f"{self.report_id}:{self.digest}"
        return self.report_id or f"report:{self.digest}"

    @property
    def digest(self) -> str:
        """Of everything that decides what the report says: the same for the same content and
        wishes."""
        fields = self.model_dump(mode="json", exclude=set(NO_PART_OF_THE_QUESTION))
        for name in ("file", "votes"):  # where the bytes are kept says nothing about them
            if fields[name]:
                fields[name].pop("parts")
        import msgspec

        return sha256(msgspec.json.encode(fields, order="deterministic")).hexdigest()[:16]

    def brief(self, language: str) -> Brief:
        """What analysts are given; `language` is that of most comments."""
        return Brief(
            title=self.title,
            question=self.question,
            description=self.description,
            language=self.language or ("en" if language == "und" else language),
            topics=self.topics,
            given=self.given_topics,
            prompts=self.prompts,
            reviewer=self.reviewer,
            budget=self.budget,
            fresh=self.fresh,
        )


INSTRUCTIONS = {
    "systemInstructions": "system",
    "clusteringInstructions": "clustering",
    "extractionInstructions": "extraction",
    "dedupInstructions": "dedup",
    "summariesInstructions": "summaries",
    "cruxInstructions": "crux",
}
"""The job message's names for the prompts, and ours."""

LANGUAGES = {
    "english": "en", "french": "fr", "german": "de", "spanish": "es", "italian": "it",
    "portuguese": "pt", "dutch": "nl", "japanese": "ja", "korean": "ko", "chinese": "zh",
    "mandarin chinese": "zh", "arabic": "ar", "hindi": "hi", "russian": "ru", "ukrainian": "uk",
    "swahili": "sw", "turkish": "tr",
}  # fmt: skip
"""Job messages name output languages in English."""

VENDORS = {
    "gpt": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "claude": "anthropic",
    "gemini": "google",
}


def from_job_message(job: dict[str, Any]) -> dict[str, Any]:
    """A job message `{config, data, reportDetails}` as fields of a request."""
    config, details = job.get("config") or {}, job.get("reportDetails") or {}
    options, instructions = config.get("options") or {}, config.get("instructions") or {}
    data = job["data"]
    rows = data[1] if isinstance(data, list) and len(data) == 2 and data[0] == "csv" else data
    return {
        "rows": rows,
        "report_id": (config.get("firebaseDetails") or {}).get("reportId", ""),
        "title": details.get("title", ""),
        "description": details.get("description", ""),
        "question": details.get("question", ""),
        "language": _language(instructions.get("outputLanguage") or ""),
        "model": _model((config.get("llm") or {}).get("model") or ""),
        "cruxes": bool(options.get("cruxes", False)),
        "labels": _labels(job, config),
        "ignored": _ignored(options, details),
        "sort": "claims" if options.get("sortStrategy") == "numClaims" else "people",
        "prompts": {
            ours: instructions[theirs]
            for theirs, ours in INSTRUCTIONS.items()
            if instructions.get(theirs)
        },
    }


WHO_ASKED = ("userId", "requestId")
"""Fields of a job message that say who asked; they become labels."""


def _labels(job: dict[str, Any], config: dict[str, Any]) -> dict[str, str]:
    containers = (job, config, config.get("firebaseDetails") or {})
    labels: dict[str, Any] = {
        name: container.get(name)
        for name in WHO_ASKED
        for container in containers
        if container.get(name)
    }
    return {name: value for name, value in labels.items() if _is_label(value)}


def _is_label(value: Any) -> bool:
    return isinstance(value, str) and value.isprintable() and 0 < len(value) < 256


def _ignored(options: dict[str, Any], details: dict[str, Any]) -> list[str]:
    """Wishes that can't be met are said, not dropped in silence."""
    reasons = {
        "options.bridging": (options.get("bridging"), "quotes are not rated for bridging"),
        "options.evaluations": (options.get("evaluations"), "there is no evaluation service"),
        "reportDetails.filename": (details.get("filename"), "files are named after what they hold"),
    }
    return [f"{name} has no effect: {why}" for name, (given, why) in reasons.items() if given]


BYTES_PER_COMMENT = 100


def time_limit(request: ReportRequest) -> float:
    """Seconds that an attempt may take."""
    count = len(request.rows) if request.rows is not None else 0
    if request.file is not None:
        count = min(request.file.bytes // BYTES_PER_COMMENT, request.max_comments)
    return time_limit_for(count, request.model)


def _language(name: str) -> str:
    return LANGUAGES.get(name.strip().lower(), name)


def _model(name: str) -> str:
    """A bare model name, as job messages give it, with its vendor in front."""
    if not name:
        return "local:"
    vendor = next((vendor for start, vendor in VENDORS.items() if name.startswith(start)), None)
    return f"{vendor}:{name}" if vendor and ":" not in name else name
