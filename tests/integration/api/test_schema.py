"""Generated requests for every operation of the OpenAPI document: no answer is a failure of the
service, and each is what the document says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.integration.api.live import LiveApi

from holdfast import Holdfast
from holdfast.api import create_app

schema = schemathesis.openapi.from_dict(create_app(Holdfast("memory:")).openapi())
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[LiveApi, dict[str, str]]]:
    with LiveApi() as api:
        key = api.call(api.holdfast.keys.create("default", ["admin"], actor="test")).text
        yield api, {"Authorization": f"Bearer {key}"}


@schema.parametrize()
@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_what_the_document_says(case, served) -> None:
    api, headers = served
    response = case.call(base_url=api.url, headers=headers, timeout=20)
    case.validate_response(response, checks=CHECKS)
