"""Workers on Pub/Sub and PostgreSQL through what goes wrong there: every job has one effective
result, and nothing is lost. Other systems use Google's own client library."""

from __future__ import annotations

import signal
import time
from collections import Counter

import pytest
from tests.acceptance.seeds.pubsub_deployment import DLQ, JOBS, RESULTS, PubSubDeployment
from tests.acceptance.seeds.redis_deployment import SHORT_LEASE
from tests.emulators import PubSubEmulator

RESULTS_SUB = f"{RESULTS}-sub"
ACK_DEADLINE = 10
"""Seconds: the shortest that Pub/Sub knows."""
POISON = [b"{", b"\xff\xfe", b"[]", b'{"user_id": "nobody"}', b"null"]


def job(number: int) -> dict[str, str]:
    return {"job_id": f"job-{number}", "user_id": f"user-{number % 3}"}


@pytest.fixture
def an_office(tmp_path):
    offices = []

    def make(emulator=None):
        deployment = PubSubDeployment(
            tmp_path,
            emulator,
            HOLDFAST_APP="tests/acceptance/gated_jobs.py",
            GATE=str(tmp_path / "gate"),
            **SHORT_LEASE,
        )
        offices.append(deployment)
        return deployment

    yield make
    for deployment in offices:
        deployment.kill()


def open_gate(deployment):
    (deployment.folder / "gate").touch()


def one_result_each(deployment, numbers):
    """Every job has succeeded once, and has been published with one id and the same bytes."""
    names = sorted(f"job-{number}" for number in numbers)
    bodies = deployment.results(len(names))
    assert sorted(body["job_id"] for body in bodies) == names
    assert {body["status"] for body in bodies} == {"completed"}
    assert sorted(run.key for run in deployment.runs()) == names
    copies = deployment.google.take(RESULTS_SUB)
    assert len({(m.attributes["holdfast-id"], m.data) for m in copies}) == len(names)


def test_duplicates_poison_a_killed_and_a_stopped_worker(an_office):
    deployment = an_office()
    deployment.google.create(DLQ, f"{DLQ}-sub")
    deployment.google.create(
        JOBS, f"{JOBS}-sub", ack_deadline_seconds=ACK_DEADLINE, enable_message_ordering=True
    )
    deployment.google.create(RESULTS, RESULTS_SUB)
    # What somebody pulled and never acknowledged comes again, past the deadline.
    deployment.send((job(0), {}))
    [message] = deployment.google.pull(f"{JOBS}-sub")
    stopped, killed, _ = [deployment.start_worker() for _ in range(3)]
    for number in range(1, 15):
        deployment.send((job(number), {}))
        if number % 3 == 0:
            deployment.send((job(number), {}), (POISON[number % 5], {}))  # a duplicate
        if number == 5:
            stopped.send_signal(signal.SIGSTOP)
        if number == 10:
            killed.kill()
    until = time.monotonic() + 60
    while len(deployment.runs()) < 15:
        assert time.monotonic() < until, sorted(run.key for run in deployment.runs())
        time.sleep(0.2)
    stopped.send_signal(signal.SIGCONT)
    open_gate(deployment)
    one_result_each(deployment, range(15))
    poison = {POISON[number % 5] for number in range(3, 15, 3)}
    assert Counter(letter.body for letter in deployment.letters()) == dict.fromkeys(poison, 1)
    assert len(deployment.dead_letters(len(poison))) == len(poison)
    late = {
        "subscription": deployment.google.subscription(f"{JOBS}-sub"),
        "ack_ids": [message.ack_id],
    }
    deployment.google.subscriber.acknowledge(request=late)  # does no harm


def test_an_emulator_that_is_killed_and_started_again(an_office):
    """It forgets topics, subscriptions and messages; what was accepted is in the store."""
    emulator = PubSubEmulator()
    emulator.start()
    try:
        deployment = an_office(emulator)
        set_up = ("setup", "pubsub", "--project", deployment.project)
        assert deployment.holdfast(*set_up).returncode == 0
        deployment.start_worker()
        for number in range(6):
            deployment.send((job(number), {}))
        deployment.wait(lambda: len(deployment.runs()) == 6)
        emulator.kill()
        deployment.wait(lambda: "can't receive" in deployment.log())
        emulator.start()
        assert deployment.holdfast(*set_up).returncode in (0, 8)  # 8: the worker was faster
        for number in range(6, 9):
            deployment.send((job(number), {}))
        deployment.wait(lambda: len(deployment.runs()) == 9)
        open_gate(deployment)
        one_result_each(deployment, range(9))
        assert deployment.stop() == [0]
    finally:
        emulator.end()
