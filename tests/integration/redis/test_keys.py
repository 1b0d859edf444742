"""The keys that people look up: the seed's names, and what plain GET shows."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime
from typing import Any

import msgspec
import pytest
from tests.integration.redis.scene import RECORD, a_checkpoint, a_claim, a_store, a_submit, opened
from tests.redis_server import fresh_prefix, shared_server

from holdfast import Context, Holdfast, Pause, Permanent, Pipeline, WorkerOptions
from holdfast.adapters.redis.store import RedisStore
from holdfast.model.checkpoint import Checkpoint
from holdfast.model.commands import (
    Cancel,
    Claim,
    PauseRun,
    Prune,
    Quarantine,
    Renew,
    Resume,
    SaveCheckpoint,
    SaveProgress,
    Settle,
    Sweep,
)
from holdfast.model.run import RunState
from holdfast.services.statedocument import state_document
from holdfast.services.views import run_view
from holdfast.testing.clock import ManualClock

UNDER_WAY = '{"steps":{"t":{"step":"t","status":"in_progress","started":1700000002.0,"done":3,"usage":{"input_tokens":5}}}}'


async def raw(store: RedisStore, *command: str) -> Any:
    name, key, *rest = command
    return await store._ask(name, store.address.prefix + key, *rest)


async def document(store: RedisStore, run: str = "r1") -> Any:
    text = await raw(store, "GET", f"pipeline_state:{run}")
    return None if text is None else json.loads(text)


async def expected(store: RedisStore, run_id: str = "r1") -> dict[str, Any]:
    """What `holdfast runs show --format state` would print."""

    async def fetch(value: str) -> str:
        return json.dumps(value) if value.startswith("@") else value

    run = await store.run(run_id)
    assert run is not None
    history = await store.history(run_id)
    view = await run_view(store, run, history[-1].at)
    return msgspec.to_builtins(await state_document(store, view, fetch))


def same(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Equal, with times compared as times; while a run is under way, its duration is that of the
    last change, and a worker says of a run that succeeds when it was sent to the server."""
    assert sorted(found) == sorted(wanted)
    found.get("error", {}).pop("traceback", None)  # the server writes the error as it is stored
    assert sorted(found["stepAnalytics"]) == sorted(wanted["stepAnalytics"])
    for step, analytics in wanted["stepAnalytics"].items():
        assert _times(found["stepAnalytics"][step]) == _times(analytics, about=True), step
    sending = 2.0
    assert -1000 * sending <= found["totalDurationMs"] - wanted["totalDurationMs"] < 10_000
    assert (
        _time(found["updatedAt"]) >= _time(wanted["updatedAt"]) - sending
    )  # or later: progress is no event
    for name in set(wanted) - {"stepAnalytics", "totalDurationMs", "updatedAt"}:
        assert _times({name: found[name]}) == _times({name: wanted[name]}, about=True), name


def _times(values: dict[str, Any], *, about: bool = False) -> dict[str, Any]:
    times = {name: _time(value) for name, value in values.items() if name.endswith("At")}
    return {
        **values,
        **(
            {name: pytest.approx(time, abs=0.001) for name, time in times.items()}
            if about
            else times
        ),
    }


def _time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


async def check(store: RedisStore, run: str = "r1") -> dict[str, Any]:
    found = await document(store, run)
    same(found, await expected(store, run))
    return found


# --- the state document ---

WORD = SaveProgress("r1", 1, "{}")
"""The worker's word on its progress, which comes at most half a second after a step was
completed."""


def test_the_document_follows_a_run_step_by_step() -> None:
    async def play() -> None:
        async with a_store() as store:
            await store.apply([a_submit("r1"), a_claim()])
            assert await document(store) is None
            await store.apply([SaveProgress("r1", 1, UNDER_WAY)])
            found = await check(store)
            assert (found["status"], found["currentStep"]) == ("running", "t")
            await store.apply([a_checkpoint("r1", 1, "s", value='{"a":"☃"}'), WORD])
            found = await document(store)
            assert found["completedResults"] == {"s": {"a": "☃"}}
            assert found["stepAnalytics"]["s"]["durationMs"] == 1250
            await store.apply(
                [
                    a_checkpoint("r1", 1, "t", value="[1,2]"),
                    a_checkpoint("r1", 1, "u", value="@blob:x"),
                ]
            )
            assert list((await document(store))["completedResults"]) == ["s"]
            await store.apply([WORD])
            found = await document(store)
            assert list(found["completedResults"]) == ["s", "t", "u"]
            last = a_checkpoint("r1", 1, "v", value='"end"')
            await store.apply([Settle("r1", 1, "succeeded", result='"end"', last=last)])
            found = await check(store)
            assert (found["status"], found["reportId"], found["userId"]) == (
                "completed",
                "r1",
                "acme",
            )
            assert found["completedResults"] == {
                "s": {"a": "☃"},
                "t": [1, 2],
                "u": "@blob:x",
                "v": "end",
            }

    asyncio.run(play())


@pytest.mark.parametrize("noted", [True, False])
def test_the_document_of_a_run_that_succeeded_is_the_same_whoever_made_it(noted: bool) -> None:
    """The worker, who has seen all of its steps, or the server, where he has not."""

    def saved(step: str, value: str = "1", **changed: Any) -> SaveCheckpoint:
        record = json.dumps({**json.loads(RECORD), "step": step, **changed}, separators=(",", ":"))
        return SaveCheckpoint(
            "r1", 1, step, "", value, "c", "t", "f", record, changed.get("status") == "skipped"
        )

    async def play() -> None:
        usage = {"input_tokens": 7, "output_tokens": 5, "cost": 0.5, "calls": 1}
        async with a_store() as store:
            await store.apply([a_submit("r1", key='a "key"'), a_claim(), saved("first")])
            await store.apply(
                [saved("paid", usage=usage), saved("é ☃", "@blob:x", started=1600000000.0)]
            )
            await store.apply(
                [saved("left out", status="skipped"), a_checkpoint("r1", 1, "paid", "an item")]
            )
            if not noted:
                store._notebook.forget([("r1", 1)])
            await store.apply([Settle("r1", 1, "succeeded", result="7", last=saved("end"))])
            found = await check(store)
            assert next(iter(found["stepAnalytics"])) == "é ☃"  # in the order of their start
            assert (found["totalTokens"], found["totalCost"]) == (12, 0.5)
            assert found["completedResults"] == {"first": 1, "paid": 1, "é ☃": "@blob:x", "end": 1}
            assert len(store._notebook) == 0

    asyncio.run(play())


def test_a_document_names_its_run_by_the_callers_key() -> None:
    async def play() -> None:
        async with a_store() as store:
            await store.apply(
                [a_submit("r1", key="order-7"), a_claim(), a_checkpoint("r1", 1), WORD]
            )
            assert (await check(store))["reportId"] == "order-7"

    asyncio.run(play())


def test_a_run_of_one_step_has_its_document_when_it_is_over() -> None:
    async def play() -> None:
        async with a_store() as store:
            await store.apply([a_submit("r1"), a_claim()])
            await store.apply(
                [Settle("r1", 1, "succeeded", result="1", last=a_checkpoint("r1", 1))]
            )
            await check(store)

    asyncio.run(play())


@pytest.mark.parametrize("by", ["the next that succeeds", "the sweeper"])
def test_the_documents_of_runs_that_succeeded_go_after_a_day(by: str) -> None:
    clock = ManualClock()

    async def succeed(store: RedisStore, *runs: str) -> None:
        await store.apply([a_submit(run) for run in runs])
        await store.apply([a_claim(len(runs))])
        await store.apply(
            [Settle(run, 1, "succeeded", result="1", last=a_checkpoint(run, 1)) for run in runs]
        )

    async def shown(store: RedisStore) -> set[str]:
        return {run for run in ("r1", "r2", "r3", "r4") if await document(store, run)}

    async def play() -> None:
        async with opened(
            RedisStore(shared_server().url(fresh_prefix()), test_clock=clock)
        ) as store:
            await succeed(store, "r1", "r2")
            clock.advance(50_000)
            await succeed(store, "r3")
            clock.advance(86_400 - 50_001)
            await store.apply([Sweep()])
            assert await shown(store) == {"r1", "r2", "r3"}
            clock.advance(1)
            if by == "the sweeper":
                await store.apply([Sweep()])
                assert await shown(store) == {"r3"}
            else:
                await succeed(store, "r4")
                assert await shown(store) == {"r3", "r4"}
            assert await store.run("r1") is not None

    asyncio.run(play())


@pytest.mark.parametrize("outcome", ["failed", "retry", "paused", "handover"])
def test_every_other_ending_of_an_attempt_is_shown(outcome: Any) -> None:
    async def play() -> None:
        error = '{"name":"Permanent","message":"no \\"way\\"","step":"t"}'
        async with a_store() as store:
            await store.apply([a_submit("r1"), a_claim(), a_checkpoint("r1", 1)])
            progress = (
                UNDER_WAY.replace("in_progress", "failed") if outcome == "failed" else UNDER_WAY
            )
            await store.apply(
                [Settle("r1", 1, outcome, error=error, reason="because", progress=progress)]
            )
            await check(store)

    asyncio.run(play())


def test_interventions_are_shown() -> None:
    async def play() -> None:
        async with a_store() as store:
            await store.apply([a_submit("r1"), a_claim(), a_checkpoint("r1", 1)])
            await store.apply([PauseRun("r1", "ann", "wait")])
            assert (await check(store))["status"] == "running"
            await store.apply([Resume("r1", "ann")])
            assert (await check(store))["status"] == "pending"
            await store.apply([a_claim()])
            assert (await check(store))["status"] == "running"
            await store.apply([Cancel("r1", "ann", "enough")])
            found = await check(store)
            assert (found["status"], found["error"]["message"]) == ("failed", "enough")

    asyncio.run(play())


def test_a_failed_run_that_is_resumed_keeps_its_document() -> None:
    async def play() -> None:
        error = '{"name":"Permanent","message":"no"}'
        async with a_store() as store:
            await store.apply(
                [
                    a_submit("r1"),
                    a_claim(),
                    a_checkpoint("r1", 1),
                    Settle("r1", 1, "failed", error=error),
                ]
            )
            assert (await check(store))["status"] == "failed"
            await store.apply([Resume("r1", "ann")])
            await store.apply([a_claim()])
            assert (await check(store))["status"] == "running"
            assert await raw(store, "TTL", "pipeline_state:r1") == -1

    asyncio.run(play())


def test_a_result_made_again_replaces_the_old_one() -> None:
    async def play() -> None:
        async with a_store() as store:
            await store.apply(
                [a_submit("r1"), a_claim(), a_checkpoint("r1", 1, "s"), a_checkpoint("r1", 1, "t")]
            )
            await store.apply([Quarantine("r1", 1, "s", "", "damaged")])
            found = await document(store)
            assert (list(found["completedResults"]), found["validationFailures"]) == (
                ["t"],
                {"s": 1},
            )
            await store.apply([a_checkpoint("r1", 1, "s", value="2"), WORD])
            found = await check(store)
            assert found["completedResults"] == {"t": 1, "s": 2}
            await store.apply([a_checkpoint("r1", 1, "s", value="3"), WORD])
            assert (await check(store))["completedResults"]["s"] == 3

    asyncio.run(play())


def test_results_taken_over_are_shown() -> None:
    async def play() -> None:
        async with a_store() as store:
            copied = [Checkpoint("a", "", '"old"', "c", "t", "f", RECORD)]
            await store.apply(
                [a_submit("r1", checkpoints=copied), a_claim(), a_checkpoint("r1", 1, "s"), WORD]
            )
            assert (await check(store))["completedResults"] == {"a": "old", "s": 1}

    asyncio.run(play())


def test_skipped_steps_have_no_result() -> None:
    async def play() -> None:
        async with a_store() as store:
            record = RECORD.replace("completed", "skipped")
            skipped = a_checkpoint("r1", 1, "s", value="null")
            skipped = type(skipped)("r1", 1, "s", "", "null", "c", "t", "f", record, skipped=True)
            await store.apply(
                [a_submit("r1"), a_claim(), skipped, a_checkpoint("r1", 1, "t"), WORD]
            )
            found = await check(store)
            assert (found["completedResults"], found["stepAnalytics"]["s"]["status"]) == (
                {"t": 1},
                "skipped",
            )

    asyncio.run(play())


def test_a_document_that_somebody_deleted_is_made_again() -> None:
    async def play() -> None:
        async with a_store() as store:
            await store.apply([a_submit("r1"), a_claim(), a_checkpoint("r1", 1, "s"), WORD])
            await raw(store, "DEL", "pipeline_state:r1")
            await store.apply([a_checkpoint("r1", 1, "t"), WORD])
            assert sorted((await check(store))["completedResults"]) == ["s", "t"]

    asyncio.run(play())


def test_many_large_results_are_not_written_again_and_again() -> None:
    async def play() -> None:
        async with a_store() as store:
            await store.apply([a_submit("r1"), a_claim()])
            value = json.dumps("x" * 30_000)
            for number in range(50):
                await store.apply([a_checkpoint("r1", 1, f"s{number}", value=value)])
            await store.apply([WORD])
            assert len((await document(store))["completedResults"]) == 50

    asyncio.run(play())


def test_documents_can_be_left_out() -> None:
    async def play() -> None:
        async with a_store(documents="no") as store:
            await store.apply([a_submit("r1"), a_claim(), a_checkpoint("r1", 1)])
            await store.apply([Settle("r1", 1, "succeeded", result="1")])
            assert await document(store) is None
            run = await store.run("r1")
            assert run is not None
            assert run.state is RunState.SUCCEEDED

    asyncio.run(play())


def test_the_document_of_a_real_pipeline() -> None:
    """Steps with usage, a map, a pause and an error, through the engine."""
    report = Pipeline("report", input=int)

    @report.step
    async def clustering(input: int, ctx: Context) -> dict:
        ctx.usage(input_tokens=10, output_tokens=5, cost=0.25)
        return {"topics": input}

    async def claim(number: int) -> int:
        return number * 2

    @report.step
    async def claims(clustering: dict, ctx: Context) -> list[int]:
        return await ctx.map(claim, range(clustering["topics"]))

    @report.step
    async def summaries(claims: list[int]) -> str:
        if len(claims) == 1:
            raise Permanent("too few")
        if len(claims) == 2:
            raise Pause("not enough")
        return "done"

    async def play() -> None:
        url = shared_server().url(fresh_prefix())
        async with Holdfast(
            url, pipelines=[report], blobs="memory:", worker=WorkerOptions(concurrency=4)
        ) as app:
            assert isinstance(app.store, RedisStore)
            good = await app.submit(report, 3)
            bad = await app.submit(report, 1)
            paused = await app.submit(report, 2)
            assert await good.result() == "done"
            with pytest.raises(Exception, match="too few"):
                await bad.result()
            while (await paused.info()).state != RunState.PAUSED:  # noqa: ASYNC110 - the store is asked
                await asyncio.sleep(0.01)
            for run in (good, bad, paused):
                found = await check(app.store, run.id)
                assert (found["totalTokens"], found["totalCost"]) == (15, 0.25)
                assert found["stepAnalytics"]["clustering"]["cost"] == 0.25

    asyncio.run(play())


# --- the others ---


def test_the_lock_key_names_the_holder_while_there_is_one() -> None:
    async def play() -> None:
        async with a_store() as store:
            await store.apply([a_submit("r1"), Claim("w7", "default", ["p"], 1, 30.0)])
            await store.apply([WORD])
            assert await raw(store, "GET", "pipeline_lock:r1") == b"w7#1"
            assert 0 < await raw(store, "TTL", "pipeline_lock:r1") <= 30
            await store.apply([Renew([("r1", 1)], 300.0)])
            assert 30 < await raw(store, "TTL", "pipeline_lock:r1") <= 300
            await store.apply([Settle("r1", 1, "handover")])
            assert await raw(store, "EXISTS", "pipeline_lock:r1") == 0
            await store.apply([Claim("w8", "default", ["p"], 1, 30.0), SaveProgress("r1", 2, "{}")])
            assert await raw(store, "GET", "pipeline_lock:r1") == b"w8#2"
            await store.apply([PauseRun("r1", "ann")])
            assert await raw(store, "EXISTS", "pipeline_lock:r1") == 0

    asyncio.run(play())


def test_validation_failures_are_counted_per_step() -> None:
    async def play() -> None:
        async with a_store() as store:
            await store.apply([a_submit("r1"), a_claim()])
            for key in ("", "i1"):
                await store.apply(
                    [a_checkpoint("r1", 1, "s", key), Quarantine("r1", 1, "s", key, "bad")]
                )
            assert await raw(store, "GET", "pipeline_validation_failure:r1:s") == b"2"

    asyncio.run(play())


def test_nothing_is_left_of_a_run_that_was_pruned() -> None:
    async def play() -> None:
        async with a_store() as store:
            before = await store._ask("KEYS", store.address.prefix + "*")
            await store.apply([a_submit("r1", key="k"), a_claim(), a_checkpoint("r1", 1)])
            await store.apply(
                [SaveProgress("r1", 1, UNDER_WAY), Quarantine("r1", 1, "s", "", "bad")]
            )
            await store.apply([Settle("r1", 1, "failed", error='{"name":"N","message":""}')])
            [pruned] = await store.apply([Prune(keep=-1.0, keep_failed=-1.0)])
            assert pruned == [("r1", "acme")]
            left = set(await store._ask("KEYS", store.address.prefix + "*")) - set(before)
            names = {key.decode().removeprefix(store.address.prefix + "holdfast:") for key in left}
            # What a store remembers for good: tenants, lanes, and the last number of each stream.
            streams = {"inbox", "runs", "tenant:acme", "outbox"}
            assert names == {"tenants", "lanes:busy", "leases", "queues:default"} | streams
            assert await store._ask("XLEN", store._key("runs")) == 0

    asyncio.run(play())
