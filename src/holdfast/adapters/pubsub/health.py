"""What can be said about Pub/Sub: whether it answers, and whether topics and subscriptions are as
the settings want them."""

from __future__ import annotations

import time

from holdfast.adapters.google_credentials import ENCODED, service_account_info
from holdfast.adapters.pubsub import setup
from holdfast.adapters.pubsub.address import Address, parse
from holdfast.adapters.pubsub.setup import CheckedResource
from holdfast.model.topology import Topology
from holdfast.ports.health import Finding, Findings, make_finding, milliseconds

SET_UP = "`holdfast setup pubsub`"


async def findings(url: str, topology: Topology) -> Findings:
    address = parse(url)
    yield make_finding("address", str(address))
    yield _credentials(address)
    began = time.perf_counter()
    every = [checked async for checked in setup.check(url, topology)]
    took = milliseconds(time.perf_counter() - began)
    yield make_finding("reachable", f"{len(every)} requests answered in {took}")
    fine = [checked for checked in every if checked.status == "fine"]
    yield make_finding("resources", f"{_counted(fine)} as the settings want them")
    for checked in every:
        if checked.status != "fine":
            yield _finding(checked)


def _counted(every: list[CheckedResource]) -> str:
    topics = sum(checked.kind == "topic" for checked in every)
    subscriptions = len(every) - topics
    return (
        f"{topics} topic{'s' * (topics != 1)} and "
        f"{subscriptions} subscription{'s' * (subscriptions != 1)}"
    )


def _credentials(address: Address) -> Finding:
    if address.emulator:
        return make_finding(
            "credentials", f"none: {address.emulator} is an emulator, which keeps nothing"
        )
    account = service_account_info(ENCODED)
    return make_finding(
        "credentials",
        f"{account['client_email']}, from {ENCODED}" if account else "application default",
    )


def _finding(checked: CheckedResource) -> Finding:
    check = f"{checked.kind} {checked.name}"
    if checked.status == "missing":
        return make_finding(
            check,
            "missing",
            warn=True,
            why="a worker creates it if it may, with default properties; what is published before "
            "a subscription exists is lost to it",
            fix=SET_UP,
        )
    fixed = any(difference.is_fixed for difference in checked.differences)
    return make_finding(
        check,
        "; ".join(map(str, checked.differences)),
        warn=True,
        why="messages are delivered again sooner or later than configured, or to another topic"
        if not fixed
        else "this can't be changed: a worker with another filter or topic refuses it",
        fix=f"{SET_UP}, or correct the settings"
        if not fixed
        else f"delete it when it is empty (`gcloud pubsub subscriptions delete {checked.name}`), "
        f"then {SET_UP}",
    )
