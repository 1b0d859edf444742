"""What a status other than 200 means: whose error it is, whether to try again, and when.

- 401, 403, 404, redirects: the address or the key is wrong. `ConfigurationError`, so that nothing
  else is tried.
- 402 and used-up credit: `Pause`. Somebody has to add credit; then the run goes on where it was.
- 429, 503, 529: `RateLimited`. The whole model pauses, see `pacing`.
- 408, 409, 425 and other 5xx: `Transient`. The engine tries again.
- other 4xx: `BadRequest`, or `TooLong` if that is what is wrong. Trying again can't help.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from holdfast.adapters.llm.address import ModelAddress
from holdfast.adapters.llm.api_key import ApiKey
from holdfast.adapters.llm.errors import BadRequest, RateLimited
from holdfast.adapters.llm.protocol import at, text_at
from holdfast.adapters.llm.transport import HttpResponse
from holdfast.errors import ConfigurationError, HoldfastError, Pause, Transient
from holdfast.ports.language_model import TooLong

OVERLOADED = (429, 503, 529)
PASSING = (408, 409, 425)
LONGEST_WAIT = 86_400.0
SHOWN = 300
"""Characters of a vendor's own message that are passed on."""

NO_CREDIT = re.compile(
    r"insufficient_quota|credit balance|billing|exceeded your current quota", re.IGNORECASE
)
BAD_KEY = re.compile(r"api.?key.{0,20}(not valid|invalid|expired)|API_KEY_INVALID", re.IGNORECASE)
TOO_LONG = re.compile(
    r"context.?length|context (window|size)|(prompt|input|request|message)s? (is|are) too "
    r"(long|large)|too large"
    r"|maximum (allowed )?number of (output )?tokens|reduce the length|token count .{0,40}exceeds",
    re.IGNORECASE,
)


def error_for(
    answer: HttpResponse, address: ModelAddress, key: ApiKey, now: float
) -> HoldfastError:
    """The error for an answer whose status is not 200."""
    data = _decoded(answer.body)
    message = key.hide_in(_message(data) or _plain_text(answer))
    status = answer.status
    if status == 402 or (
        status in (400, 403, 429) and NO_CREDIT.search(f"{message} {_code(data)}")
    ):
        return Pause(
            f"the account behind {key.variable} can't pay for {address.name} "
            f"({status}: {message}): top it up and resume the run"
        )
    if status in OVERLOADED:
        return RateLimited(
            f"{_answered(address, status)}: {message}",
            retry_after=retry_after(answer.headers, data, now),
        )
    if status in PASSING or status >= 500:
        return Transient(
            f"{_answered(address, status)}: {message}",
            retry_after=retry_after(answer.headers, data, now),
        )
    if status in (401, 403) or BAD_KEY.search(f"{message} {answer.body[:2000]!r}"):
        return _key_refused(status, message, address, key)
    if status == 404 or status < 400:
        return _wrong_address(answer, message, address)
    if status == 413 or TOO_LONG.search(message):
        return TooLong(
            f"{_answered(address, status)}: {message}: ask about less at once, or take a model "
            "with a larger window"
        )
    return BadRequest(
        f"{_answered(address, status)}: {message}", f"{message} {text_at(data, 'error', 'param')}"
    )


def retry_after(headers: Mapping[str, str], data: Any, now: float) -> float | None:
    """Seconds that the server asks us to wait, from its headers or from the body of Google's
    errors."""
    for seconds in (
        _number(headers.get("retry-after-ms", ""), 0.001),
        _number(headers.get("retry-after", "")),
        _until(headers.get("retry-after", ""), headers.get("date", ""), now),
        _retry_delay(data),
    ):
        if seconds is not None:
            return min(max(seconds, 0.0), LONGEST_WAIT)
    return None


def _key_refused(
    status: int, message: str, address: ModelAddress, key: ApiKey
) -> ConfigurationError:
    if not key:
        return ConfigurationError(
            f"{address.name} at {address.base_url} wants a key ({status}): put it into an "
            "environment variable "
            "and name that with ?key=env:NAME"
        )
    # A vendor's 401 repeats parts of the key; what a 403 says is worth knowing (no access to a
    # model, a region, …).
    detail = f"{status}: {message}" if status != 401 else "401"
    return ConfigurationError(
        f"{address.name} does not accept the key in {key.variable} ({detail}): check that it is "
        "right, "
        "not expired, and allowed to use this model"
    )


def _wrong_address(answer: HttpResponse, message: str, address: ModelAddress) -> ConfigurationError:
    where = answer.headers.get("location", "")
    hint = f"it redirects to {where[:SHOWN]}" if where else message
    return ConfigurationError(
        f"there is no {address.model!r} at {address.base_url} ({answer.status}: {hint}): "
        "check the name of the model and the base URL"
    )


def _answered(address: ModelAddress, status: int) -> str:
    return f"{address.name} answered {status}"


def _decoded(body: bytes) -> Any:
    try:
        data = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return at(data, 0) if isinstance(data, list) else data


def _message(data: Any) -> str:
    for path in (("error", "message"), ("error",), ("message",), ("detail",)):
        if text := text_at(data, *path):
            return _shortened(text)
    return ""


def _code(data: Any) -> str:
    return f"{text_at(data, 'error', 'code')} {text_at(data, 'error', 'type')}"


def _plain_text(answer: HttpResponse) -> str:
    """The body of a server that explains itself in plain words; a page of HTML explains nothing."""
    text = answer.body[: 4 * SHOWN].decode(errors="replace").strip()
    return (
        _shortened(text) if text and not text.startswith(("<", "{", "[")) else "it gave no reason"
    )


def _shortened(text: str) -> str:
    text = re.sub(r"[\s\x00-\x1f\x7f]+", " ", text).strip()
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def _number(text: str, unit: float = 1.0) -> float | None:
    return float(text) * unit if re.fullmatch(r"\s*\d{1,12}(\.\d{1,6})?\s*", text) else None


def _until(text: str, date: str, now: float) -> float | None:
    """Seconds to a moment, by the server's clock if it says what time it is."""
    then = _moment(text)
    if then is None:
        return None
    return then - (_moment(date) or now)


def _moment(text: str) -> float | None:
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else datetime.replace(moment, tzinfo=UTC)).timestamp()


def _retry_delay(data: Any) -> float | None:
    """`{"error": {"details": [{"@type": "…RetryInfo", "retryDelay": "17.5s"}]}}`"""
    details = at(data, "error", "details")
    for detail in details if isinstance(details, list) else []:
        if text_at(detail, "retryDelay").endswith("s"):
            return _number(text_at(detail, "retryDelay")[:-1])
    return None
