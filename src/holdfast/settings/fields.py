"""The table of settings: name, meaning, how it is read, and the other names it is known by."""

from __future__ import annotations

from typing import Any, NamedTuple

from holdfast.settings.parsing import (
    Parser,
    choice,
    connections,
    count,
    dollars,
    duration,
    exact_choice,
    gcs_bucket,
    lane_leaders,
    lock_timeout,
    milliseconds,
    pipeline_options,
    port,
    ratio,
    receives,
    secret_key,
    server_timeout,
    size,
    switch,
    text,
    texts,
    whole,
    word,
)
from holdfast.settings.values import Settings

PREFIX = "HOLDFAST_"


class Alias(NamedTuple):
    """Another name of a setting in the environment, whose value is written in another unit."""

    name: str
    parse: Parser


class Field(NamedTuple):
    """One setting. In TOML `lease.ttl` is `ttl` in the table `[lease]`."""

    name: str
    help: str
    parse: Parser = text
    aliases: tuple[str | Alias, ...] = ()
    is_secret: bool = False
    """Whether it is shown as stars."""
    is_path: bool = False
    """Whether a relative path in it belongs to the folder of the file that it was read from."""

    @property
    def environment(self) -> str:
        return PREFIX + self.name.replace(".", "_").upper()

    @property
    def names(self) -> tuple[str, ...]:
        """Its names in the environment; the first that is set wins."""
        names = (alias if isinstance(alias, str) else alias.name for alias in self.aliases)
        return (self.environment, *names)

    def parser(self, name: str) -> Parser:
        """How a value is read that was given under one of the names."""
        for alias in self.aliases:
            if isinstance(alias, Alias) and alias.name == name:
                return alias.parse
        return self.parse

    @property
    def default(self) -> Any:
        value: Any = Settings()
        for part in self.name.split("."):
            value = getattr(value, part)
        return value


FIELDS: tuple[Field, ...] = (
    Field(
        "store",
        "Where runs, checkpoints, events and locks live: sqlite:///file.db, "
        "postgresql://host/database, "
        "redis://host:6379/0, or memory: for tests.",
        aliases=("DATABASE_URL", "REDIS_URL", "REDIS_HOST"),
        is_path=True,
    ),
    Field(
        "blobs",
        "Where large values and artifacts live: file:./folder, gs://bucket, s3://bucket or "
        "memory:. Default: beside the store.",
        aliases=(
            Alias("GCS_BUCKET_NAME", gcs_bucket),
            Alias("STORAGE_BUCKET_NAME", gcs_bucket),
            Alias("GCLOUD_STORAGE_BUCKET", gcs_bucket),
        ),
        is_path=True,
    ),
    Field(
        "bus",
        "Messages from and to other systems: none, redis://host:6379/0, pubsub://project or "
        "memory:.",
    ),
    Field(
        "documents",
        "Where documents that other systems read are written: none, redis://host:6379/0, "
        "gs://bucket, s3://bucket, firestore://project, file:./folder, or memory: for tests. "
        "Default: the store, if that is Redis.",
        is_path=True,
    ),
    Field(
        "projections",
        "Projections of apps that this process runs, besides those that its pipelines declare: "
        "state_documents writes the state of every run to `documents`. In the environment "
        "separated by commas.",
        texts,
    ),
    Field("events.topic", "The topic of the bus that all events are published to."),
    Field(
        "llm",
        "The language model that steps ask, and that analyses comments for reports: openai:MODEL, "
        "anthropic:MODEL, google:MODEL, or openai:MODEL?base_url=… for any server that speaks "
        "OpenAI's protocol. local: is none: reports are made offline.",
    ),
    Field(
        "app",
        "Where pipelines are found: module:attribute or file.py:attribute; a Pipeline, a list or "
        "dict of "
        "them, or a Holdfast; without an attribute all of a module. In the environment separated "
        "by commas.",
        texts,
        is_path=True,
    ),
    Field(
        "url",
        "The service that commands ask instead of opening a store, for example "
        "https://holdfast.example.org.",
    ),
    Field("api_key", "The API key that commands ask it with.", is_secret=True),
    Field("tenant", "The tenant of runs that are started without --tenant."),
    Field("concurrency", "Runs that one worker has in flight at once.", count),
    Field(
        "max_bytes",
        "Sum of the inputs' sizes that one worker has in flight, for example 500MiB.",
        size,
    ),
    Field("grace", "How long steps under way may go on after a worker was told to stop.", duration),
    Field("http.host", "The address that `holdfast serve` listens on."),
    Field(
        "http.port",
        "The port that `holdfast serve` listens on; 0 takes a free one.",
        port,
        aliases=("PORT",),
    ),
    Field("http.max_body", "The largest body of a request that is read, for example 64MiB.", size),
    Field("http.rate", "Requests a second of one tenant, in each process; 0: no limit.", whole),
    Field("lease.ttl", "How long a lease lasts when it is not renewed.", duration),
    Field("lease.renew", "How often leases are renewed.", duration),
    Field("lease.margin", "How long before its end a lease is no longer trusted.", duration),
    Field("lease.sweep", "How often the runs of vanished workers are looked for.", duration),
    Field(
        "leader.key",
        "What the leadership of a fifo lane is called in the log and in `locks list`; {lane} "
        "stands for the lane's name.",
        aliases=("COMPUTE_QUEUE_LEADER_KEY",),
    ),
    Field(
        "leader.ttl",
        "How long the leadership of a fifo lane lasts when it is not renewed. Default: lease.ttl.",
        duration,
        aliases=(Alias("COMPUTE_QUEUE_LEADER_TTL_MS", milliseconds),),
    ),
    Field(
        "leader.renew",
        "How often the leadership of a fifo lane is renewed. Default: lease.renew.",
        duration,
        aliases=(Alias("COMPUTE_QUEUE_LEADER_RENEW_MS", milliseconds),),
    ),
    Field(
        "leader.lanes",
        "The same for one lane: a table with key, ttl and renew for each.",
        lane_leaders,
    ),
    Field(
        "locks.timeout",
        "How long a pipeline lock of `holdfast.apps.compat` lasts, from 60s to 24h.",
        lock_timeout,
        aliases=("HOLDFAST_PIPELINE_LOCK_TIMEOUT_SECONDS", "PIPELINE_LOCK_TIMEOUT_SECONDS"),
    ),
    Field(
        "locks.renew",
        "How often a pipeline lock is renewed while its holder lives. Default: never, it ends "
        "under a live holder.",
        duration,
    ),
    Field(
        "locks.app",
        "The name of the program whose processes must not hold pipeline locks in memory at once. "
        "Default: what was started, and in which folder.",
    ),
    Field(
        "locks.store",
        "Where pipeline locks live: any store, or firestore://project, which keeps no runs. "
        "Default: the store.",
        is_path=True,
    ),
    Field(
        "locks.retries",
        "How often a pipeline lock that is taken is tried again before the answer is no.",
        whole,
        aliases=("HOLDFAST_LOCK_ACQUISITION_RETRIES", "LOCK_ACQUISITION_RETRIES"),
    ),
    Field(
        "locks.retry_delay",
        "The time between two such tries.",
        duration,
        aliases=(
            "HOLDFAST_LOCK_ACQUISITION_RETRY_DELAY_SECONDS",
            "LOCK_ACQUISITION_RETRY_DELAY_SECONDS",
        ),
    ),
    Field(
        "locks.metrics",
        "Whether acquisitions of pipeline locks are counted, where prometheus-client is installed.",
        switch,
        aliases=("HOLDFAST_LOCK_METRICS_ENABLED", "LOCK_METRICS_ENABLED"),
    ),
    Field(
        "locks.alert_threshold",
        "The part of its timeout after which a pipeline lock is about to expire: for the alert.",
        ratio,
        aliases=(
            "HOLDFAST_LOCK_EXPIRATION_ALERT_THRESHOLD",
            "LOCK_EXPIRATION_ALERT_THRESHOLD",
        ),
    ),
    Field(
        "metrics.tenant_label",
        "Whether metrics name tenants: the first 1,000 of a process, the others are `other`.",
        switch,
    ),
    Field(
        "metrics.llm_budget",
        "US dollars that language models may cost in 30 days: for the alerts. Default: no limit.",
        dollars,
    ),
    Field(
        "traces.exporter",
        "Where spans go: otlp, console, none, or another exporter of OpenTelemetry. Default: otlp "
        "if there is an endpoint, else none.",
        word,
        aliases=("OTEL_TRACES_EXPORTER",),
    ),
    Field(
        "traces.endpoint",
        "The address of the collector of OpenTelemetry.",
        aliases=("OTEL_EXPORTER_OTLP_ENDPOINT",),
    ),
    Field(
        "traces.service",
        "What traces call this program.",
        aliases=("OTEL_SERVICE_NAME",),
    ),
    Field(
        "traces.parent_from_message",
        "Whether the span of a message is below that of its producer, rather than linked to it.",
        switch,
    ),
    Field(
        "retention.finished",
        "How long succeeded and cancelled runs are kept, and answers of language models.",
        duration,
    ),
    Field("retention.failed", "How long failed runs and open dead letters are kept.", duration),
    Field(
        "pool.size",
        "Connections that a process keeps to the server of its store or bus, unless the URL says "
        "pool=. Default: 4 to "
        "PostgreSQL, 2 to Redis.",
        connections,
    ),
    Field(
        "timeout.connect",
        "How long connecting to a server may take, unless the URL says connect=. Default: as "
        "timeout.command.",
        server_timeout,
    ),
    Field(
        "timeout.command",
        "How long a server may take to answer before it counts as away, unless the URL says "
        "timeout=. Default: 10s for "
        "PostgreSQL, 5s for Redis.",
        server_timeout,
    ),
    Field(
        "log.level",
        "What the program logs: debug, info, warning or error.",
        choice(
            "debug",
            "info",
            "warning",
            "error",
            also={"warn": "warning", "critical": "error", "fatal": "error"},
        ),
        aliases=("LOG_LEVEL",),
    ),
    Field(
        "log.format",
        "How log lines look: text, json, or a format that an app brings, such as trace. Default: "
        "text, and json on Cloud Run.",
        word,
        aliases=("LOG_FORMAT",),
    ),
    Field(
        "pipeline.timeout",
        "How long an attempt of a run may take, for all pipelines. Default: as their code says.",
        duration,
        aliases=(Alias("PIPELINE_TIMEOUT_MS", milliseconds),),
    ),
    Field(
        "pipeline.max_attempts",
        "How often a run is tried before it fails. Default: as the pipeline's code says.",
        count,
    ),
    Field(
        "pipeline.backoff",
        "How long before a step is tried again for the first time; it doubles from then on. "
        "Default: as the step's code says.",
        duration,
    ),
    Field(
        "pipeline.max_validation_failures",
        "How many stored results of one step may turn out bad before the run fails. Default: 3.",
        count,
        aliases=("MAX_VALIDATION_FAILURES",),
    ),
    Field(
        "pipelines",
        "The same for one pipeline: a table with timeout, max_attempts, backoff and "
        "max_validation_failures for each.",
        pipeline_options,
    ),
    Field(
        "webhooks.key",
        "What the signatures of webhooks are made from: a secret of at least 24 characters, the "
        "same in every process. Without one nothing is delivered.",
        secret_key,
        is_secret=True,
    ),
    Field(
        "webhooks.allow",
        "Hosts that webhooks may lead to although their addresses are not public, or over plain "
        "http. In the environment separated by commas.",
        texts,
    ),
    Field(
        "compat.completed_word",
        "What GET /pipelines/runs calls a run that succeeded: COMPLETE or COMPLETED.",
        exact_choice("COMPLETE", "COMPLETED"),
    ),
    Field(
        "compat.stale_after",
        "From which age on GET /api/v1/queue-status counts a job under way as stale.",
        duration,
        aliases=(Alias("COMPUTE_QUEUE_STALE_THRESHOLD_MS", milliseconds),),
    ),
    Field("jobs.pipeline", "The pipeline that POST /pipeline/run starts."),
    Field("jobs.results_topic", "Where the projection job_results publishes."),
    Field("jobs.dead_letter_topic", "Where the projection job_dead_letters publishes."),
    Field(
        "jobs.events_topic",
        "Where the projection job_events publishes.",
        aliases=("PUBSUB_TOPIC_EVENTS",),
    ),
    Field(
        "transcription.transcriber",
        "Who understands recordings: moonshine (offline, English), gemini, openai, or the address "
        "of a model: google:MODEL, openai:MODEL?base_url=….",
    ),
    Field(
        "transcription.hosts",
        "Hosts that recordings may be fetched from, also private ones and by http. Default: any "
        "public host, by https.",
        texts,
    ),
    Field(
        "transcription.folder",
        "Files below it may be named by a job's media.path. Default: none.",
    ),
    Field("transcription.max_bytes", "How large a recording may be that is fetched.", size),
    Field("transcription.max_seconds", "How long fetching a recording may take.", duration),
    Field(
        "receive",
        "Topics of the bus whose messages become runs: a [[receive]] table for each. In the "
        "environment TOPIC=PIPELINE, separated by commas.",
        receives,
    ),
    Field(
        "pubsub.project",
        "The project of Google Cloud whose Pub/Sub is the bus, unless `bus` says otherwise.",
        aliases=("PUBSUB_PROJECT_ID",),
    ),
    Field(
        "pubsub.topic",
        "The topic of jobs. A worker receives it for its only pipeline if this is set and "
        "`receive` is not.",
        aliases=("PUBSUB_TOPIC_NAME", "PUBSUB_TOPIC", "NODE_WORKER_TOPIC_NAME"),
    ),
    Field(
        "pubsub.subscription",
        "The subscription of pubsub.topic. Default: the topic's name and -sub.",
        aliases=(
            "PUBSUB_SUBSCRIPTION_NAME",
            "PUBSUB_SUBSCRIPTION",
            "NODE_WORKER_SUBSCRIPTION_NAME",
        ),
    ),
    Field(
        "pubsub.work_topic",
        "The topic that the stages of a transcription share.",
        aliases=("PUBSUB_TOPIC_WORK",),
    ),
    Field(
        "pubsub.metadata_subscription",
        "The subscription of pubsub.work_topic for messages without worker-type.",
        aliases=("PUBSUB_SUBSCRIPTION_METADATA",),
    ),
    Field(
        "pubsub.transcription_subscription",
        "The subscription of pubsub.work_topic for messages with worker-type: transcription.",
        aliases=("PUBSUB_SUBSCRIPTION_TRANSCRIPTION",),
    ),
    Field(
        "push.endpoint",
        "The URL of this service's /pubsub, for subscriptions that push; `holdfast setup pubsub` "
        "gives it to them. Default: messages are pulled.",
    ),
    Field("push.audience", "What the token of a push was made for. Default: push.endpoint."),
    Field(
        "push.service_account",
        "The e-mail addresses of the service accounts whose pushes are believed; the first is "
        "given to subscriptions. none: whoever can reach the endpoint, for the emulator only.",
        texts,
    ),
    Field("push.certificates", "Where the keys of Google's tokens are."),
    Field("profile", "Which [profiles.NAME] table of the settings files is laid over the rest."),
)

BY_NAME: dict[str, Field] = {field.name: field for field in FIELDS}
BY_ENVIRONMENT: dict[str, Field] = {name: field for field in FIELDS for name in field.names}
