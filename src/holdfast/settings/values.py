"""The settings as the rest of the program sees them: checked, typed, unchanging."""

from __future__ import annotations

from msgspec import Struct

from holdfast.model.event import EVENTS_TOPIC
from holdfast.model.leadership import Leaders
from holdfast.model.lease import LeaseTimes
from holdfast.model.options import PipelineOptions, Retention, WorkerOptions
from holdfast.model.receive import Receive

GOOGLE_CERTIFICATES = "https://www.googleapis.com/oauth2/v3/certs"
DEFAULT_STORE = "sqlite:///holdfast.db"
_WORKER = WorkerOptions()


class Pool(Struct, frozen=True):
    """How a process shares its connections to a server; None is what the adapter finds right."""

    size: int | None = None


class Timeouts(Struct, frozen=True):
    """How long a server may take, in seconds; None is what the adapter finds right."""

    connect: float | None = None
    command: float | None = None


class Events(Struct, frozen=True):
    """Where events are published."""

    topic: str = EVENTS_TOPIC


class Logs(Struct, frozen=True):
    """How the program's own log reads; it goes to standard error."""

    level: str = "info"
    format: str = "auto"
    """`auto` is text, and json on Cloud Run."""


class Http(Struct, frozen=True):
    """Where `holdfast serve` listens, and what it accepts."""

    host: str = "127.0.0.1"
    port: int = 8080
    max_body: int = 16 * 1024 * 1024
    """Bytes of a request's body."""
    rate: int = 500
    """Requests a second of one tenant, in each process; 0: no limit."""


class Locks(Struct, frozen=True):
    """Pipeline locks, as `holdfast.apps.compat` has them. Durations are seconds."""

    timeout: float = 3600.0
    renew: float | None = None
    """None: a lock is not renewed, and ends under a live holder."""
    app: str | None = None
    store: str | None = None
    """None: in the store of the runs."""
    retries: int = 0
    retry_delay: float = 5.0
    metrics: bool = True
    alert_threshold: float = 0.8


class Traces(Struct, frozen=True):
    """Where spans go."""

    exporter: str | None = None
    """None: `otlp` if there is an endpoint, else none."""
    endpoint: str | None = None
    service: str = "holdfast"
    parent_from_message: bool = False


class MetricsSettings(Struct, frozen=True):
    """What metrics say."""

    tenant_label: bool = True
    llm_budget: float | None = None
    """US dollars in 30 days; None: no limit."""


class Jobs(Struct, frozen=True):
    """Where the projections of `holdfast.apps.compat` about jobs are published."""

    results_topic: str = "aiprod-pipeline-results"
    dead_letter_topic: str = "aiprod-pipeline-dlq"
    events_topic: str = "job-events"
    pipeline: str = "creative"


class Compat(Struct, frozen=True):
    """What the routes of earlier systems say."""

    completed_word: str = "COMPLETE"
    stale_after: float = 900.0


class Webhooks(Struct, frozen=True):
    """How events are posted to other people's endpoints."""

    key: str | None = None
    allow: tuple[str, ...] = ()


class PubSub(Struct, frozen=True):
    """Topics and subscriptions of Google Cloud Pub/Sub, for those who name them one by one. What
    `receive` says comes first."""

    project: str | None = None
    topic: str = "aiprod-pipeline-jobs"
    subscription: str | None = None
    """None: the topic's name and `-sub`."""
    work_topic: str | None = None
    metadata_subscription: str = "worker-metadata"
    transcription_subscription: str = "worker-transcription"

    @property
    def topic_subscription(self) -> str:
        return self.subscription or f"{self.topic}-sub"


class Transcription(Struct, frozen=True):
    """How recordings are fetched and understood."""

    transcriber: str = "moonshine"
    hosts: tuple[str, ...] = ()
    """None: any public host."""
    folder: str | None = None
    """None: jobs may name no files of the worker's host."""
    max_bytes: int = 2 * 1024**3
    max_seconds: float = 1800.0


class Push(Struct, frozen=True):
    """How Pub/Sub pushes messages, and whose pushes are believed."""

    endpoint: str | None = None
    audience: str | None = None
    service_account: tuple[str, ...] = ()
    certificates: str = GOOGLE_CERTIFICATES


class Settings(Struct, frozen=True):
    """What `load` answers. Durations are seconds, sizes are bytes."""

    store: str = DEFAULT_STORE
    blobs: str | None = None
    bus: str = "none"
    documents: str | None = None
    projections: tuple[str, ...] = ()
    events: Events = Events()
    llm: str = "local:"
    app: tuple[str, ...] = ()
    tenant: str = "default"
    url: str | None = None
    api_key: str | None = None
    concurrency: int = _WORKER.concurrency
    max_bytes: int = _WORKER.max_bytes
    grace: float = _WORKER.grace
    lease: LeaseTimes = LeaseTimes()
    leader: Leaders = Leaders()
    locks: Locks = Locks()
    metrics: MetricsSettings = MetricsSettings()
    traces: Traces = Traces()
    http: Http = Http()
    retention: Retention = Retention()
    pool: Pool = Pool()
    timeout: Timeouts = Timeouts()
    log: Logs = Logs()
    jobs: Jobs = Jobs()
    transcription: Transcription = Transcription()
    compat: Compat = Compat()
    webhooks: Webhooks = Webhooks()
    pubsub: PubSub = PubSub()
    push: Push = Push()
    pipeline: PipelineOptions = PipelineOptions()
    pipelines: dict[str, PipelineOptions] = {}
    receive: tuple[Receive, ...] = ()
    profile: str | None = None
