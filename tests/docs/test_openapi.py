"""The OpenAPI document in the repository is that of the code: every change of it is reviewed."""

import json
from pathlib import Path

from holdfast import Holdfast
from holdfast.api import create_app

SNAPSHOT = Path(__file__).parents[2] / "docs" / "reference" / "openapi.json"


def test_the_document_in_the_repository_is_that_of_the_code():
    document = json.loads(json.dumps(create_app(Holdfast("memory:")).openapi()))
    assert document["openapi"].startswith("3.1")
    assert document == json.loads(SNAPSHOT.read_text()), (
        "write it anew: .venv/bin/holdfast openapi > docs/reference/openapi.json"
    )


def test_every_operation_has_a_name_of_its_own_and_says_what_it_does():
    operations = [
        operation
        for path in json.loads(SNAPSHOT.read_text())["paths"].values()
        for operation in path.values()
    ]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names) > 10
    assert all(operation.get("description") for operation in operations)
