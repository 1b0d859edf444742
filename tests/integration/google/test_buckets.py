"""Buckets and Firestore beyond what their contracts say: addresses, credentials, faults, and what
`holdfast doctor` says about them."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import traceback
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.bucket_servers import fresh_gcs, fresh_s3, shared_gcs
from tests.emulators import fresh_firestore

from holdfast.adapters.buckets import address as buckets
from holdfast.adapters.buckets.blobs import BucketBlobs
from holdfast.adapters.firestore import address as firestore
from holdfast.adapters.firestore.documents import FirestoreDocuments
from holdfast.bootstrap import blobs_health, documents_health, make_blobs
from holdfast.errors import ConfigurationError, InvalidInput, StoreUnavailable, Transient
from holdfast.ports.health import Finding, Findings
from holdfast.testing.gcs import GcsDouble


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("gs://", "names no bucket"),
        ("gs://UPPER", "names no bucket"),
        ("gs://bucket/../other", "can't name a blob"),
        ("gs://bucket?colour=red", "'colour' is not known; there are endpoint"),
        ("s3://bucket?timeout=never", "can't be used: timeout='never'"),
        ("s3://bucket?endpoint=ftp://host", "write http://host:port"),
    ],
)
def test_an_address_that_is_wrong_says_what(url: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        make_blobs(url)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("firestore://", "no project"),
        ("firestore://p/UPPER", "no database|no project"),
        ("firestore://project?pool=2", "'pool' is not known"),
        ("firestore://project?timeout=1ms", "from 100ms to 1h"),
    ],
)
def test_an_address_of_firestore_that_is_wrong_says_what(url: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        firestore.parse(url)


def test_objects_have_links() -> None:
    links = {
        "gs://b-1/f": "https://storage.googleapis.com/b-1/f/a%20b.json",
        "s3://b-1": "https://b-1.s3.amazonaws.com/a%20b.json",
        "gs://b-1?endpoint=http://h:1": "http://h:1/b-1/a%20b.json",
    }
    assert {url: buckets.parse(url).link("a b.json") for url in links} == links


def test_credentials_that_can_not_be_read_are_named_and_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    account = {"client_email": "a@b", "private_key": "canary-4711", "token_uri": "http://x"}
    encoded = base64.b64encode(json.dumps(account).encode()).decode()
    monkeypatch.setenv("GOOGLE_CREDENTIALS_ENCODED", encoded)
    with pytest.raises(ConfigurationError, match="GOOGLE_CREDENTIALS_ENCODED") as refused:
        BucketBlobs("gs://some-bucket?timeout=1s")
    assert "canary" not in "".join(traceback.format_exception(refused.value))


# --- faults ---------------------------------------------------------------------------------------


def test_an_answer_that_is_lost_leaves_one_object() -> None:
    with GcsDouble() as gcs:
        blobs = BucketBlobs(gcs.url("bucket"))
        gcs.lose_answers()
        assert asyncio.run(blobs.put("a", b"1")) in (True, False)
        assert gcs.objects("bucket")["a"].data == b"1"
        gcs.fail(503, 503)
        assert asyncio.run(blobs.get("a")) == b"1"


def test_what_stays_refused_says_what_to_do() -> None:
    with GcsDouble() as gcs:
        blobs = BucketBlobs(gcs.url("bucket"))
        gcs.fail(403)
        with pytest.raises(StoreUnavailable, match="give it the right to create, read, list"):
            asyncio.run(blobs.put("a", b"1"))
        gcs.token = "another"
        with pytest.raises(StoreUnavailable, match="the credentials are not accepted"):
            asyncio.run(blobs.get("a"))


def test_the_double_refuses_what_it_does_not_know() -> None:
    with GcsDouble("bucket") as gcs:
        for method, path, headers, status in [
            ("PUT", "/bucket/a", {"x-goog-if-generation-match": "x"}, 400),
            ("PUT", "/bucket/a", {"x-goog-if-metageneration-match": "1"}, 501),
            ("PUT", "/bucket/..", {}, 400),
            ("PUT", "/bucket/" + "x" * 1025, {}, 400),
            ("PUT", "/bucket/a", {"content-md5": "AAAA"}, 400),
            ("PUT", "/bucket/a", {"x-goog-meta-a": "x" * 9000}, 400),
            ("PUT", "/bucket/a", {"if-none-match": "*"}, 501),
            ("PUT", "/bucket/a", {"x-goog-acl": "public-read"}, 501),
            ("PUT", "/bucket/a", {"x-amz-meta-a": "1"}, 501),
            ("PUT", "/bucket/%ff", {}, 400),
            ("GET", "/bucket/a", {"range": "bytes=0-1"}, 501),
            ("GET", "/bucket?list-type=2&max-keys=x", {}, 400),
            ("GET", "/bucket?list-type=2", {"x-goog-user-project": "p"}, 501),
            ("GET", "/bucket/a?acl", {}, 501),
            ("GET", "/bucket?list-type=2&delimiter=/", {}, 501),
            ("POST", "/bucket/a", {}, 405),
            ("DELETE", "/bucket/a", {}, 404),
            ("GET", "/other/a", {}, 404),
        ]:
            assert gcs.handle(method, path, headers, b"1").status == status, (method, path)


def test_the_double_compares_generations_for_every_method() -> None:
    with GcsDouble("bucket") as gcs:
        generation = gcs.handle("PUT", "/bucket/a", {}, b"1").headers["x-goog-generation"]
        for method in ("GET", "HEAD", "PUT", "DELETE"):
            other = {"x-goog-if-generation-match": "1"}
            assert gcs.handle(method, "/bucket/a", other, b"2").status == 412
        right = {"x-goog-if-generation-match": generation}
        assert gcs.handle("GET", "/bucket/a", right, b"").body == b"1"
        with socket.create_connection(urlsplit(gcs.address).netloc.split(":")) as link:
            link.sendall(b"PUT /bucket/a HTTP/1.1\r\nHost: x\r\n\r\n")
            assert link.recv(100).startswith(b"HTTP/1.1 411 ")


def test_firestore_that_is_away_or_refuses_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async def put(url: str, body: bytes) -> None:
        documents = FirestoreDocuments(url)
        try:
            await documents.put("reports/a", body, version="1")
        finally:
            await documents.close()

    with pytest.raises(InvalidInput, match=r"does not take this: .* longer than"):
        asyncio.run(put(fresh_firestore(), json.dumps({"a": "x" * 1_100_000}).encode()))
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", "127.0.0.1:1")
    with pytest.raises(Transient, match="firestore://project failed"):
        asyncio.run(put("firestore://project?timeout=1s", b"{}"))


# --- doctor ---------------------------------------------------------------------------------------


def findings(checks: Findings) -> list[Finding]:
    async def collect() -> list[Finding]:
        return [finding async for finding in checks]

    return asyncio.run(collect())


@pytest.mark.parametrize("fresh", [fresh_gcs, fresh_s3])
def test_doctor_tries_a_bucket_and_leaves_nothing(fresh: Any) -> None:
    url = fresh()
    for checks in (blobs_health(url, "memory:"), documents_health(url)):
        [finding] = findings(checks)
        assert (finding.check, finding.status) == ("round trip", "ok")
    if url.startswith("gs:"):
        assert shared_gcs().objects(url.removeprefix("gs://").partition("?")[0]) == {}


def test_doctor_tries_firestore_and_leaves_nothing() -> None:
    url = fresh_firestore()
    [finding] = findings(documents_health(url))
    assert (finding.check, finding.status) == ("round trip", "ok")
    from holdfast.adapters.firestore.records import FirestoreRecords

    async def left() -> list[Any]:
        records = FirestoreRecords(url)
        page = await records.list("")
        await records.close()
        return page.records

    assert asyncio.run(left()) == []
