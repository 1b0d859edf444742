"""Labels: what runs are found by, beside their ids and keys."""

from __future__ import annotations

from typing import Any

from holdfast.model.commands import Prune
from holdfast.ports.store import RunFilter
from holdfast.testing.contracts.store_topics.harness import StoreHarness, StoreTopics, store_test


async def ids_with_labels(
    harness: StoreHarness, tenant: str | None = "acme", **labels: str
) -> list[str]:
    runs = await harness.store.runs(RunFilter(tenant=tenant, labels=labels))
    return [run.id for run in runs]


class LabelTopics(StoreTopics):
    @store_test
    async def test_labels_and_attributes_are_kept(self, harness: StoreHarness) -> None:
        labels = {f"n{number}": f"☃ {number}" for number in range(16)}
        await harness.submit("r1", labels=labels, attributes={"ce-id": "m1", "empty": ""})
        await harness.submit("r2")
        run = await harness.run("r1")
        assert (run.labels, run.attributes) == (labels, {"ce-id": "m1", "empty": ""})
        run = await harness.run("r2")
        assert (run.labels, run.attributes) == ({}, {})

    @store_test
    async def test_runs_are_found_by_a_label_newest_first(self, harness: StoreHarness) -> None:
        for number in range(4):
            await harness.submit(f"r{number}", labels={"user_id": str(number % 2), "all": "x"})
        assert await ids_with_labels(harness, user_id="1") == ["r3", "r1"]
        assert await ids_with_labels(harness, user_id="1", all="x") == ["r3", "r1"]
        assert await ids_with_labels(harness, user_id="1", all="y") == []
        assert await ids_with_labels(harness, other="1") == []
        assert await ids_with_labels(harness, None, user_id="0") == ["r2", "r0"]

    @store_test
    async def test_labels_go_with_every_other_filter(self, harness: StoreHarness) -> None:
        await harness.submit("r1", labels={"user_id": "7"}, pipeline="other")
        await harness.submit("r2", labels={"user_id": "7"}, lane="fast", key="k")
        epoch = await harness.start("r3", labels={"user_id": "7"}, lane="slow")
        await harness.settle("r3", epoch, "succeeded")
        where: dict[str, Any] = {"labels": {"user_id": "7"}, "tenant": "acme"}
        cases: list[tuple[dict[str, Any], list[str]]] = [
            ({"pipeline": "other"}, ["r1"]),
            ({"lane": "fast"}, ["r2"]),
            ({"key": "k"}, ["r2"]),
            ({"state": "succeeded"}, ["r3"]),
            ({"state": "queued"}, ["r2", "r1"]),
            ({"id_prefix": "r"}, ["r3", "r2", "r1"]),
        ]
        for fields, expected in cases:
            runs = await harness.store.runs(RunFilter(**where, **fields))
            assert [run.id for run in runs] == expected, fields
            counts = await harness.store.count(RunFilter(**where, **fields))
            assert sum(counts.values()) == len(expected), fields

    @store_test
    async def test_a_page_goes_on_where_the_one_before_ended(self, harness: StoreHarness) -> None:
        for number in range(5):
            await harness.submit(f"r{number}", labels={"a": "b"})
            await harness.submit(f"x{number}")
        where = RunFilter(tenant="acme", labels={"a": "b"})
        first = await harness.store.runs(where, limit=2)
        second = await harness.store.runs(where, limit=9, before=first[-1].seq)
        assert [run.id for run in first + second] == ["r4", "r3", "r2", "r1", "r0"]

    @store_test
    async def test_a_tenant_does_not_find_the_runs_of_another(self, harness: StoreHarness) -> None:
        await harness.submit("r1", tenant="acme", labels={"user_id": "7"})
        await harness.submit("r2", tenant="bolt", labels={"user_id": "7"})
        assert await ids_with_labels(harness, "acme", user_id="7") == ["r1"]
        assert await ids_with_labels(harness, "bolt", user_id="7") == ["r2"]

    @store_test
    async def test_a_deleted_run_is_not_found_any_more(self, harness: StoreHarness) -> None:
        await harness.settle("r1", await harness.start("r1", labels={"a": "b"}), "succeeded")
        await harness.submit("r2", labels={"a": "b"})
        harness.clock.advance(10.0)
        assert await harness.do(Prune(keep=1.0, keep_failed=1.0)) == [("r1", "acme")]
        assert await ids_with_labels(harness, a="b") == ["r2"]
