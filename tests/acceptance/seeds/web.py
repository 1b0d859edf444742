"""A service with keys for the tests of routes: `acme1281` and `bolt` have one each, and an
administrator has one. Pipelines wait until they are let go."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from pydantic import BaseModel
from tests.integration.api.live import LiveApi, store_url

from holdfast import Lane, Permanent, Pipeline
from holdfast.api import create_app
from holdfast.api.authentication import KeyAuthentication

STORES = ("sqlite", "postgres", "redis")
QUEUE = "computeGenerationQueue"


class Billing(BaseModel):
    source: str = "billing.csv"
    trigger_by: str = "api_user"


class Gate:
    """Holds steps back."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.fails = False

    def pass_(self) -> None:
        assert self.open.wait(30)
        if self.fails:
            raise Permanent("the table does not exist")


def billing(gate: Gate) -> Pipeline[Any]:
    pipeline: Pipeline[Any] = Pipeline("gcp_billing_export", input=Billing)

    @pipeline.step
    def export(input: Billing) -> str:
        gate.pass_()
        return input.source

    return pipeline


def compute(gate: Gate) -> Pipeline[Any]:
    pipeline: Pipeline[Any] = Pipeline(
        "compute",
        input=dict,
        lane=Lane(QUEUE, order="fifo"),
        key=lambda job: job["instanceId"],
        labels=lambda job: {"microserviceId": job["microserviceId"]},
    )

    @pipeline.step(name="API_GENERATION")
    def generate(input: dict) -> str:  # type: ignore[type-arg]
        gate.pass_()
        return input["instanceId"]

    return pipeline


def creative(gate: Gate) -> Pipeline[Any]:
    pipeline: Pipeline[Any] = Pipeline("creative", input=dict, key=lambda job: job["job_id"])

    @pipeline.step
    def deliver(input: dict) -> dict[str, str]:  # type: ignore[type-arg]
        gate.pass_()
        return {"audio": "a.wav", "video": "v.html", "preset": input.get("preset", "")}

    return pipeline


class Web:
    """The service, its gate, and a client for each key."""

    def __init__(self, live: LiveApi, gate: Gate) -> None:
        self.live, self.gate = live, gate
        self._clients: list[httpx2.Client] = []

    def client(self, tenant: str, *scopes: str) -> httpx2.Client:
        """Somebody with a key, sent as `x-api-key`."""
        if tenant != "default":
            self.live.call(self._tenant(tenant))
        keys = self.live.holdfast.keys
        issued = self.live.call(keys.create(tenant, list(scopes), actor="test", name=tenant))
        headers = {"x-api-key": issued.text}
        client = httpx2.Client(base_url=self.live.url, headers=headers, timeout=30)
        self._clients.append(client)
        return client

    async def _tenant(self, name: str) -> None:
        tenants = self.live.holdfast.tenants
        if name not in [tenant.name for tenant in await tenants.list()]:
            await tenants.create(name, actor="test")

    def ended(self, client: httpx2.Client, run: str) -> dict[str, Any]:
        answer = client.get(f"/v1/runs/{run}", headers={"Prefer": "wait=20"})
        return answer.json()["run"]

    def close(self) -> None:
        for client in self._clients:
            client.close()


@contextmanager
def a_web(kind: str, folder: Path) -> Iterator[Web]:
    gate = Gate()
    pipelines = (billing(gate), compute(gate), creative(gate))
    with LiveApi(
        store_url(kind, folder),
        pipelines=pipelines,
        make=lambda holdfast: create_app(holdfast, authenticate=KeyAuthentication(holdfast)),
    ) as live:
        web = Web(live, gate)
        try:
            yield web
        finally:
            gate.open.set()
            web.close()
