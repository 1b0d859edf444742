"""A job: which recording, for whom, and what is known about it. It is the message of both stages;
the first adds `metadata`."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator

LANGUAGE = r"^[a-z]{2}(-[A-Z]{2})?$"


class MediaResource(BaseModel):
    """Where the recording is: a URL, or a file of this host where that is allowed."""

    model_config = ConfigDict(extra="allow")

    url: str = ""
    path: str = ""

    @model_validator(mode="before")
    @classmethod
    def _unwrapped(cls, value: Any) -> Any:
        """`{"type": "youtube", "data": {"url": …}}` is the same with an envelope."""
        if isinstance(value, str):
            return {"url": value}
        if isinstance(value, dict) and isinstance(value.get("data"), dict):
            return {**value["data"], **{k: v for k, v in value.items() if k != "data"}}
        return value

    @model_validator(mode="after")
    def _named(self) -> MediaResource:
        if bool(self.url) == bool(self.path):
            raise ValueError("media needs a url or a path, and not both")
        return self

    @property
    def location(self) -> str:
        return self.url or self.path

    @property
    def id(self) -> str:
        return f"med_{sha256(self.location.encode()).hexdigest()[:24]}"


class TranscriptionContext(BaseModel):
    """What the caller knows beforehand."""

    model_config = ConfigDict(extra="allow")

    expectedSpeakers: list[Any] = []  # noqa: N815  (the message's word)
    contentHints: list[Any] = []  # noqa: N815


class MediaMetadata(BaseModel):
    """What the first stage finds out."""

    model_config = ConfigDict(extra="allow")

    mediaResourceId: str  # noqa: N815
    jobId: str  # noqa: N815
    title: str
    organization: str | None = None
    format: str = "lecture"
    summary: str | None = None
    tags: list[str] = []
    domain: list[str] = []
    speakers: list[dict[str, Any]] = [{"role": "host"}]
    speakerCount: int = Field(1, gt=0)  # noqa: N815
    language: str = Field("en", pattern=LANGUAGE)
    durationSec: float = Field(gt=0)  # noqa: N815
    links: list[str] = []
    container: str | None = None
    streams: list[dict[str, Any]] = []
    createdAt: str = ""  # noqa: N815


class TranscriptionJob(BaseModel):
    """A job on its way through both stages. Unknown fields are kept and passed on."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)

    id: str = Field("", validation_alias=AliasChoices("id", "jobId"))
    requestId: str | None = None  # noqa: N815
    media: MediaResource
    metadata: MediaMetadata | None = None
    transcriptionContext: TranscriptionContext | None = None  # noqa: N815
    idempotencyKey: str | None = None  # noqa: N815
    language: str | None = Field(None, pattern=LANGUAGE)
    transcriber: str = ""
    """Who transcribes, by name; empty: as the settings of the worker say."""

    @model_validator(mode="before")
    @classmethod
    def _from_request(cls, value: Any) -> Any:
        """`{"youtubeUrl": …}` is how the API is asked."""
        if isinstance(value, dict) and "youtubeUrl" in value and "media" not in value:
            rest = {name: item for name, item in value.items() if name != "youtubeUrl"}
            return {**rest, "media": {"url": value["youtubeUrl"]}}
        return value

    @model_validator(mode="after")
    def _identified(self) -> TranscriptionJob:
        """A job without an id is named after what makes it: the same request is the same job."""
        if not self.id:
            made_of = [self.media.location, self.requestId or "", self.idempotencyKey or ""]
            self.id = f"job_{sha256(chr(0).join(made_of).encode()).hexdigest()[:32]}"
        return self

    def enrich(self, metadata: MediaMetadata) -> TranscriptionJob:
        """The job as the second stage gets it."""
        return self.model_copy(update={"metadata": metadata})

    @property
    def spoken_language(self) -> str:
        """What the caller says, else what the recording says, else English."""
        return self.language or (self.metadata.language if self.metadata else None) or "en"
