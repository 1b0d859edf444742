"""The public keys that Google signs tokens with: fetched when they are needed, kept as long as the
answer says, and bounded in every direction."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, build_opener

import jwt
import msgspec

from holdfast.errors import ConfigurationError, Transient

log = logging.getLogger("holdfast.pubsub")

TIMEOUT: Final = 5.0
MAX_ANSWER: Final = 64 * 1024
MAX_KEYS: Final = 20
MIN_BITS: Final = 2048
SHORTEST: Final = 60.0
"""Seconds for which keys are kept at least, whatever the answer says, and between two questions
about a key that is not known: made-up key ids can't make us ask more often."""
LONGEST: Final = 24 * 3600.0
USUAL: Final = 3600.0
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")

_MAX_AGE = re.compile(r"max-age=(\d{1,9})")


class KeysResponse(NamedTuple):
    body: bytes
    cache_control: str


Fetch = Callable[[str], KeysResponse]


class SigningKeys:
    """Keys by their ids."""

    def __init__(
        self,
        url: str,
        *,
        fetch: Fetch | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        _check(url)
        self._url = url
        self._fetch = fetch or fetch_keys
        self._clock = clock
        self._keys: dict[str, Any] = {}
        self._requested_at = -LONGEST
        self._fresh_until = -LONGEST
        self._usable_until = -LONGEST
        self._asking = asyncio.Lock()

    async def get(self, id: str) -> Any:
        """The key, or None if there is none of that id. Raises Transient while the keys can't be
        fetched and the cached ones are too old."""
        if self._needs_asking(id):
            async with self._asking:
                if self._needs_asking(id):
                    await self._ask()
        return self._keys.get(id)

    def _needs_asking(self, id: str) -> bool:
        now = self._clock()
        if now >= self._fresh_until:
            return True
        return id not in self._keys and now >= self._requested_at + SHORTEST

    async def _ask(self) -> None:
        now = self._clock()
        try:
            answer = await asyncio.to_thread(self._fetch, self._url)
            keys = parse_keys(answer.body)
        except (OSError, HTTPException, ValueError) as error:
            if now < self._usable_until:
                log.warning("keys of tokens can't be read from %s: %s", self._url, error)
                self._requested_at = now
                self._fresh_until = now + SHORTEST  # then they are asked for again
                return
            raise Transient(
                f"the keys of tokens can't be read from {self._url}: {error}", retry_after=10
            ) from error
        self._keys = keys
        self._requested_at = now
        self._fresh_until = now + lifetime(answer.cache_control)
        self._usable_until = self._fresh_until + USUAL


def lifetime(cache_control: str) -> float:
    """Seconds for which an answer is fresh."""
    age = _MAX_AGE.search(cache_control)
    return min(max(float(age[1]), SHORTEST), LONGEST) if age else USUAL


def parse_keys(body: bytes) -> dict[str, Any]:
    """The RSA keys of a JSON Web Key Set, by id. Raises ValueError."""
    try:
        document = msgspec.json.decode(body, type=dict[str, list[dict[str, Any]]])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"no JSON Web Key Set: {error}") from error
    keys: dict[str, Any] = {}
    for entry in document.get("keys", [])[:MAX_KEYS]:
        if (key := _rsa_key(entry)) is not None:
            keys[str(entry["kid"])] = key
    if not keys:
        raise ValueError("it holds no usable RSA key")
    return keys


def _rsa_key(entry: Mapping[str, Any]) -> Any:
    """None for a key that no token of ours is signed with."""
    if entry.get("kty") != "RSA" or entry.get("use", "sig") != "sig" or not entry.get("kid"):
        return None
    try:
        key = jwt.PyJWK({**entry, "alg": "RS256"}).key
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    return key if key.key_size >= MIN_BITS else None


# --- over the network -----------------------------------------------------------------------------


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: Any):
        """Redirects are refused: keys come from their own address only."""


def _check(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK):
        return
    raise ConfigurationError(f"push.certificates = {url!r}: keys are fetched over https only")


def fetch_keys(url: str) -> KeysResponse:
    """One bounded request; blocks. Raises OSError."""
    opener = build_opener(_NoRedirects)
    with opener.open(url, timeout=TIMEOUT) as response:
        body = response.read(MAX_ANSWER + 1)
        if len(body) > MAX_ANSWER:
            raise OSError(f"the answer has more than {MAX_ANSWER:,} bytes")
        return KeysResponse(body, response.headers.get("cache-control", ""))
