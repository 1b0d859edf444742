"""Messages in and out over Redis, with workers that die at every boundary, and with thousands of
messages that no pipeline takes."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from tests.acceptance.seeds.redis_deployment import SHORT_LEASE, RedisDeployment
from tests.acceptance.seeds.test_seed_003 import CONTENT, DLQ, JOBS, RESULTS
from tests.redis_server import fresh_prefix, shared_server

from holdfast import Holdfast, Pipeline
from holdfast.adapters.redis.bus import RedisBus
from holdfast.model.receive import Receive
from holdfast.ports.bus import Message
from holdfast.ports.store import RunFilter

KILLED = str(Path(__file__).with_name("killed_worker.py"))
GROUP = "holdfast-creative"
STEPS = ("INPUT_SANITIZED", "AGENTS_EXECUTED[]", "AGENTS_EXECUTED", "QA_TECH", "QA_SEMANTIC",
         "FINAL_APPROVAL")  # fmt: skip
BOUNDARIES = (
    "Submit",
    "Bury",
    "ack",
    "Claim",
    *(f"SaveCheckpoint:{step}" for step in STEPS),
    "Settle",
    f"publish:{RESULTS}",
    f"publish:{DLQ}",
    "PutRecord:projections/job_results",
    "PutRecord:projections/job_dead_letters",
)
"""Where a worker and the outside meet while it works on the messages below."""
ELSEWHERE = {"Acquire", "ReleaseLock", "Renew", "RenewLocks", "Sweep", "publish:holdfast-events",
             "PutRecord:projections/events", "PutRecord:workers", "DeleteRecord", "DefineLane",
             f"PutRecord:receive:{JOBS}:{GROUP}", "SaveProgress"}  # fmt: skip
"""What else it does, message or not; progress is saved where a step takes half a second."""
GOOD = {"job_id": "job-1", "user_id": "u", "content": CONTENT, "preset": "quick_social"}
ORDERS = [
    ("m-1", GOOD, {}),
    ("m-2", GOOD | {"job_id": "job-2", "preset": "unknown"}, {}),
    ("m-3", b'{"job_id": "job-3"', {}),
]


@pytest.fixture
def deployment(tmp_path):
    deployment = RedisDeployment(
        tmp_path,
        HOLDFAST_APP="examples/creative/pipeline.py",
        HOLDFAST_PROJECTIONS="job_results,job_dead_letters",
        **SHORT_LEASE,
    )
    deployment.subscribe(RESULTS, DLQ)
    deployment.subscribe(JOBS, group=GROUP)
    deployment.publish(JOBS, *ORDERS)
    yield deployment
    deployment.kill()


def start(deployment: RedisDeployment, **more: str):
    return deployment.start(KILLED, "--receive", f"{JOBS}=creative", **more)


def until_all_is_told(deployment: RedisDeployment) -> None:
    deployment.wait(lambda: len(deployment.bodies(RESULTS)) == len(deployment.bodies(DLQ)) == 2)
    deployment.wait(lambda: not deployment.pending(JOBS, GROUP))


def test_the_boundaries_are_all_there_are(deployment, tmp_path):
    start(deployment, RECORD=str(tmp_path / "boundaries"))
    until_all_is_told(deployment)
    assert deployment.stop() == [0]
    names = (tmp_path / "boundaries").read_text().split()
    met = {name if "workers/" not in name else "PutRecord:workers" for name in names}
    assert met - ELSEWHERE == set(BOUNDARIES)


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_worker_killed_at_any_boundary_leaves_one_result(deployment, when, boundary):
    """Three jobs: one succeeds, one fails, one can't be read."""
    first = start(deployment, KILL_AT=f"{when} {boundary}")
    assert first.wait(60) == -9, deployment.log(0)
    start(deployment, DEAD_AFTER="1")
    until_all_is_told(deployment)
    assert deployment.stop() == [-9, 0]

    assert {run.key: run.state for run in deployment.runs()} == {
        "job-1": "succeeded",
        "job-2": "failed",
    }
    letters = [letter.run is None for letter in deployment.letters()]
    assert sorted(letters) == [False, True]
    results, dead = deployment.published(RESULTS), deployment.published(DLQ)
    for copies in (results, dead):
        assert len({(copy.id, copy.body) for copy in copies}) == 2, "copies differ"
    assert {(body["job_id"], body["status"]) for body in deployment.bodies(RESULTS)} == {
        ("job-1", "completed"),
        ("job-2", "failed"),
    }
    assert {body["job_id"] for body in deployment.bodies(DLQ)} == {"job-2", None}
    if (when, boundary) == ("after", f"publish:{RESULTS}"):
        assert len(results) > 2, "it was published, and that was not noted down"


POISON = [b"{", b"\xff\xfe", b'"text"', b'{"job_id": 5}', b"", b"[1,2", b'{"n": "five"}']


def test_ten_thousand_poison_messages_stop_no_good_one():
    count = 10_000
    jobs = Pipeline("jobs", input=dict[str, int], key=lambda job: str(job["n"]))

    @jobs.step
    async def work(request: dict[str, int]) -> int:
        return request["n"]

    async def publish(bus: RedisBus, numbers: range) -> None:
        for number in numbers:
            poison = POISON[number % len(POISON)]
            await bus.publish(JOBS, Message(f"bad-{number}", poison))
            await bus.publish(JOBS, Message(f"good-{number}", b'{"n": %d}' % number))

    async def story() -> tuple[dict[str, int], int]:
        url = shared_server().url(fresh_prefix())
        bus = RedisBus(url)
        async with Holdfast(url, [jobs], bus=bus, blobs="memory:") as app:
            await app.receive(Receive(JOBS, "jobs", max_messages=100))
            part = count // 20
            await asyncio.gather(
                *(publish(bus, range(start, start + part)) for start in range(0, count, part))
            )
            change = 0
            async with asyncio.timeout(300):
                while (await app.store.count(RunFilter())).get("succeeded", 0) < count:
                    change = await app.store.wait(change, 5.0)
                while (buried := len(await app.store.dead_letters(limit=count + 1))) < count:
                    change = await app.store.wait(change, 5.0)
            return await app.store.count(RunFilter()), buried

    states, buried = asyncio.run(story())
    assert Counter(states) == {"succeeded": count}
    assert buried == count
