"""A double of Google Cloud Storage, for tests: the part of its XML API that buckets are used by,
in this process's memory, strict about what Google documents.

    with GcsDouble() as gcs:
        blobs = make_blobs(gcs.url("reports"))

It knows put, get, head and delete with a generation match, and list in pages; generations, ETag and
Last-Modified; metadata; bearer tokens. What it does not know, it refuses with 501: a parameter, a
condition, any header of Google's or Amazon's. Nothing is ignored silently. `fail` and
`lose_answers` make the next requests go wrong."""

from __future__ import annotations

import base64
import hashlib
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from types import TracebackType
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

MAX_NAME = 1024
MAX_METADATA = 8 * 1024
GENERATION = "x-goog-if-generation-match"
QUERY = {"list-type", "prefix", "delimiter", "max-keys", "continuation-token", "start-after"}
META = "x-goog-meta-"
KNOWN = {"PUT": {GENERATION, "content-md5"}, "DELETE": {GENERATION}, "LIST": set()}
READING = {GENERATION, "if-match"}


@dataclass(frozen=True, slots=True)
class GcsObject:
    data: bytes
    generation: int
    metadata: Mapping[str, str]
    content_type: str
    updated: float

    @property
    def etag(self) -> str:
        return f'"{hashlib.md5(self.data, usedforsecurity=False).hexdigest()}"'


class Refusal(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


@dataclass(slots=True)
class HttpAnswer:
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class GcsDouble:
    """The server. `objects` are those of a bucket, for tests that look past the client."""

    def __init__(self, *buckets: str, page: int = 1000, token: str | None = None) -> None:
        self.page = page
        """Most keys in one answer of a list."""
        self.token = token
        """What a request has to bring as `Authorization: Bearer …`; None: nothing."""
        self.requests: list[str] = []
        """Method and path of every request so far."""
        self._buckets: dict[str, dict[str, GcsObject]] = {name: {} for name in buckets}
        self._generations = count(time.time_ns() // 1000)
        self._failures: list[int] = []
        self._lost = 0
        self._guard = threading.RLock()
        self._server: ThreadingHTTPServer | None = None

    def __enter__(self) -> GcsDouble:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        double = self

        class Handler(_Handler):
            gcs = double

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    @property
    def address(self) -> str:
        assert self._server is not None, "start it first"
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def url(self, bucket: str, prefix: str = "") -> str:
        """The URL of a bucket, which is made if need be."""
        self._buckets.setdefault(bucket, {})
        path = f"{bucket}/{prefix}" if prefix else bucket
        return f"gs://{path}?endpoint={self.address}"

    def objects(self, bucket: str) -> dict[str, GcsObject]:
        with self._guard:
            return dict(self._buckets[bucket])

    def fail(self, *statuses: int) -> None:
        """The next requests are answered with these and change nothing."""
        with self._guard:
            self._failures += statuses

    def lose_answers(self, number: int = 1) -> None:
        """The next requests are carried out, and their connections closed without an answer."""
        with self._guard:
            self._lost += number

    # --- requests ---------------------------------------------------------------------------------

    def handle(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
        """One request after the other: each is atomic, as Google's are for one object."""
        with self._guard:
            self.requests.append(f"{method} {path}")
            try:
                if self._failures:
                    raise Refusal(self._failures.pop(0), "InternalError", "as the test wants it")
                return self._answer(method, path, headers, body)
            except Refusal as refusal:
                return _error(refusal)

    def loses_answer(self) -> bool:
        with self._guard:
            self._lost, lost = max(0, self._lost - 1), self._lost > 0
            return lost

    def _answer(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> HttpAnswer:
        if self.token is not None and headers.get("authorization") != f"Bearer {self.token}":
            raise Refusal(401, "AuthenticationRequired", "Authentication required.")
        parts = urlsplit(path)
        bucket, _, encoded = parts.path.removeprefix("/").partition("/")
        bucket = unquote(bucket)
        if bucket not in self._buckets:
            raise Refusal(404, "NoSuchBucket", "The specified bucket does not exist.")
        query = parse_qs(parts.query, keep_blank_values=True)
        if not encoded:
            _check_headers(headers, KNOWN["LIST"])
            return self._list(bucket, method, {name: values[0] for name, values in query.items()})
        if query:
            raise Refusal(501, "NotImplemented", f"the double knows no {sorted(query)} here")
        name = _checked_name(encoded)
        _check_headers(headers, KNOWN.get(method, READING))
        methods = {"GET": self._get, "HEAD": self._get, "PUT": self._put, "DELETE": self._delete}
        if method not in methods:
            raise Refusal(405, "MethodNotAllowed", f"{method} is not allowed on objects")
        return methods[method](bucket, name, headers, body)

    def _put(self, bucket: str, name: str, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
        self._check_generation(bucket, name, headers)
        metadata = {
            key.removeprefix(META): value for key, value in headers.items() if key.startswith(META)
        }
        if sum(len(key) + len(value) for key, value in metadata.items()) > MAX_METADATA:
            raise Refusal(400, "MetadataTooLarge", "Your metadata headers exceed 8 KiB.")
        if (digest := headers.get("content-md5")) is not None:
            actual = hashlib.md5(body, usedforsecurity=False).digest()
            if base64.b64decode(digest) != actual:
                raise Refusal(400, "BadDigest", "The MD5 you specified did not match.")
        content_type = headers.get("content-type", "application/octet-stream")
        stored = GcsObject(body, next(self._generations), metadata, content_type, time.time())
        self._buckets[bucket][name] = stored
        return HttpAnswer(200, _headers(stored))

    def _get(self, bucket: str, name: str, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
        stored = self._existing(bucket, name)
        self._check_generation(bucket, name, headers)
        if headers.get("if-match", stored.etag) != stored.etag:
            raise _precondition()
        metadata = {f"{META}{key}": value for key, value in stored.metadata.items()}
        last = formatdate(stored.updated, usegmt=True)
        described = {"Content-Type": stored.content_type, "Last-Modified": last}
        return HttpAnswer(200, {**_headers(stored), **described, **metadata}, stored.data)

    def _delete(
        self, bucket: str, name: str, headers: Mapping[str, str], body: bytes
    ) -> HttpAnswer:
        self._check_generation(bucket, name, headers)
        self._existing(bucket, name)
        del self._buckets[bucket][name]
        return HttpAnswer(204)

    def _list(self, bucket: str, method: str, query: Mapping[str, str]) -> HttpAnswer:
        if method != "GET" or query.get("list-type") != "2" or query.keys() - QUERY:
            raise Refusal(501, "NotImplemented", f"the double knows no {method} {sorted(query)}")
        if query.get("delimiter"):
            raise Refusal(501, "NotImplemented", "the double knows no delimiter")
        prefix = query.get("prefix", "")
        after = (query.get("continuation-token") or query.get("start-after", "")).encode()
        names = sorted(self._buckets[bucket], key=str.encode)
        matching = [name for name in names if name.startswith(prefix) and name.encode() > after]
        if not (most := query.get("max-keys", str(self.page))).isdecimal():
            raise Refusal(400, "InvalidArgument", f"max-keys is no number: {most}")
        most = min(self.page, int(most))
        page, is_cut = matching[:most], len(matching) > most
        contents = "".join(_listed(name, self._buckets[bucket][name]) for name in page)
        last = escape(page[-1]) if page else ""
        more = f"<NextContinuationToken>{last}</NextContinuationToken>"
        body = (
            f"<ListBucketResult><Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix>"
            f"<KeyCount>{len(page)}</KeyCount><IsTruncated>{str(is_cut).lower()}</IsTruncated>"
            f"{contents}{more if is_cut else ''}</ListBucketResult>"
        )
        return HttpAnswer(200, {"Content-Type": "application/xml"}, body.encode())

    def _existing(self, bucket: str, name: str) -> GcsObject:
        stored = self._buckets[bucket].get(name)
        if stored is None:
            raise Refusal(404, "NoSuchKey", "The specified key does not exist.")
        return stored

    def _check_generation(self, bucket: str, name: str, headers: Mapping[str, str]) -> None:
        """Zero: there is no such object. A number: that is its generation."""
        if (expected := headers.get(GENERATION)) is None:
            return
        if not expected.isdecimal():
            raise Refusal(400, "InvalidArgument", f"{GENERATION} is no number: {expected}")
        stored = self._buckets[bucket].get(name)
        if int(expected) != (stored.generation if stored is not None else 0):
            raise _precondition()


def _check_headers(headers: Mapping[str, str], names: Collection[str]) -> None:
    """Headers that mean something to the service, and nothing to the double."""
    prefixes = ("if-", "range", "x-goog-", "x-amz-", "content-md5")
    strange = [h for h in headers if h.startswith(prefixes) and not h.startswith(META)]
    if unknown := sorted(set(strange) - set(names)):
        raise Refusal(501, "NotImplemented", f"the double knows no {unknown} here")


def _checked_name(encoded: str) -> str:
    try:
        name = unquote(encoded, errors="strict")
    except UnicodeDecodeError:
        raise Refusal(400, "InvalidObjectName", "a name is UTF-8") from None
    if not 1 <= len(name.encode()) <= MAX_NAME or {"\r", "\n"} & set(name):
        raise Refusal(400, "InvalidObjectName", "1 to 1024 bytes without line ends")
    if name in (".", "..") or name.startswith(".well-known/acme-challenge/"):
        raise Refusal(400, "InvalidObjectName", "this name is reserved")
    return name


def _headers(stored: GcsObject) -> dict[str, str]:
    return {
        "ETag": stored.etag,
        "x-goog-generation": str(stored.generation),
        "x-goog-metageneration": "1",
        "x-goog-stored-content-length": str(len(stored.data)),
    }


def _listed(name: str, stored: GcsObject) -> str:
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(stored.updated))
    return (
        f"<Contents><Key>{escape(name)}</Key><Generation>{stored.generation}</Generation>"
        f"<LastModified>{moment}.000Z</LastModified><ETag>{escape(stored.etag)}</ETag>"
        f"<Size>{len(stored.data)}</Size></Contents>"
    )


def _precondition() -> Refusal:
    message = "At least one of the pre-conditions you specified did not hold."
    return Refusal(412, "PreconditionFailed", message)


def _error(refusal: Refusal) -> HttpAnswer:
    body = f"<Error><Code>{refusal.code}</Code><Message>{escape(refusal.message)}</Message></Error>"
    return HttpAnswer(refusal.status, {"Content-Type": "application/xml"}, body.encode())


class _Handler(BaseHTTPRequestHandler):
    gcs: GcsDouble
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer is one packet

    def _serve(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        if self.command == "PUT" and "content-length" not in headers:
            self.send_error(411, "MissingContentLength")
            return
        body = self.rfile.read(int(headers.get("content-length", 0)))
        answer = self.gcs.handle(self.command, self.path, headers, body)
        if self.gcs.loses_answer():
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)
        self.wfile.flush()

    do_GET = do_HEAD = do_PUT = do_DELETE = do_POST = _serve  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        """Tests have no use for a line per request."""
