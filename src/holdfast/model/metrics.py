"""Every metric that holdfast exports, once: exporter, rules, dashboard and documentation follow it.

Metrics of a *process* are counted where something happens, and each process exports its own.
Metrics of the *cluster* are read from the store, and exported by one process: else a sum over
processes would count them twice. Base units, counters end in `_total`, ratios go from 0 to 1."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Kind = Literal["counter", "gauge", "histogram"]
Scope = Literal["process", "cluster"]

RUN_SECONDS = (0.05, 0.25, 1, 5, 15, 60, 300, 900, 1800, 3600, 7200)
STEP_SECONDS = (0.01, 0.05, 0.25, 1, 5, 15, 60, 300, 900, 1800)
MESSAGE_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30)


class Metric(Struct, frozen=True):
    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    scope: Scope = "process"
    buckets: tuple[float, ...] = ()


_PIPELINE = ("tenant_id", "pipeline_id")


def _counter(name: str, help: str, *labels: str) -> Metric:
    return Metric(name, "counter", help, labels)


def _histogram(name: str, help: str, buckets: tuple[float, ...], *labels: str) -> Metric:
    return Metric(name, "histogram", help, labels, "process", buckets)


def _gauge(name: str, help: str, *labels: str) -> Metric:
    return Metric(name, "gauge", help, labels)


def _cluster(name: str, help: str, *labels: str) -> Metric:
    return Metric(name, "gauge", help, labels, "cluster")


METRICS: tuple[Metric, ...] = (
    # --- pipeline locks: of `PipelineLockManager`, and of the live runs of unique pipelines ---
    _counter(
        "pipeline_lock_acquisitions_total",
        "Attempts to take the lock of a pipeline; result: success, conflict or error.",
        *_PIPELINE,
        "result",
    ),
    _histogram(
        "pipeline_lock_duration_seconds", "How long locks were held.", RUN_SECONDS, *_PIPELINE
    ),
    _histogram(
        "pipeline_lock_wait_time_seconds",
        "How long it took to get a lock, or to give up.",
        MESSAGE_SECONDS,
        *_PIPELINE,
    ),
    _cluster("pipeline_active_locks", "Locks of pipelines that are held now.", *_PIPELINE),
    _cluster("pipeline_lock_age_seconds", "How long a lock has been held.", *_PIPELINE),
    _cluster("pipeline_lock_timeout_seconds", "How long a lock may be held.", *_PIPELINE),
    _cluster(
        "pipeline_lock_acquired_timestamp_seconds",
        "When a lock was taken, as Unix time.",
        *_PIPELINE,
    ),
    _cluster("pipeline_running_count", "Running runs; 0 where a lock is held.", *_PIPELINE),
    _cluster(
        "pipeline_lock_expiration_alert_threshold",
        "The part of its timeout at which a lock is about to expire.",
    ),
    # --- messages ---
    _counter("pipeline_messages_consumed_total", "Messages that were delivered here.", "queue"),
    _counter(
        "pipeline_messages_processed_total", "Messages that are runs or dead letters now.", "queue"
    ),
    _counter("pipeline_messages_failed_total", "Messages that became dead letters.", "queue"),
    _counter("pipeline_messages_acked_total", "Messages that were acknowledged.", "queue"),
    _counter("pipeline_messages_nacked_total", "Messages that were refused for now.", "queue"),
    _histogram(
        "pipeline_message_processing_seconds",
        "From delivery to acknowledgement: a run is executed later.",
        MESSAGE_SECONDS,
        "queue",
    ),
    _gauge("pipeline_messages_in_flight", "Messages that are being received now.", "queue"),
    _gauge("pipeline_ack_ratio", "Acknowledged messages of all that were answered.", "queue"),
    _cluster("pipeline_dlq_messages", "Open dead letters; at most 1,000 are counted."),
    # --- runs ---
    _counter("pipeline_jobs_created_total", "Runs that were accepted here.", *_PIPELINE),
    _counter("pipeline_jobs_completed_total", "Runs that succeeded here.", *_PIPELINE),
    _counter("pipeline_jobs_failed_total", "Runs that failed here for good.", *_PIPELINE),
    _histogram(
        "pipeline_job_duration_seconds", "How long attempts took.", RUN_SECONDS, "pipeline_id"
    ),
    _counter("pipeline_state_transitions_total", "Changes of states of runs.", "from", "to"),
    _counter("pipeline_quota_refusals_total", "Submissions above a quota.", "tenant_id", "quota"),
    _histogram(
        "pipeline_step_duration_seconds",
        "How long steps took that completed.",
        STEP_SECONDS,
        "pipeline_id",
        "step",
    ),
    _counter(
        "pipeline_steps_reused_total",
        "Steps whose stored result was used.",
        "pipeline_id",
        "step",
    ),
    _counter(
        "pipeline_validation_failures_total",
        "Stored results that could not be used and were quarantined.",
        "step",
    ),
    # --- queues, leaders, workers ---
    _cluster("pipeline_queue_depth", "Queued runs of a lane.", "queue"),
    _cluster("pipeline_queue_delayed", "Queued runs that wait for the end of a delay.", "queue"),
    _cluster("pipeline_queue_running", "Running runs of a lane.", "queue"),
    _cluster(
        "pipeline_queue_oldest_message_age_seconds",
        "Since when the oldest run of a lane that could run waits; 0 if none does.",
        "queue",
    ),
    _cluster("pipeline_leader", "1 for the worker that leads a fifo lane.", "queue", "worker"),
    _cluster("pipeline_lane_has_leader", "Whether a fifo lane with runs is led.", "queue"),
    _counter("pipeline_leader_changes_total", "Leaderships that began here.", "queue"),
    _cluster("pipeline_stale_runs", "Running runs whose worker has not been heard of."),
    _cluster("pipeline_workers", "Workers; state: alive or lost.", "state"),
    _cluster(
        "pipeline_tenant_quota_used_ratio",
        "How much of a quota a tenant uses, from 0 to 1.",
        "tenant_id",
        "quota",
    ),
    # --- language models ---
    _counter(
        "pipeline_llm_tokens_total",
        "Tokens of language models; type: input or output.",
        "provider",
        "model",
        "type",
    ),
    _counter("pipeline_llm_cost_usd_total", "What calls of known price cost.", *_PIPELINE, "model"),
    _counter("pipeline_llm_unpriced_calls_total", "Calls whose price nobody knows.", "model"),
    _cluster("pipeline_llm_budget_usd", "What may be spent in 30 days: `metrics.llm_budget`."),
    # --- what leaves ---
    _counter(
        "pipeline_webhook_deliveries_total", "Deliveries; result: success or failure.", "result"
    ),
    # --- holdfast ---
    _gauge(
        "holdfast_build_info", "1, with the versions of holdfast and Python.", "version", "python"
    ),
)

BY_NAME = {metric.name: metric for metric in METRICS}
