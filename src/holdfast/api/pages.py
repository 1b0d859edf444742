"""Small pages for people: logging in, and what went wrong. No script runs in them, nothing comes
from elsewhere, and what somebody else may have written is text."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

if TYPE_CHECKING:
    from holdfast.api.problems import ProblemDocument

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "same-origin",  # with none at all a form would come from the origin null
    "X-Content-Type-Options": "nosniff",
}
STYLE = """
:root { color-scheme: light dark; font: 17px/1.5 system-ui, sans-serif; }
main { max-width: 26rem; margin: 14vh auto 0; padding: 0 1.2rem; }
h1 { font-size: 1.5rem; margin: 0 0 .6rem; text-wrap: balance; }
form { display: grid; gap: .4rem; margin-top: 1.4rem; }
label { font-weight: 600; }
input { font: inherit; padding: .55rem .7rem; border: 1px solid #8a929b; border-radius: .4rem; }
button { font: inherit; font-weight: 600; padding: .55rem; margin-top: .5rem; cursor: pointer;
  border: 0; border-radius: .4rem; color: #fff; background: #0a58ca; }
input:focus-visible, button:focus-visible, a:focus-visible { outline: 3px solid #7ab7ff; }
small { color: light-dark(#57606a, #9aa4af); }
a { color: light-dark(#0a58ca, #7ab7ff); }
p { overflow-wrap: anywhere; }
.error { color: light-dark(#a11, #f88); }
"""


def root_of(request: Request) -> str:
    """The path that the service is mounted under."""
    return request.scope.get("root_path", "")


def login_page(
    request: Request,
    *,
    onward: str,
    wrong: str = "",
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    again: bool = False,
) -> Response:
    """Asks for a key; `onward` is where the browser goes then. `again`: it asks for the page once
    more at once."""
    root = escape(root_of(request))
    error = f'<p class="error" role="alert">{escape(wrong)}</p>' if wrong else ""
    body = f"""<h1>Log in</h1>
<p>Pages of this service are shown to those who have an API key with the scope <b>read</b>.</p>
{error}
<form method="post" action="{root}/login">
<label for="key">API key</label>
<input id="key" name="key" type="password" autocomplete="current-password" spellcheck="false"
 placeholder="hfk_…" required autofocus>
<input type="hidden" name="next" value="{escape(onward)}">
<button>Log in</button>
<small>The browser keeps a session of 12 hours that can look at pages and do nothing else. The key
is not kept.</small>
</form>"""
    return page("Log in", body, status, headers, reload=again)


def session_page(request: Request, tenant: str, key: str) -> Response:
    """For somebody who has logged in."""
    root = escape(root_of(request))
    body = f"""<h1>You are logged in</h1>
<p>You see the pages of tenant <b>{escape(tenant)}</b>, by the key <code>hfk_{escape(key)}_…</code>
</p>
<form method="post" action="{root}/logout"><button>Log out</button></form>"""
    return page("Logged in", body)


def problem_page(
    request: Request, problem: ProblemDocument, headers: Mapping[str, str]
) -> Response:
    """What went wrong, to a browser that wanted a page."""
    path = quote(request.scope["path"], safe="/:@!$&'()*+,;=~-._")
    if query := request.scope.get("query_string"):
        path += "?" + quote(query, safe="/:@!$&'()*+,;=~-._?%")
    if problem.code == "unauthenticated":
        # A link on a page of another site brings no cookies along (SameSite=Strict). The same
        # request from our own page does.
        comes_from_elsewhere = request.headers.get("sec-fetch-site") == "cross-site"
        return login_page(
            request,
            onward=path,
            status=problem.status,
            headers=headers,
            again=comes_from_elsewhere,
        )
    detail = escape(problem.detail) if isinstance(problem.detail, str) else ""
    body = f"<h1>{escape(problem.title)}</h1><p>{detail}</p>"
    if problem.status == 404:
        login = escape(f"{root_of(request)}/login?next={quote(path, safe='')}")
        body += f"""<p><small>Pages of another tenant are shown as if they did not exist:
<a href="{login}">log in with another key</a> if you have one.</small></p>"""
    return page(problem.title, body, problem.status, headers)


def page(
    title: str,
    body: str,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    *,
    reload: bool = False,
) -> Response:
    refresh = '<meta http-equiv="refresh" content="0">' if reload else ""
    text = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">{refresh}
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>{escape(title)}</title><style>{STYLE}</style></head>
<body><main>{body}</main></body></html>
"""
    return HTMLResponse(text, status, {**HEADERS, **(headers or {})})
