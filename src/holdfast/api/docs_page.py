"""`/docs`: every route on one page, made from the OpenAPI document. Nothing is fetched from
elsewhere and no script runs, so it works offline and behind every proxy."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse

router = APIRouter()

Json = Mapping[str, Any]

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"
STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif;
  --line: light-dark(#d7dbe0, #3a4048); --soft: light-dark(#f4f6f8, #1c2025);
  --quiet: light-dark(#57606a, #9aa4af); --link: light-dark(#0a58ca, #7ab7ff); }
body { margin: 0; background: light-dark(#fff, #14171a); color: light-dark(#1c2024, #e6e9ec); }
main, header { max-width: 58rem; margin: 0 auto; padding: 0 1.2rem; }
header { padding-top: 2.5rem; }
h1 { margin: 0; font-size: 1.9rem; }
h2 { margin: 2.4rem 0 .6rem; font-size: 1.25rem; text-transform: capitalize; }
h3 { margin: 1.2rem 0 .3rem; font-size: .85rem; color: var(--quiet); }
a { color: var(--link); }
nav { display: flex; flex-wrap: wrap; gap: .3rem 1rem; margin-top: 1rem; }
nav a { text-transform: capitalize; }
details { border: 1px solid var(--line); border-radius: .5rem; margin: .4rem 0; }
summary { display: grid; grid-template-columns: 4.6rem minmax(0, 1fr); gap: 0 .8rem;
  padding: .5rem .8rem; cursor: pointer; align-items: baseline; }
summary small { grid-column: 2; color: var(--quiet); font-size: .9rem; }
summary:focus-visible { outline: 2px solid var(--link); border-radius: .5rem; }
details > div { padding: 0 1rem 1rem; border-top: 1px solid var(--line); }
code, pre { font: .88rem/1.5 ui-monospace, monospace; overflow-wrap: anywhere; }
pre { background: var(--soft); padding: .7rem .9rem; border-radius: .4rem; overflow-x: auto;
  white-space: pre-wrap; margin: .3rem 0; }
b.method { font: 600 .78rem/1.5 ui-monospace, monospace; text-align: center; border-radius: .3rem;
  padding: .1rem .3rem; color: #fff; background: #57606a; }
b.get { background: #1a6fb5; } b.post { background: #1a7f4b; }
b.delete { background: #b3261e; } b.patch { background: #8a5a00; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th { text-align: left; font-weight: 600; color: var(--quiet); }
td, th { padding: .25rem .8rem .25rem 0; vertical-align: top;
  border-bottom: 1px solid var(--line); }
td:first-child { white-space: nowrap; }
footer { height: 4rem; }
@media (max-width: 40rem) { td:first-child { white-space: normal; } }
"""


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> HTMLResponse:
    """What can be asked, on one page."""
    root = request.scope.get("root_path", "")
    url = f"{request.url.scheme}://{request.url.netloc}{root}"
    page = docs_page(request.app.openapi(), url, root)
    return HTMLResponse(page, headers={"Content-Security-Policy": POLICY})


def docs_page(document: Json, url: str, root: str = "") -> str:
    """`url` is where the service answers, for examples; `root` is the path that it is mounted
    under."""
    info = document["info"]
    title = escape(info["title"])
    tags = _by_tag(document)
    links = "".join(f'<a href="#{_id(tag)}">{escape(tag)}</a>' for tag in [*tags, "shapes"])
    sections = "".join(_section(tag, operations, url) for tag, operations in tags.items())
    shapes = "".join(
        _shape(name, schema) for name, schema in document["components"]["schemas"].items()
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} API</title><style>{STYLE}</style></head>
<body><header><h1>{title} API</h1>
<p>{escape(info.get("summary", ""))} Version {escape(info["version"])}.
<a href="{escape(root)}/openapi.json">openapi.json</a> describes the same for machines.</p>
<p>Send an API key as <code>Authorization: Bearer KEY</code> or <code>X-Api-Key: KEY</code>. Without
any keys only this machine may call, and needs none. Errors are problem documents (RFC 9457) with
what happened and what to do.</p>
<nav aria-label="Sections">{links}</nav></header>
<main>{sections}
<section id="shapes"><h2>Shapes</h2>{shapes}</section></main><footer></footer></body></html>
"""


def _by_tag(document: Json) -> dict[str, list[tuple[str, str, Json]]]:
    tags: dict[str, list[tuple[str, str, Json]]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            [tag, *_] = operation.get("tags") or ["other"]
            tags.setdefault(tag, []).append((method, path, operation))
    return tags


def _section(tag: str, operations: list[tuple[str, str, Json]], url: str) -> str:
    inner = "".join(_operation(*operation, url) for operation in operations)
    return f'<section id="{_id(tag)}"><h2>{escape(tag)}</h2>{inner}</section>'


def _operation(method: str, path: str, operation: Json, url: str) -> str:
    description = " ".join(operation.get("description", "").split())
    first, _, rest = description.partition(". ")
    more = f"<p>{_text(rest)}</p>" if rest else ""
    return f"""<details id="{escape(operation["operationId"])}"><summary>
<b class="method {method}">{method.upper()}</b><code>{escape(path)}</code>
<small>{_text(first.rstrip("."))}</small></summary><div>{more}
{_parameters(operation)}{_body(operation)}{_answers(operation)}
<h3>Try it</h3><pre>{escape(_curl(method, path, operation, url))}</pre></div></details>
"""


def _parameters(operation: Json) -> str:
    rows = [
        (f"<code>{escape(p['name'])}</code>", _type(p["schema"]), _about(p, p["schema"]))
        for p in operation.get("parameters", ())
    ]
    return _table("Parameters", ("name", "type", ""), rows)


def _body(operation: Json) -> str:
    return "".join(
        f"<h3>Body</h3><p>{_type(content['schema'])} as <code>{escape(kind)}</code></p>"
        for kind, content in operation.get("requestBody", {}).get("content", {}).items()
    )


def _answers(operation: Json) -> str:
    rows = []
    for status, response in operation["responses"].items():
        kinds = [
            f"{_type(content.get('schema', {}))} as <code>{escape(kind)}</code>"
            for kind, content in response.get("content", {}).items()
        ]
        status = "error" if status == "default" else status
        rows.append((escape(status), _text(response["description"]), "<br>".join(kinds)))
    return _table("Answers", ("status", "", ""), rows)


def _shape(name: str, schema: Json) -> str:
    required = schema.get("required", ())
    rows = [
        (
            f"<code>{escape(field)}</code>",
            _type(about),
            ("required. " if field in required else "") + _about(about, about),
        )
        for field, about in schema.get("properties", {}).items()
    ]
    plain = "" if rows else f"<p>{_type(schema)}</p>"
    description = " ".join(schema.get("description", "").split())
    return f"""<details id="shape-{escape(name)}"><summary><span></span><code>{escape(name)}</code>
</summary><div><p>{_text(description)}</p>{plain}
{_table("Fields", ("name", "type", ""), rows)}</div></details>
"""


# --- small parts ----------------------------------------------------------------------------------


def _table(title: str, headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{heading}</th>" for heading in headings)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<h3>{title}</h3><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _type(schema: Json) -> str:
    """A schema in a few words; those that have a name are links."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f'<a href="#shape-{escape(name)}">{escape(name)}</a>'
    if several := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(_type(one) for one in several)
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return " or ".join(f"<code>{escape(json.dumps(value))}</code>" for value in values)
    match schema.get("type"):
        case "array":
            return f"list of {_type(schema.get('items', {}))}"
        case "object" if isinstance(schema.get("additionalProperties"), Mapping):
            return f"object of {_type(schema['additionalProperties'])}"
        case list() as several:
            return escape(" or ".join(several))
        case str() as kind:
            return escape(f"{kind} ({schema['format']})" if "format" in schema else kind)
    return "any JSON"


def _about(described: Json, schema: Json) -> str:
    parts = [_text(described.get("description", ""))]
    if schema.get("default") not in (None, [], {}, ""):
        parts.append(f"Default <code>{escape(json.dumps(schema['default']))}</code>.")
    for name, word in (("minimum", "at least"), ("maximum", "at most"), ("maxLength", "at most")):
        if name in schema:
            parts.append(
                f"{word.capitalize()} {schema[name]}{' characters' if name == 'maxLength' else ''}."
            )
    return " ".join(part for part in parts if part)


def _text(text: str) -> str:
    """Words between backquotes are code."""
    parts = escape(" ".join(text.split())).split("`")
    return "".join(f"<code>{part}</code>" if n % 2 else part for n, part in enumerate(parts))


def _id(tag: str) -> str:
    return escape(tag.replace(" ", "-"))


def _curl(method: str, path: str, operation: Json, url: str) -> str:
    return " ".join(_words(method, path, operation, url))


def _words(method: str, path: str, operation: Json, url: str) -> Iterator[str]:
    yield "curl"
    if method not in ("get", "post"):
        yield f"-X {method.upper()}"
    responses = operation["responses"].values()
    if any("text/event-stream" in response.get("content", {}) for response in responses):
        yield "-N -H 'Accept: text/event-stream'"
    if operation.get("requestBody"):
        yield "-H 'Content-Type: application/json' -d '{}'"
    elif method == "post":
        yield "-X POST"
    yield f"'{url}{path}'" if "{" in path else url + path
