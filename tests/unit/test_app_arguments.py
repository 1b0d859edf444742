"""What can't be used is refused by the line that gives it, with what to give instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast import Holdfast, Lane, LeaseTimes, Pipeline, Retention, WorkerOptions
from holdfast.errors import ConfigurationError, DefinitionError

NAN = float("nan")


@pytest.mark.parametrize(
    ("make", "given", "match"),
    [
        (WorkerOptions, {"concurrency": 0}, "concurrency is 0: give a whole number from 1"),
        (WorkerOptions, {"batch": 2.5}, "batch is 2.5: give a whole number from 1"),
        (WorkerOptions, {"grace": "5s"}, "grace is '5s': give seconds, for example grace=60.0"),
        (WorkerOptions, {"poll": 0}, "poll is 0: give seconds from 0.001 on"),
        (WorkerOptions, {"progress": NAN}, "progress is nan: give seconds"),
        (Retention, {"finished": "30d"}, "finished is '30d': give seconds"),
        (Retention, {"failed": -1}, "failed is -1: give seconds"),
        (LeaseTimes, {"ttl": "30s"}, "ttl is '30s': give seconds"),
        (Holdfast, {"worker": 5}, r"worker=5: give WorkerOptions\(…\)"),
        (Holdfast, {"lease": 30}, r"lease=30: give LeaseTimes\(…\)"),
        (Holdfast, {"retention": "30d"}, r"retention='30d': give Retention\(…\)"),
        (Holdfast, {"provide": [5]}, r"provide=\[5\]: give a mapping from types to objects"),
        (Holdfast, {"store": 5}, "store=5: give a URL, or a Store"),
    ],
)
def test_options_of_the_wrong_kind_are_refused(
    make: Callable[..., Any], given: dict[str, Any], match: str
) -> None:
    with pytest.raises(ConfigurationError, match=match):
        make(**given)


@pytest.mark.parametrize(
    ("make", "given", "match"),
    [
        (Holdfast, {"pipelines": [5]}, "pipelines holds 5, which is not a Pipeline"),
        (Holdfast, {"pipelines": Pipeline("p")}, r"pipelines is a Pipeline: give a list, \[p\]"),
        (Holdfast, {"pipelines": [Pipeline("p"), Pipeline("p")]}, "two pipelines are called 'p'"),
        (Pipeline, {"name": "p", "lane": 5}, "lane=5 is no lane; give a name, or Lane"),
        (Pipeline, {"name": "p", "lane": Lane("")}, "lane '' has 0 bytes: 1 to"),
        (Pipeline, {"name": "p", "lane": ""}, "lane '' has 0 bytes: 1 to"),
    ],
)
def test_pipelines_and_lanes_of_the_wrong_kind_are_refused(
    make: Callable[..., Any], given: dict[str, Any], match: str
) -> None:
    with pytest.raises(DefinitionError, match=match):
        make(**given)


def test_one_pipeline_may_be_named_twice_and_a_projection_without_a_list() -> None:
    pipeline = Pipeline("p")
    app = Holdfast("memory:", [pipeline, pipeline], projections="state_documents")
    assert (list(app.pipelines), app.options.projections) == (["p"], ("state_documents",))
