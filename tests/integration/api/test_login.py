"""Pages in a browser while API keys are in use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import httpx2
import pytest
from fastapi import FastAPI
from starlette.requests import Request
from tests.integration.api.live import LiveApi, greet
from tests.integration.api.test_tenants import PUBLIC, ROUTES

from holdfast import Holdfast
from holdfast.api import create_app
from holdfast.api.access import Caller
from holdfast.api.authentication import COOKIE, LocalCaller
from holdfast.apps.report import report
from holdfast.model.api_key import make_key
from holdfast.services.page_sessions import MOST

PAGE = {"Accept": "text/html,application/xhtml+xml"}
PAGES = {("GET", "/report/{report_id}"), ("GET", "/report/{report_id}/{file}")}
"""All routes that a session opens."""
ROWS = [{"id": "0", "comment": "The buses should run later."}]


class Site:
    """A service with two tenants, and a report of one of them that is still being made."""

    def __init__(self, api: LiveApi) -> None:
        self.api = api
        self.keys: dict[str, str] = {}
        for tenant in ("acme", "other"):
            api.call(api.holdfast.tenants.create(tenant, actor="test"))
            self.keys[tenant] = self.key(tenant, "submit", "read", "operate")
        body = {"userConfig": {"title": "Buses"}, "data": ["csv", ROWS]}
        response = api.post("/create", body, headers={"X-Api-Key": self.keys["acme"]})
        self.report: str = response.json()["reportUrl"]

    def key(self, tenant: str, *scopes: str) -> str:
        keys = self.api.holdfast.keys
        return self.api.call(keys.create(tenant, list(scopes), actor="test")).text

    @contextmanager
    def browser(self, key: str | None = None) -> Iterator[httpx2.Client]:
        """Somebody with a browser, logged in if a key is given."""
        with httpx2.Client(base_url=self.api.url, headers=PAGE, timeout=30) as browser:
            if key is not None:
                assert log_in(browser, key).status_code == 303
            yield browser


def log_in(browser: httpx2.Client, key: str, onward: str = "/", **headers: str) -> httpx2.Response:
    return browser.post("/login", data={"key": key, "next": onward}, headers=headers)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with LiveApi(worker=False, pipelines=(greet, report)) as api:
        yield Site(api)


def test_a_browser_without_a_key_is_asked_for_one_and_led_to_the_page(site: Site) -> None:
    with site.browser() as browser:
        response = browser.get(f"{site.report}?part=2")
        assert response.status_code == 401
        assert response.headers["content-type"].startswith("text/html")
        assert "default-src 'none'" in response.headers["content-security-policy"]
        assert "<script" not in response.text
        onward = re.search(r'name="next" value="([^"]+)"', response.text)
        assert onward is not None
        assert onward[1] == f"{site.report}?part=2"
        entered = log_in(browser, site.keys["acme"], onward[1])
        assert (entered.status_code, entered.headers["location"]) == (303, onward[1])
        page = browser.get(entered.headers["location"])
        assert page.status_code == 200
        assert "Buses" in page.text
        assert "tenant <b>acme</b>" in browser.get("/login").text


def test_a_program_without_a_key_is_answered_as_before(site: Site) -> None:
    answer = site.api.get(site.report)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")


def test_the_cookie_is_no_key_and_stays_with_us(site: Site) -> None:
    with site.browser() as browser:
        set_cookie = log_in(browser, site.keys["acme"]).headers["set-cookie"]
        assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(set_cookie.split("; "))
        assert "Secure" not in set_cookie
        assert site.keys["acme"] not in set_cookie
        forwarded = log_in(browser, site.keys["acme"], **{"X-Forwarded-Proto": "https"})
        assert "Secure" in forwarded.headers["set-cookie"]
        session = browser.cookies[COOKIE]
    key, _, secret = session.partition(".")
    stored = site.api.call(site.api.holdfast.runtime.records.list("page-sessions/"))
    assert key in {record.key.split("/")[1] for record in stored.records}
    assert secret not in str(stored)
    for header in ({"X-Api-Key": secret}, {"X-Api-Key": session}):
        assert site.api.get("/v1/runs", headers=header).status_code == 401


@pytest.mark.parametrize(("method", "path"), ROUTES, ids=lambda part: part)
def test_a_session_opens_pages_and_nothing_else(site: Site, method: str, path: str) -> None:
    with site.browser(site.keys["acme"]) as browser:
        filled = re.sub(r"{report_id}", site.report.removeprefix("/report/"), path)
        answer = browser.request(method, re.sub(r"{[^}]+}", "x", filled))
        if (method, path) in PAGES:
            assert answer.status_code in (200, 404)
        elif not PUBLIC.fullmatch(path):
            assert answer.status_code == 401


def test_a_page_of_another_tenant_is_one_that_does_not_exist(site: Site) -> None:
    with site.browser(site.keys["other"]) as browser:
        foreign = browser.get(site.report)
        response = browser.get("/report/" + "x" * len(site.report.removeprefix("/report/")))
    assert foreign.status_code == response.status_code == 404
    report_id = site.report.removeprefix("/report/")
    assert foreign.text.replace(report_id, "x" * len(report_id)) == response.text
    assert "Buses" not in foreign.text


def test_a_key_that_is_sent_decides_whatever_the_cookie_says(site: Site) -> None:
    with site.browser(site.keys["acme"]) as browser:
        other = {"X-Api-Key": site.keys["other"]}
        assert browser.get(site.report, headers=other).status_code == 404
        none = {"X-Api-Key": make_key().text}
        assert browser.get(site.report, headers=none).status_code == 401


def test_what_is_no_session_is_asked_to_log_in(site: Site) -> None:
    with site.browser(site.keys["acme"]) as browser:
        session = browser.cookies[COOKIE]
    key, _, secret = session.partition(".")
    others_key = site.keys["other"].split("_")[1]
    wrong = [
        "",
        ".",
        key,
        secret,
        f"{key}.",
        f"{key}.{site.keys['acme']}",
        f"{key}.{make_key().text}",
        f"{others_key}.{secret}",
        f"{key}/../{others_key}.{secret}",
        f"{'x' * 12}.{secret}",
        session[:-1],
        session + "0",
        session.upper(),
        f'"{session}x"',
        "x" * 5000,
    ]
    for cookie in wrong:
        headers = {**PAGE, "Cookie": f"{COOKIE}={cookie}"}
        assert site.api.get(site.report, headers=headers).status_code == 401, cookie
    headers = {**PAGE, "Cookie": f"{COOKIE}={session}"}
    assert site.api.get(site.report, headers=headers).status_code == 200


@pytest.mark.parametrize(
    "key",
    ["", "secret", make_key().text, "hfk_ü", "\0", "<script>alert(1)</script>"],
    ids=["none", "a word", "never made", "no ASCII", "NUL", "HTML"],
)
def test_a_key_that_is_none_is_refused_without_a_reason(site: Site, key: str) -> None:
    with site.browser() as browser:
        refused = log_in(browser, key, site.report)
        assert refused.status_code == 401
        assert "The key is not accepted." in refused.text
        assert "set-cookie" not in refused.headers
        assert key == "" or key not in refused.text


def test_a_key_that_may_not_read_opens_no_page(site: Site) -> None:
    with site.browser() as browser:
        refused = log_in(browser, site.key("acme", "submit"))
        assert (refused.status_code, "scope read" in refused.text) == (403, True)
        assert "set-cookie" not in refused.headers


@pytest.mark.parametrize(
    "onward",
    [
        "https://example.org/",
        "//example.org/",
        "/\\example.org/",
        "\\/example.org",
        "/\t/example.org",
        "/report/a\r\nSet-Cookie: a=b",
        "javascript:alert(1)",
        "report",
        "",
    ],
)
def test_nobody_is_led_to_another_site(site: Site, onward: str) -> None:
    with site.browser() as browser:
        assert log_in(browser, site.keys["acme"], onward).headers["location"] == "/login"
        form = httpx2.get(f"{site.api.url}/login", params={"next": onward})
        assert 'name="next" value="/login"' in form.text


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://example.org"},
        {"Origin": "null"},
    ],
    ids=str,
)
def test_a_form_of_another_site_is_refused(site: Site, headers: dict[str, str]) -> None:
    with site.browser(site.keys["acme"]) as browser:
        refused = log_in(browser, site.keys["other"], **headers)
        assert (refused.status_code, "set-cookie" in refused.headers) == (403, False)
        assert browser.post("/logout", headers=headers).status_code == 403
        assert browser.get(site.report).status_code == 200


def test_a_form_of_ours_is_known_by_either_header(site: Site) -> None:
    for headers in ({"Sec-Fetch-Site": "same-origin"}, {"Origin": site.api.url}):
        with site.browser() as browser:
            assert log_in(browser, site.keys["acme"], **headers).status_code == 303


def test_a_link_on_another_site_is_tried_once_more_from_our_own_page(site: Site) -> None:
    """The browser sends no cookie with it, and does with the second request."""
    with site.browser() as browser:
        first = browser.get(site.report, headers={"Sec-Fetch-Site": "cross-site"})
        assert 'http-equiv="refresh" content="0"' in first.text
        second = browser.get(site.report, headers={"Sec-Fetch-Site": "same-origin"})
        assert 'http-equiv="refresh"' not in second.text


def test_after_logging_out_the_cookie_opens_nothing(site: Site) -> None:
    with site.browser(site.keys["acme"]) as browser:
        session = browser.cookies[COOKIE]
        response = browser.post("/logout")
        assert (response.status_code, response.headers["location"]) == (303, "/login")
        assert COOKIE not in browser.cookies
        assert browser.get(site.report).status_code == 401
    headers = {**PAGE, "Cookie": f"{COOKIE}={session}"}
    assert site.api.get(site.report, headers=headers).status_code == 401


def test_a_key_has_so_many_sessions_and_the_oldest_ends(site: Site) -> None:
    key = site.key("acme", "read")
    with ExitStack() as open_ones:
        browsers = [open_ones.enter_context(site.browser(key)) for _ in range(MOST + 1)]
        answers = [browser.get(site.report).status_code for browser in browsers]
    assert answers == [401] + [200] * MOST


@pytest.mark.parametrize("body", [b"key=" + b"x" * 9000, b"&".join([b"a=b"] * 20), b"\xff\xfe"])
def test_a_form_that_is_none_is_refused(site: Site, body: bytes) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert site.api.http.post("/login", content=body, headers=headers).status_code in (
        401,
        413,
        422,
    )


def test_a_session_ends_with_its_key(site: Site) -> None:
    key = site.key("acme", "read")
    with site.browser(key) as browser:
        assert browser.get(site.report).status_code == 200
        site.api.call(site.api.holdfast.keys.revoke(key, actor="test"))
        assert browser.get(site.report).status_code == 401
        assert "You are logged in" not in browser.get("/login").text


def test_under_another_path_everything_stays_below_it() -> None:
    def make(holdfast: Holdfast) -> FastAPI:
        site = FastAPI()
        site.mount("/pipelines", inner := create_app(holdfast))
        site.state.health, site.state.hub = inner.state.health, inner.state.hub
        return site

    with LiveApi(worker=False, pipelines=(greet, report), make=make) as api:
        key = api.call(api.holdfast.keys.create("default", ["read"], actor="test")).text
        with httpx2.Client(base_url=api.url, headers=PAGE) as browser:
            response = browser.get("/pipelines/report/r-1")
            assert 'action="/pipelines/login"' in response.text
            assert 'value="/pipelines/report/r-1"' in response.text
            entered = browser.post("/pipelines/login", data={"key": key, "next": "/elsewhere?x"})
            assert "Path=/pipelines" in entered.headers["set-cookie"]
            assert browser.get("/pipelines/report/r-1").status_code == 404


def test_without_keys_pages_are_for_this_machine(memory_api: LiveApi) -> None:
    answer = memory_api.get("/report/r-1", headers={**PAGE, "Host": "example.org"})
    assert answer.status_code == 403
    assert "make one with" in answer.text


def test_who_brings_users_of_their_own_has_no_login() -> None:
    async def somebody(request: Request) -> Caller:
        return LocalCaller("acme", "ann")

    def make(holdfast: Holdfast):
        return create_app(holdfast, authenticate=somebody)

    with LiveApi(worker=False, pipelines=(greet, report), make=make) as api:
        assert api.get("/login").status_code == 404
        assert api.get("/report/r-1", headers=PAGE).status_code == 404
