"""Where the bucket is: `gs://bucket/prefix` or `s3://bucket/prefix`, with
`?endpoint=http://host:port&timeout=30s&connect=5s` if need be.

Credentials of Google are those in `GOOGLE_CREDENTIALS_ENCODED`, else application default ones;
those of Amazon come from `AWS_*` variables and roles. A server at another endpoint (`endpoint=`, or
`STORAGE_EMULATOR_HOST` and `AWS_ENDPOINT_URL`) gets no credentials of Google: that is an
emulator."""

from __future__ import annotations

import os
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

import msgspec
from msgspec import Struct
from obstore.exceptions import BaseError
from obstore.store import GCSStore, S3Store

from holdfast.adapters.google_credentials import ENCODED, service_account_info
from holdfast.adapters.object_keys import blob_segments
from holdfast.adapters.url_parameters import Readers, duration, read_all
from holdfast.errors import ConfigurationError, InvalidInput

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig

BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
TIMEOUT = 30.0
CONNECT = 5.0
EMULATOR = {"gs": "STORAGE_EMULATOR_HOST", "s3": "AWS_ENDPOINT_URL"}


class Address(Struct, frozen=True):
    scheme: str
    bucket: str
    prefix: str = ""
    endpoint: str | None = None
    region: str | None = None
    """Of S3; None: as the environment says."""
    timeout: float = TIMEOUT
    """Seconds that a request may take."""
    connect: float = CONNECT

    def __str__(self) -> str:
        return f"{self.scheme}://{self.bucket}" + (f"/{self.prefix}" if self.prefix else "")

    def link(self, key: str) -> str:
        """Where people and programs find an object by HTTP, if they may."""
        name = quote(f"{self.prefix}/{key}" if self.prefix else key)
        if self.endpoint is not None:
            return f"{self.endpoint}/{self.bucket}/{name}"
        if self.scheme == "gs":
            return f"https://storage.googleapis.com/{self.bucket}/{name}"
        return f"https://{self.bucket}.s3.amazonaws.com/{name}"


def parse(url: str) -> Address:
    """Raises ConfigurationError with the part that is wrong."""
    parts = urlsplit(url)
    if not BUCKET.fullmatch(parts.netloc):
        raise ConfigurationError(
            f"{parts.scheme}://{parts.netloc} names no bucket: 3 to 222 small letters, digits, "
            f"'-', '_' and '.'; write {parts.scheme}://bucket or {parts.scheme}://bucket/folder"
        )
    prefix = unquote(parts.path).strip("/")
    try:
        blob_segments(prefix) if prefix else []
    except InvalidInput as error:
        raise ConfigurationError(f"{url.partition('?')[0]}: {error}") from error
    parameters = read_all(PARAMETERS, parts.query, "the bucket's parameter")
    parameters.setdefault("endpoint", _endpoint(parts.scheme))
    return Address(parts.scheme, parts.netloc, prefix, **parameters)


def open_store(address: Address, *, retries: int = 0) -> GCSStore | S3Store:
    """A client of the bucket; nothing is asked yet."""
    client: ClientConfig = {
        "timeout": timedelta(seconds=address.timeout),
        "connect_timeout": timedelta(seconds=address.connect),
        "allow_http": address.endpoint is not None,
    }
    retry: RetryConfig = {
        "max_retries": retries,
        "retry_timeout": timedelta(seconds=address.timeout),
    }
    prefix = address.prefix or None
    if address.scheme == "gs":
        try:
            return GCSStore(
                address.bucket,
                prefix=prefix,
                config=_google(address),
                client_options=client,
                retry_config=retry,
                credential_provider=_anonymous if address.endpoint is not None else None,
            )
        except BaseError:
            # `from None`: the cause might quote a key.
            raise ConfigurationError(
                f"{address}: the credentials can't be used: {ENCODED} or the file that "
                "GOOGLE_APPLICATION_CREDENTIALS names holds no service account's key that can be "
                "read; download a new one"
            ) from None
    config: dict[str, Any] = {"conditional_put": "etag"}
    if address.endpoint is not None:
        config |= {"endpoint": address.endpoint, "virtual_hosted_style_request": False}
    if address.region is not None:
        config["region"] = address.region
    return S3Store(
        address.bucket,
        prefix=prefix,
        config=config,  # type: ignore[arg-type]
        client_options=client,
        retry_config=retry,
    )


def _google(address: Address) -> Any:
    if address.endpoint is not None:
        return {"base_url": address.endpoint}
    account = service_account_info(ENCODED)
    if account is None:
        return {}
    return {"service_account_key": msgspec.json.encode({"private_key_id": ""} | account).decode()}


def _anonymous() -> Any:
    return {"token": "emulator", "expires_at": None}


def _endpoint(scheme: str) -> str | None:
    host = os.environ.get(EMULATOR[scheme], "").strip().rstrip("/")
    if not host:
        return None
    return host if "://" in host else f"http://{host}"


def _http(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError("write http://host:port")
    return text.rstrip("/")


PARAMETERS: Readers = {
    "endpoint": _http,
    "region": str,
    "timeout": duration,
    "connect": duration,
}
