"""What the engine counts, in the words of the engine. Without a registry there is no meter, and
nothing is counted."""

from __future__ import annotations

import platform
from collections import Counter

from holdfast.model.commands import Settle
from holdfast.model.version import VERSION
from holdfast.ports.metrics import Metrics

OTHER = "other"
MAX_TENANTS = 1000
"""Tenants with a label of their own; those that come later share `other`."""

_STATE_AFTER = {
    "succeeded": "succeeded",
    "failed": "failed",
    "paused": "paused",
    "retry": "queued",
    "handover": "queued",
}


class TenantLabels:
    """How a tenant is named in labels: every combination of labels is a time series."""

    def __init__(self, enabled: bool = True, most: int = MAX_TENANTS) -> None:
        self._enabled = enabled
        self._most = most
        self._known: set[str] = set()

    def of(self, tenant: str) -> str:
        if not self._enabled:
            return ""
        if tenant in self._known:
            return tenant
        if len(self._known) >= self._most:
            return OTHER
        self._known.add(tenant)
        return tenant


class Meter:
    """Counts what happens in this process."""

    def __init__(self, metrics: Metrics, tenants: TenantLabels | None = None) -> None:
        self.metrics = metrics
        self.tenants = tenants or TenantLabels()
        self._count = metrics.count
        self._observe = metrics.observe
        self._answers: Counter[tuple[str, bool]] = Counter()
        self._in_flight: Counter[str] = Counter()
        build = {"version": VERSION, "python": platform.python_version()}
        metrics.set("holdfast_build_info", 1.0, build)

    def _of(self, tenant: str, pipeline: str) -> dict[str, str]:
        return {"tenant_id": self.tenants.of(tenant), "pipeline_id": pipeline}

    def transition(self, before: str, after: str) -> None:
        self._count("pipeline_state_transitions_total", {"from": before, "to": after})

    # --- runs -------------------------------------------------------------------------------------

    def submitted(self, tenant: str, pipeline: str, *, created: bool, unique: bool) -> None:
        """A submission was answered. The live run of a unique pipeline is its lock."""
        if created:
            self._count("pipeline_jobs_created_total", self._of(tenant, pipeline))
            self.transition("", "queued")
        if unique:
            self.lock_asked(tenant, pipeline, "success" if created else "conflict", 0.0)

    def refused(self, tenant: str, quota: str) -> None:
        labels = {"tenant_id": self.tenants.of(tenant), "quota": quota}
        self._count("pipeline_quota_refusals_total", labels)

    def started(self) -> None:
        self.transition("queued", "running")

    def settled(self, tenant: str, pipeline: str, settle: Settle, seconds: float) -> None:
        self.transition("running", _STATE_AFTER[settle.outcome])
        self._observe("pipeline_job_duration_seconds", seconds, {"pipeline_id": pipeline})
        if settle.outcome == "succeeded":
            self._count("pipeline_jobs_completed_total", self._of(tenant, pipeline))
        elif settle.outcome == "failed":
            self._count("pipeline_jobs_failed_total", self._of(tenant, pipeline))

    def step_completed(self, pipeline: str, step: str, seconds: float) -> None:
        labels = {"pipeline_id": pipeline, "step": step}
        self._observe("pipeline_step_duration_seconds", seconds, labels)

    def step_reused(self, pipeline: str, step: str) -> None:
        self._count("pipeline_steps_reused_total", {"pipeline_id": pipeline, "step": step})

    def checkpoint_quarantined(self, step: str) -> None:
        self._count("pipeline_validation_failures_total", {"step": step})

    def leadership_began(self, lane: str) -> None:
        self._count("pipeline_leader_changes_total", {"queue": lane})

    # --- messages ---------------------------------------------------------------------------------

    def message_arrived(self, topic: str) -> None:
        self._count("pipeline_messages_consumed_total", {"queue": topic})
        self._change_in_flight(topic, 1)

    def message_buried(self, topic: str) -> None:
        self._count("pipeline_messages_failed_total", {"queue": topic})

    def message_answered(self, topic: str, seconds: float, *, acked: bool) -> None:
        queue = {"queue": topic}
        self._change_in_flight(topic, -1)
        self._observe("pipeline_message_processing_seconds", seconds, queue)
        if acked:
            self._count("pipeline_messages_processed_total", queue)
            self._count("pipeline_messages_acked_total", queue)
        else:
            self._count("pipeline_messages_nacked_total", queue)
        self._answers[topic, acked] += 1
        good, bad = self._answers[topic, True], self._answers[topic, False]
        self.metrics.set("pipeline_ack_ratio", good / (good + bad), queue)

    def _change_in_flight(self, topic: str, by: int) -> None:
        self._in_flight[topic] += by
        value = self._in_flight[topic]
        self.metrics.set("pipeline_messages_in_flight", value, {"queue": topic})

    def webhook_delivered(self, result: str) -> None:
        self._count("pipeline_webhook_deliveries_total", {"result": result})

    # --- pipeline locks ---------------------------------------------------------------------------

    def lock_asked(self, tenant: str, pipeline: str, result: str, seconds: float) -> None:
        labels = self._of(tenant, pipeline)
        self._count("pipeline_lock_acquisitions_total", {**labels, "result": result})
        self._observe("pipeline_lock_wait_time_seconds", seconds, labels)

    def lock_released(self, tenant: str, pipeline: str, seconds: float) -> None:
        self._observe("pipeline_lock_duration_seconds", seconds, self._of(tenant, pipeline))

    # --- language models --------------------------------------------------------------------------

    def model_asked(
        self, tenant: str, pipeline: str, model: str, tokens: tuple[int, int], cost: float | None
    ) -> None:
        """`model` is `vendor:name`; `tokens` are those of question and answer."""
        provider, _, name = model.partition(":")
        for kind, amount in zip(("input", "output"), tokens, strict=True):
            labels = {"provider": provider, "model": name, "type": kind}
            self._count("pipeline_llm_tokens_total", labels, amount)
        if cost is None:
            self._count("pipeline_llm_unpriced_calls_total", {"model": name})
        else:
            labels = {**self._of(tenant, pipeline), "model": name}
            self._count("pipeline_llm_cost_usd_total", labels, cost)
