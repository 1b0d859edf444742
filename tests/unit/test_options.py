"""Options reach the app from three layers, the code, the settings and the command line, and none is
lost on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from holdfast import (
    Holdfast,
    LeaseTimes,
    MessageProjection,
    Pipeline,
    Retention,
    WorkerOptions,
)
from holdfast.adapters.inprocess.bus import InProcessBus
from holdfast.adapters.memory.blobs import MemoryBlobs
from holdfast.adapters.memory.documents import MemoryDocuments
from holdfast.adapters.memory.store import MemoryStore
from holdfast.adapters.opentelemetry.tracing import OpenTelemetryTracer
from holdfast.adapters.prometheus.metrics import PrometheusMetrics
from holdfast.bootstrap import Options
from holdfast.model.clock import SystemClock
from holdfast.model.options import PipelineOptions
from holdfast.model.receive import Receive
from holdfast.services.cluster_metrics import ClusterSettings
from holdfast.settings import Loaded, load
from holdfast.settings.values import Webhooks

Load = Callable[..., Loaded]


class Greeter:
    """What a step may use."""


DECLARED: dict[str, Any] = {
    "store": MemoryStore(SystemClock()),
    "blobs": MemoryBlobs(),
    "bus": InProcessBus(),
    "documents": MemoryDocuments(),
    "projections": (MessageProjection(name="audit", function=lambda event: None),),
    "events_topic": "facts",
    "worker": WorkerOptions(concurrency=3, batch=2, poll=9.0, grace=0.5),
    "works": True,
    "define_lanes": False,
    "lease": LeaseTimes(ttl=3, renew=1, margin=0.5, sweep=0.5),
    "retention": Retention(finished=5.0, every=60.0),
    "clock": SystemClock(),
    "threads": False,
    "llm": "openai:gpt-4o-mini",
    "provide": {Greeter: Greeter()},
    "pipeline": PipelineOptions(max_attempts=2),
    "pipelines": {"p": PipelineOptions(timeout=5.0)},
    "receive": (Receive("topic", "p"),),
    "webhooks": Webhooks(allow=("10.0.0.0/8",)),
    "metrics": PrometheusMetrics(),
    "tenant_label": False,
    "alerts": ClusterSettings(llm_budget=5.0),
    "tracer": OpenTelemetryTracer(),
    "parent_from_message": True,
    "on_execute": lambda run, step, key: None,
}


@pytest.fixture
def settings(tmp_path: Path) -> Load:
    """`settings(flags, NAME=value)`: loaded from these alone."""

    def make(flags: dict[str, Any] | None = None, **env: str) -> Loaded:
        return load(flags, env={"HOME": str(tmp_path), **env}, cwd=tmp_path)

    return make


def test_every_option_has_a_value_in_this_test() -> None:
    assert set(DECLARED) == {field.name for field in fields(Options)}


def test_what_the_code_gives_stays_when_nobody_sets_anything(settings: Load) -> None:
    declared = Holdfast.from_options(Options(**DECLARED))
    assert Holdfast.from_settings(settings(), like=declared).options == Options(**DECLARED)


@pytest.mark.parametrize("name", [name for name in DECLARED if name != "store"])
def test_another_store_on_the_command_line_changes_nothing_else(settings: Load, name: str) -> None:
    declared = Options(**DECLARED)
    laid_over = declared.with_settings(settings({"store": "sqlite:///other.db"}))
    assert laid_over.store == "sqlite:///other.db"
    assert getattr(laid_over, name) == getattr(declared, name)


def test_the_pipelines_of_the_app_are_kept(settings: Load) -> None:
    declared = Holdfast("memory:", [Pipeline("p")])
    assert list(Holdfast.from_settings(settings(), like=declared).pipelines) == ["p"]
    assert not Holdfast.from_settings(settings(), (), like=declared).pipelines


def test_one_value_of_a_table_changes_that_value_alone(settings: Load) -> None:
    loaded = settings(
        HOLDFAST_LEASE_SWEEP="2s", HOLDFAST_RETENTION_FAILED="1d", HOLDFAST_CONCURRENCY="7"
    )
    options = Options(**DECLARED).with_settings(loaded)
    assert options.lease == LeaseTimes(ttl=3, renew=1, margin=0.5, sweep=2.0)
    assert options.retention == Retention(finished=5.0, failed=86_400.0, every=60.0)
    assert options.worker == WorkerOptions(concurrency=7, batch=2, poll=9.0, grace=0.5)


def test_the_command_line_wins_over_the_settings_and_they_over_the_code(settings: Load) -> None:
    env = {"HOLDFAST_STORE": "sqlite:///set.db", "HOLDFAST_BUS": "none"}
    options = Options(**DECLARED).with_settings(settings({"grace": 3.0}, **env))
    assert (options.store, options.make_bus()) == ("sqlite:///set.db", None)
    options = options.with_settings(settings({"store": "memory:"}, **env))
    assert (options.store, options.worker.grace) == ("memory:", 3.0)


def test_blobs_lie_beside_the_store_that_is_used_in_the_end(settings: Load) -> None:
    options = Options("sqlite:///declared.db").with_settings(settings({"store": "sqlite:///o.db"}))
    assert options.blobs_url == "file:o-files"
    assert replace(options, blobs="file:elsewhere").blobs_url == "file:elsewhere"
    assert replace(options, store="redis://h").make_blobs() is None
    assert replace(options, blobs=DECLARED["blobs"]).make_blobs() is DECLARED["blobs"]


def test_defaults_are_those_of_the_settings(settings: Load) -> None:
    options, defaults = Options(), settings().settings
    assert options == Options(clock=options.clock).with_settings(settings())
    assert (options.store, options.lease, options.retention) == (
        defaults.store,
        defaults.lease,
        defaults.retention,
    )
    assert (options.worker.concurrency, options.worker.max_bytes, options.worker.grace) == (
        defaults.concurrency,
        defaults.max_bytes,
        defaults.grace,
    )
    app = Holdfast()
    assert app.options == replace(options, clock=app.options.clock)
