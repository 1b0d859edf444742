"""One tenant with 10,000 queued runs and one with 10, both submitted over HTTP: the second does not
wait behind the first, on every store."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integration.api.live import STORES, LiveApi, store_url

from holdfast.model.commands import Claim
from holdfast.model.tenant import Quotas

MANY, FEW = 10_000, 10
BATCH = 1000
LIMIT = 8
"""Runs of one claim: each of the two tenants is given at least half of them, or all it has."""
UNLIMITED = Quotas(running=None, per_minute=None, queued=None)


@pytest.mark.parametrize("kind", STORES)
def test_the_small_tenant_is_in_the_next_claims(kind: str, tmp_path: Path) -> None:
    with LiveApi(store_url(kind, tmp_path), worker=False) as api:
        for tenant, count in (("large", MANY), ("small", FEW)):
            api.call(api.holdfast.tenants.create(tenant, UNLIMITED, actor="test"))
            key = api.call(api.holdfast.keys.create(tenant, ["submit"], actor="test")).text
            for start in range(0, count, BATCH):
                inputs = [{"name": f"{n}"} for n in range(start, min(start + BATCH, count))]
                accepted = api.post(
                    "/v1/pipelines/greet/runs/batch",
                    {"inputs": inputs},
                    headers={"X-Api-Key": key},
                )
                assert accepted.status_code == 202, accepted.text

        async def claim(number: int) -> list[str]:
            command = Claim(f"worker-{number}", "default", ["greet"], LIMIT, ttl=60.0)
            [claimed] = await api.holdfast.store.apply([command])
            return [run.tenant for run in claimed]

        waiting = FEW
        for number in range(4):
            tenants = api.call(claim(number))
            assert len(tenants) == LIMIT
            assert tenants.count("small") >= min(LIMIT // 2, waiting)
            waiting -= tenants.count("small")
        assert waiting == 0
