"""The buckets of the tests: our double of Google Cloud Storage, and moto for S3."""

from __future__ import annotations

import http.client
import os
from functools import cache
from itertools import count

from holdfast.testing.gcs import GcsDouble
from tests.endings import at_the_end

_numbers = count(1)


@cache
def shared_gcs() -> GcsDouble:
    """One for all tests of this process; each takes a bucket of its own. Lists come in pages of
    three, so that every longer one is paged."""
    double = GcsDouble(page=3)
    double.start()
    at_the_end(double.stop)
    return double


def fresh_name() -> str:
    return f"bucket-{os.getpid()}-{next(_numbers)}"


def fresh_gcs(prefix: str = "") -> str:
    """The URL of a new bucket."""
    return shared_gcs().url(fresh_name(), prefix)


@cache
def _moto() -> tuple[str, int]:
    from moto.server import ThreadedMotoServer

    # Any will do, but the client asks for some.
    os.environ.update(
        AWS_ACCESS_KEY_ID="key", AWS_SECRET_ACCESS_KEY="secret", AWS_REGION="us-east-1"
    )
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    at_the_end(server.stop)
    return server.get_host_and_port()


def fresh_s3(prefix: str = "") -> str:
    """The URL of a new bucket."""
    host, port = _moto()
    name = fresh_name()
    connection = http.client.HTTPConnection(host, port, timeout=10.0)
    owner = "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request"
    connection.request("PUT", f"/{name}", headers={"Authorization": owner})
    assert connection.getresponse().status == http.HTTPStatus.OK
    connection.close()
    path = f"{name}/{prefix}" if prefix else name
    return f"s3://{path}?endpoint=http://{host}:{port}"
