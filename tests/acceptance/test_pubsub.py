"""Workers on Pub/Sub and PostgreSQL through what goes wrong there: every job has one effective
result, and nothing is lost. Other systems use Google's own client library."""

from __future__ import annotations

import signal
import time
from collections import Counter

import pytest
from tests.acceptance.seeds.post_office import SHORT_LEASE
from tests.acceptance.seeds.pubsub_office import DLQ, JOBS, RESULTS, PubSubOffice
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
        office = PubSubOffice(
            tmp_path,
            emulator,
            HOLDFAST_APP="tests/acceptance/gated_jobs.py",
            GATE=str(tmp_path / "gate"),
            **SHORT_LEASE,
        )
        offices.append(office)
        return office

    yield make
    for office in offices:
        office.kill()


def open_gate(office):
    (office.folder / "gate").touch()


def one_result_each(office, numbers):
    """Every job has succeeded once, and has been published with one id and the same bytes."""
    names = sorted(f"job-{number}" for number in numbers)
    bodies = office.results(len(names))
    assert sorted(body["job_id"] for body in bodies) == names
    assert {body["status"] for body in bodies} == {"completed"}
    assert sorted(run.key for run in office.runs()) == names
    copies = office.google.take(RESULTS_SUB)
    assert len({(m.attributes["holdfast-id"], m.data) for m in copies}) == len(names)


def test_duplicates_poison_a_killed_and_a_stopped_worker(an_office):
    office = an_office()
    office.google.create(DLQ, f"{DLQ}-sub")
    office.google.create(
        JOBS, f"{JOBS}-sub", ack_deadline_seconds=ACK_DEADLINE, enable_message_ordering=True
    )
    office.google.create(RESULTS, RESULTS_SUB)
    # What somebody pulled and never acknowledged comes again, past the deadline.
    office.send((job(0), {}))
    [message] = office.google.pull(f"{JOBS}-sub")
    stopped, killed, _ = [office.start_worker() for _ in range(3)]
    for number in range(1, 15):
        office.send((job(number), {}))
        if number % 3 == 0:
            office.send((job(number), {}), (POISON[number % 5], {}))  # a duplicate
        if number == 5:
            stopped.send_signal(signal.SIGSTOP)
        if number == 10:
            killed.kill()
    until = time.monotonic() + 60
    while len(office.runs()) < 15:
        assert time.monotonic() < until, sorted(run.key for run in office.runs())
        time.sleep(0.2)
    stopped.send_signal(signal.SIGCONT)
    open_gate(office)
    one_result_each(office, range(15))
    poison = {POISON[number % 5] for number in range(3, 15, 3)}
    assert Counter(letter.body for letter in office.letters()) == dict.fromkeys(poison, 1)
    assert len(office.dead_letters(len(poison))) == len(poison)
    late = {"subscription": office.google.subscription(f"{JOBS}-sub"), "ack_ids": [message.ack_id]}
    office.google.subscriber.acknowledge(request=late)  # does no harm


def test_an_emulator_that_is_killed_and_started_again(an_office):
    """It forgets topics, subscriptions and messages; what was accepted is in the store."""
    emulator = PubSubEmulator()
    emulator.start()
    try:
        office = an_office(emulator)
        set_up = ("setup", "pubsub", "--project", office.project)
        assert office.holdfast(*set_up).returncode == 0
        office.start_worker()
        for number in range(6):
            office.send((job(number), {}))
        office.wait(lambda: len(office.runs()) == 6)
        emulator.kill()
        office.wait(lambda: "can't receive" in office.log())
        emulator.start()
        assert office.holdfast(*set_up).returncode in (0, 8)  # 8: the worker was faster
        for number in range(6, 9):
            office.send((job(number), {}))
        office.wait(lambda: len(office.runs()) == 9)
        open_gate(office)
        one_result_each(office, range(9))
        assert office.stop() == [0]
    finally:
        emulator.end()
