"""Fetching a recording to a file: from checked addresses only, with limits on bytes, time and
redirects, without cookies and without credentials."""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urljoin

from msgspec import Struct

from holdfast.apps.transcription.media.url_guard import (
    FetchTarget,
    Refused,
    Resolve,
    check_url,
    resolve,
)
from holdfast.errors import Permanent, Transient

REDIRECTS = 3
CHUNK = 256 * 1024
READ_WITHIN = 30.0
"""Seconds that a server may be silent."""
PASSING = (408, 425, 429)


class FetchLimits(Struct, frozen=True):
    hosts: tuple[str, ...] = ()
    """Hosts that media may come from; none: any public one."""
    max_bytes: int = 2 * 1024**3
    max_seconds: float = 1800.0


def fetch(
    url: str,
    path: Path,
    limits: FetchLimits,
    *,
    resolver: Resolve = resolve,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> None:
    """Write what is at the URL to a file. Raises Refused, Transient or Permanent."""
    deadline = time.monotonic() + limits.max_seconds
    for _ in range(REDIRECTS + 1):
        target = check_url(url, limits.hosts, resolver)
        connection = connect(target)
        try:
            response = _ask(connection, target)
            if response.status not in (301, 302, 303, 307, 308):
                _check_status(response, target)
                return _save(response, path, target, limits, deadline, is_cancelled)
            url = urljoin(url, response.headers.get("Location") or "")
        finally:
            connection.close()
    raise Refused(f"{url} was reached by more than {REDIRECTS} redirects")


def connect(target: FetchTarget) -> http.client.HTTPConnection:
    """To one of the addresses that were looked at, whatever the name means by now."""
    last: OSError | None = None
    for address in target.addresses:
        try:
            link = socket.create_connection((address, target.port), timeout=READ_WITHIN)
            break
        except OSError as error:
            last = error
    else:
        raise Transient(f"{target.host} can't be reached: {last}")
    connection = http.client.HTTPConnection(target.host, target.port, timeout=READ_WITHIN)
    if target.scheme == "https":
        try:
            link = ssl.create_default_context().wrap_socket(link, server_hostname=target.host)
        except ssl.SSLCertVerificationError as error:
            link.close()
            raise Permanent(f"the certificate of {target.host} is not valid: {error}") from error
        except OSError as error:
            link.close()
            raise Transient(f"{target.host} does not speak TLS: {error}") from error
    connection.sock = link
    return connection


def _ask(connection: http.client.HTTPConnection, target: FetchTarget) -> http.client.HTTPResponse:
    headers = {"Host": target.host_header, "User-Agent": "holdfast", "Accept-Encoding": "identity"}
    try:
        connection.request("GET", target.path, headers=headers)
        return connection.getresponse()
    except (OSError, http.client.HTTPException) as error:
        raise Transient(f"{target.host} did not answer: {error}") from error


def _check_status(response: http.client.HTTPResponse, target: FetchTarget) -> None:
    if response.status == http.HTTPStatus.OK:
        return
    message = f"{target.host} answered {response.status} {response.reason}"
    if response.status >= 500 or response.status in PASSING:
        raise Transient(message)
    raise Permanent(f"{message}: the recording can't be had there; check the URL")


def _save(
    response: http.client.HTTPResponse,
    path: Path,
    target: FetchTarget,
    limits: FetchLimits,
    deadline: float,
    is_cancelled: Callable[[], bool],
) -> None:
    length, received = response.length, 0
    with path.open("wb") as file:
        while chunk := _read(response, target):
            received += len(chunk)
            if received > limits.max_bytes:
                most = limits.max_bytes >> 20
                raise Permanent(f"the recording at {target.host} has more than {most} MiB")
            if time.monotonic() > deadline:
                raise Permanent(
                    f"the recording at {target.host} did not arrive within {limits.max_seconds:g} s"
                )
            if is_cancelled():
                raise Transient("the step is to stop")
            file.write(chunk)
    if length is not None and received != length:
        raise Transient(f"{target.host} sent {received} of {length} bytes")


def _read(response: http.client.HTTPResponse, target: FetchTarget) -> bytes:
    try:
        return response.read(CHUNK)
    except (OSError, http.client.HTTPException) as error:
        raise Transient(f"the answer of {target.host} broke off: {error}") from error
