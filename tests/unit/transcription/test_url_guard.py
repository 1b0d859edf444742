"""URLs that media may not be fetched from, in every spelling that we know of."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.apps.transcription.media.fetching import FetchLimits, fetch
from holdfast.apps.transcription.media.url_guard import Refused, check_url
from holdfast.errors import Permanent, Transient

PUBLIC = ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"]


def public(host: str, port: int) -> list[str]:
    return PUBLIC


FORMS = [
    # schemes
    "file:///etc/passwd",
    "gopher://example.org/",
    "ftp://example.org/a.mp3",
    "http://example.org/a.mp3",
    "data:audio/wav;base64,AAAA",
    "jar:https://example.org/a!/b",
    "dict://example.org:11211/",
    "//example.org/a.mp3",
    "/etc/passwd",
    "",
    # loopback and its spellings
    "https://127.0.0.1/",
    "https://127.1/",
    "https://127.0.1/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0x7f.0.0.1/",
    "https://0177.0.0.1/",
    "https://017700000001/",
    "https://127.000.000.001/",
    "https://0/",
    "https://0.0.0.0/",
    "https://127.0.0.1./",
    "https://①②⑦.⓪.⓪.①/",
    "https://１２７.０.０.１/",
    "https://127。0。0。1/",
    "https://localhost/",
    "https://LOCALHOST/",
    "https://localhost./",
    "https://a.localhost/",
    "https://[::1]/",
    "https://[::]/",
    "https://[0:0:0:0:0:0:0:1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:7f00:1]/",
    "https://[::127.0.0.1]/",
    # private networks, link-local, metadata
    "https://10.0.0.1/",
    "https://172.16.0.1/",
    "https://192.168.1.1/",
    "https://100.64.0.1/",
    "https://169.254.169.254/latest/meta-data/",
    "https://[fe80::1]/",
    "https://[fe80::1%25eth0]/",
    "https://[fc00::1]/",
    "https://[fec0::1]/",
    "https://metadata.google.internal/computeMetadata/v1/",
    "https://printer.local/",
    "https://router.lan/",
    "https://intranet/",
    # addresses that carry another one
    "https://[2002:7f00:1::]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[64:ff9b:1::a00:1]/",
    "https://[2001:0:7f00:1::]/",
    # nobody's addresses
    "https://224.0.0.1/",
    "https://255.255.255.255/",
    "https://240.0.0.1/",
    "https://192.0.2.1/",
    "https://[ff02::1]/",
    "https://[2001:db8::1]/",
    # tricks with the form
    "https://user@example.org/",
    "https://example.org@127.0.0.1/",
    "https://example.org:80@127.0.0.1/",
    "https://example.org\\@127.0.0.1/",
    "https://example.org:22/",
    "https://example.org:6379/",
    "https://example.org:99999/",
    "https://exam ple.org/",
    "https://example.org/\r\nHost: 127.0.0.1",
    "https://127.0.0.1%2eexample.org/",
    "https://[::1/",
    "https://ex\u200bample.org/",
    "https://-example.org/",
]


def test_there_are_sixty_of_them() -> None:
    assert len(set(FORMS)) >= 60


@pytest.mark.parametrize("url", FORMS)
def test_what_is_not_public_is_refused(url: str) -> None:
    with pytest.raises(Refused):
        check_url(url, resolver=public)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "169.254.169.254",
        "::1",
        "::ffff:10.0.0.1",
        "fd00::1",
        "2002:a00:1::",
    ],
)
def test_a_name_that_leads_inside_is_refused(address: str) -> None:
    """Also if it has a public address as well: which one is used is not ours to choose."""
    for addresses in ([address], [PUBLIC[0], address]):
        with pytest.raises(Refused, match="not a public address"):
            check_url("https://example.org/", resolver=lambda *_: addresses)  # noqa: B023


def test_a_public_address_is_fine() -> None:
    target = check_url("https://Example.ORG/a.mp3?b=c#d", resolver=public)
    assert (target.host, target.port, target.path) == ("example.org", 443, "/a.mp3?b=c")
    assert list(target.addresses) == PUBLIC
    check_url("https://bücher.example.org:443/", resolver=public)
    check_url("https://93.184.215.14/")


def test_only_hosts_that_are_allowed_if_any_are() -> None:
    allowed = ("media.internal", "127.0.0.1:8080")
    check_url("http://media.internal/a", allowed, lambda *_: ["10.0.0.7"])
    check_url("http://127.0.0.1:8080/a", allowed)
    for url in ("https://example.org/", "http://127.0.0.1:8081/", "ftp://media.internal/"):
        with pytest.raises(Refused):
            check_url(url, allowed, public)


def test_a_name_that_is_not_known_now_may_be_later() -> None:
    def unknown(host: str, port: int) -> list[str]:
        raise OSError("Temporary failure in name resolution")

    with pytest.raises(Transient, match="can't be resolved"):
        check_url("https://example.org/", resolver=unknown)


# --- fetching -------------------------------------------------------------------------------------


class Server(http.server.BaseHTTPRequestHandler):
    seen: list[dict[str, str]]

    def do_GET(self) -> None:
        type(self).seen.append(dict(self.headers))
        name = self.path.strip("/")
        if name.isdecimal():
            self.send_response(int(name))
            self.end_headers()
        elif name.startswith("to/"):
            self.send_response(302)
            self.send_header("Location", name.removeprefix("to/"))
            self.send_header("Set-Cookie", "a=b")
            self.end_headers()
        else:
            self.send_response(200)
            self.send_header("Content-Length", "20" if name == "short" else "10")
            self.end_headers()
            self.wfile.write(b"0123456789")

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def server() -> Iterator[str]:
    Server.seen = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server) as httpd:
        threading.Thread(target=httpd.serve_forever, args=(0.05,), daemon=True).start()
        yield f"127.0.0.1:{httpd.server_address[1]}"
        httpd.shutdown()


def got(server: str, path: str, folder: Path, **limits: Any) -> bytes:
    fetch(f"http://{server}/{path}", folder / "out", FetchLimits((server,), **limits))
    return (folder / "out").read_bytes()


def test_what_is_there_is_fetched_also_behind_redirects(server: str, tmp_path: Path) -> None:
    assert got(server, "a.mp3", tmp_path) == b"0123456789"
    assert got(server, f"to/http://{server}/to//a.mp3", tmp_path) == b"0123456789"
    assert all("Cookie" not in seen and "Authorization" not in seen for seen in Server.seen)


@pytest.mark.parametrize(
    ("path", "limits", "error", "says"),
    [
        ("404", {}, Permanent, "answered 404"),
        ("403", {}, Permanent, "answered 403"),
        ("500", {}, Transient, "answered 500"),
        ("429", {}, Transient, "answered 429"),
        ("short", {}, Transient, "10 of 20 bytes|broke off"),
        ("a.mp3", {"max_bytes": 5}, Permanent, "more than"),
        ("a.mp3", {"max_seconds": 0.0}, Permanent, "did not arrive within"),
        ("to/http://10.0.0.1/", {}, Refused, "not among the hosts"),
        ("to/file:///etc/passwd", {}, Refused, "can't be read|not among"),
        ("to//to//to//to//to//a", {}, Refused, "more than 3 redirects"),
    ],
)
def test_what_can_not_be_had_says_why(
    server: str, tmp_path: Path, path: str, limits: Any, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        got(server, path, tmp_path, **limits)


def test_the_address_that_was_looked_at_is_the_one_that_is_used(
    server: str, tmp_path: Path
) -> None:
    """The name is resolved once: what it means a moment later does not matter."""
    host, _, port = server.partition(":")
    answers = iter([[host], ["203.0.113.9"]])
    name = f"rebinding.example.org:{port}"
    fetch(
        f"http://{name}/a",
        tmp_path / "out",
        FetchLimits((name,)),
        resolver=lambda *_: next(answers),
    )
    assert Server.seen[0]["Host"] == name
