"""Secrets that a service is given or makes are in no file, no log line and no answer but the one
that hands them out."""

from __future__ import annotations

import re

import httpx2
from tests.acceptance.conftest import Cli
from tests.acceptance.test_serving import address, stopped
from tests.integration.api.test_tenants import ROUTES

from holdfast.api.authentication import COOKIE

WEBHOOKS_KEY = "canary-webhooks-7f3a9c1d5e"
MODEL_KEY = "sk-canary-4f1d9c2b7a55"
WRONG_KEY = "hfk_canarycanary_wrong"
IN_URL = "canary-in-a-query-string"


def test_secrets_of_a_service_are_nowhere(cli: Cli) -> None:
    admin = cli.here("tenants", "keys", "create", "--first").out.strip()
    served = cli.start(
        *("serve", "--port", "0", "--worker", "2"),
        HOLDFAST_WEBHOOKS_KEY=WEBHOOKS_KEY,
        HOLDFAST_WEBHOOKS_ALLOW="127.0.0.1",
        OPENAI_API_KEY=MODEL_KEY,
        HOLDFAST_LOG_LEVEL="debug",
    )
    url = address(served, "serves http")
    answers: list[str] = []
    with httpx2.Client(base_url=url, headers={"X-Api-Key": admin}, timeout=30) as http:

        def ask(method: str, path: str, **options) -> httpx2.Response:
            answer = http.request(method, path, **options)
            answers.append(f"{answer.headers}{answer.text}")
            return answer

        def secret(path: str, **body) -> dict:
            """A created secret is in this answer, and in no other."""
            answer = http.post(path, json=body)
            assert answer.status_code in (200, 201), answer.text
            return answer.json()

        http.post("/v1/tenants", json={"name": "acme"})
        issued = secret("/v1/keys", tenant="acme")
        rotated = secret(f"/v1/keys/{issued['key']['id']}/rotate")
        hook = secret("/v1/webhooks", url="http://127.0.0.1:9/hooks")
        turned = secret(f"/v1/webhooks/{hook['id']}/rotate")
        ask("POST", f"/v1/webhooks/{hook['id']}/test")
        body = {"input": {"name": "Ada"}}
        headers = {"Prefer": "wait=20", "X-Api-Key": issued["text"]}
        ask("POST", "/v1/pipelines/greet/runs", json=body, headers=headers)
        ask("POST", "/v1/pipelines/greet/runs", json={"input": {"name": 7}})
        ask("GET", "/v1/runs", headers={"X-Api-Key": WRONG_KEY})
        ask("GET", f"/v1/runs?api_key={IN_URL}&cursor=wrong")
        ask("GET", "/v1/runs", headers={"Authorization": f"Basic {admin}"})
        entered = http.post("/login", data={"key": issued["text"], "next": "/login"})
        session = entered.cookies[COOKIE]
        for path in ("/login", "/report/nothing"):
            ask("GET", path, headers={"Accept": "text/html"})
        ask("POST", "/login", data={"key": WRONG_KEY})
        for method, path in ROUTES:
            if method == "GET" and not path.endswith("/events"):
                ask("GET", re.sub(r"{[^}]+}", hook["id"], path))
    ended = stopped(served, within=8)
    texts = [issued["text"], rotated["text"], admin, session]
    secrets = [text.rpartition("_")[2] for text in texts]  # what follows the id of a key
    secrets += [item["secret"].removeprefix("whsec_") for item in (hook, turned)]
    secrets += [WEBHOOKS_KEY, MODEL_KEY, WRONG_KEY, IN_URL]
    assert len(set(secrets)) == len(secrets)
    files = [path.read_bytes() for path in cli.folder.rglob("*") if path.is_file()]
    everything = b"\n".join(
        [*files, ended.out.encode(), ended.err.encode(), *(item.encode() for item in answers)]
    )
    assert issued["key"]["id"].encode() in everything  # the search covers what it should
    assert hook["id"].encode() in everything
    assert b"serves http" in everything
    for canary in secrets:
        assert canary.encode() not in everything, canary
