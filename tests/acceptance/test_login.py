"""A person with a browser opens a report while API keys are in use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from tests.acceptance.chromium import chromium
from tests.integration.api.live import LiveApi

from holdfast.apps.report import report

COMMENTS = Path(__file__).parents[2] / "examples" / "data" / "riverside.csv"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    yield context.new_page()
    context.close()


def log_in(page: Page, key: str) -> None:
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Log in").click()


def test_logging_in_watching_a_report_being_made_and_logging_out(page: Page) -> None:
    with LiveApi(pipelines=(report,)) as api:
        keys = api.holdfast.keys
        key = api.call(keys.create("default", ["submit", "read"], actor="test")).text
        with COMMENTS.open("rb") as file:
            response = api.http.post(
                "/create",
                data={"title": "A better town"},
                files={"file": ("comments.csv", file)},
                headers={"X-Api-Key": key},
            )
        url = api.url + response.json()["reportUrl"]
        page.goto(url)
        log_in(page, key[:-1])
        assert page.get_by_role("alert").inner_text() == "The key is not accepted."
        log_in(page, key)
        page.locator("#glance").wait_for(timeout=60_000)  # the page has looked by itself
        assert page.url == url
        assert page.evaluate("document.cookie") == ""
        assert key not in page.content()

        # A link on another site, which brings no cookie along: localhost is not 127.0.0.1.
        page.goto(api.url.replace("127.0.0.1", "localhost") + "/login")
        page.evaluate(f"document.body.innerHTML = '<a href=\"{url}\">the report</a>'")
        page.get_by_role("link", name="the report").click()
        page.locator("#glance").wait_for()
        assert page.url == url

        page.goto(f"{api.url}/login")
        page.get_by_role("button", name="Log out").click()
        page.goto(url)
        page.get_by_label("API key").wait_for()


def test_another_site_can_not_log_somebody_in(page: Page) -> None:
    with LiveApi(pipelines=(report,), worker=False) as api:
        key = api.call(api.holdfast.keys.create("default", ["read"], actor="test")).text
        page.goto(api.url.replace("127.0.0.1", "localhost") + "/health")
        form = f'<form method="post" action="{api.url}/login"><input name="key" value="{key}">'
        page.evaluate(f"document.body.innerHTML = '{form}<button>go</button></form>'")
        page.get_by_role("button", name="go").click()
        page.get_by_text("sent by a page of another site").wait_for()
        assert page.context.cookies() == []
