"""The page of the API: complete, readable without a network, and nothing that runs."""

from __future__ import annotations

import re

from tests.integration.api.live import LiveApi

from holdfast.api.docs_page import docs_page


def test_every_operation_and_shape_is_on_the_page(memory_api: LiveApi) -> None:
    page = memory_api.get("/docs").text
    document = memory_api.get("/openapi.json").json()
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert f'id="{operation["operationId"]}"' in page
        assert f"<code>{path}</code>" in page
    targets = set(re.findall(r'href="#([^"]+)"', page))
    assert {f"shape-{name}" for name in document["components"]["schemas"]} & targets
    assert targets <= set(re.findall(r'id="([^"]+)"', page))


def test_nothing_comes_from_elsewhere_and_nothing_runs(memory_api: LiveApi) -> None:
    answer = memory_api.get("/docs")
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert "<script" not in answer.text
    assert re.findall(r'(?:src|href)="(?!#|/openapi.json)', answer.text) == []


def test_texts_of_a_document_are_texts() -> None:
    evil = "<script>alert(1)</script>"
    operation = {
        "operationId": evil,
        "description": evil,
        "tags": [evil],
        "parameters": [{"name": evil, "schema": {"enum": [evil]}, "description": evil}],
        "responses": {"200": {"description": evil}},
    }
    document = {
        "info": {"title": evil, "version": evil},
        "paths": {f"/{evil}": {"get": operation}},
        "components": {"schemas": {evil: {"description": evil, "properties": {evil: {}}}}},
    }
    assert "<script" not in docs_page(document, "http://localhost", evil)


def test_a_browser_at_the_root_is_shown_the_page(memory_api: LiveApi) -> None:
    answer = memory_api.get("/", headers={"Accept": "text/html"}, follow_redirects=True)
    assert "<title>holdfast API</title>" in answer.text
    assert memory_api.get("/").json()["status"] == "ok"
