"""What Prometheus sees of an app, by name and labels."""

from __future__ import annotations

from typing import Any

from prometheus_client.parser import text_string_to_metric_families


class Reading:
    """The answer to one request of Prometheus. A label that is a word of Python has a `_` behind
    it."""

    def __init__(self, text: bytes) -> None:
        families = text_string_to_metric_families(text.decode())
        self.values = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in families
            for sample in family.samples
        }

    def __call__(self, name: str, **labels: str) -> float | None:
        wanted_labels = {key.rstrip("_"): value for key, value in labels.items()}
        return self.values.get((name, frozenset(wanted_labels.items())))

    @property
    def names(self) -> set[str]:
        return {name for name, _ in self.values}


async def read(app: Any, **options: Any) -> Reading:
    return Reading(await app.metrics_export.text(**options))
