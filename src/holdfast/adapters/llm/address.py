"""Which model to ask, where, and within which limits: what `HOLDFAST_LLM` says."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from holdfast.errors import ConfigurationError

N = TypeVar("N", int, float)

IN_FLIGHT = 64
TIMEOUT = 120.0
LOCAL_NAMES = (".local", ".internal", ".localhost", ".lan")
FORMS = (
    "openai:MODEL, anthropic:MODEL, google:MODEL, or the base URL of a server that speaks OpenAI's "
    "protocol: "
    "http://localhost:11434/v1?model=MODEL"
)


@dataclass(frozen=True, slots=True)
class Vendor:
    """Where a vendor's API is, and which environment variables may hold its key: the first is the
    usual one."""

    base_url: str
    key_variables: tuple[str, ...]


VENDORS: Mapping[str, Vendor] = {
    "openai": Vendor("https://api.openai.com/v1", ("OPENAI_API_KEY",)),
    "anthropic": Vendor("https://api.anthropic.com/v1", ("ANTHROPIC_API_KEY",)),
    "google": Vendor(
        "https://generativelanguage.googleapis.com/v1beta",
        ("GOOGLE_AI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"),
    ),
}


@dataclass(frozen=True, slots=True)
class ModelAddress:
    """A model, where it is reached, and how hard it may be asked. Prices are US dollars per million
    tokens.

    An empty `key_variable` means the vendor's usual ones, and none is needed for a server on the
    local network."""

    vendor: str
    model: str
    base_url: str
    key_variable: str = ""
    in_flight: int = IN_FLIGHT
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    timeout: float = TIMEOUT
    input_price: float | None = None
    output_price: float | None = None

    @property
    def name(self) -> str:
        return f"{self.vendor}:{self.model}"

    @property
    def is_vendors_own(self) -> bool:
        """Whether the vendor itself answers there, rather than a server that speaks its
        protocol."""
        return self.base_url == VENDORS[self.vendor].base_url

    @property
    def key_variables(self) -> tuple[str, ...]:
        """Where to look for the key, in this order."""
        return (self.key_variable,) if self.key_variable else VENDORS[self.vendor].key_variables

    @property
    def is_local(self) -> bool:
        """Whether the server is on this host or its network."""
        return _is_local(urlsplit(self.base_url).hostname or "")

    @property
    def needs_key(self) -> bool:
        return bool(self.key_variable) or not self.is_local


def parse(text: str) -> ModelAddress:
    """Read an address.

    `openai:gpt-4o-mini`, `anthropic:…`, `google:…`, or `http://localhost:11434/v1?model=llama3`,
    each with parameters:
    `?base_url=…&in_flight=64&rpm=500&tpm=200000&timeout=120` and
    `&input_price=0.15&output_price=0.6&key=env:NAME`.
    """
    text = text.strip()
    scheme, colon, remainder = text.partition(":")
    if not colon:  # it may be a key in the wrong place: it is not repeated
        raise ConfigurationError(f"the LLM address names no vendor and model: use {FORMS}")
    target, _, query = remainder.partition("?")
    parameters = _parameters(query)
    if scheme in ("http", "https"):
        return _address("openai", parameters.pop("model", ""), f"{scheme}:{target}", parameters)
    if scheme not in VENDORS:
        raise ConfigurationError(f"the LLM vendor {scheme!r} is unknown: use {FORMS}")
    return _address(
        scheme, target, parameters.pop("base_url", VENDORS[scheme].base_url), parameters
    )


def _address(vendor: str, model: str, base_url: str, parameters: dict[str, str]) -> ModelAddress:
    if not model or re.search(r"[\s\x00-\x1f]", model) or ".." in model:
        raise ConfigurationError(f"the LLM address needs the name of a model: use {FORMS}")
    _refuse_unknown(parameters)
    options = {
        _PARAMETERS[name][0]: _PARAMETERS[name][1](name, value)
        for name, value in parameters.items()
    }
    return ModelAddress(vendor, model, _clean_url(base_url), **options)


def _parameters(query: str) -> dict[str, str]:
    pairs = parse_qsl(query, keep_blank_values=True)
    parameters = dict(pairs)
    if len(parameters) != len(pairs):
        raise ConfigurationError("the LLM address gives a parameter twice: keep one of them")
    return parameters


def _refuse_unknown(parameters: dict[str, str]) -> None:
    for name in parameters:
        if name not in _PARAMETERS:
            names = ", ".join(sorted([*_PARAMETERS, "base_url", "model"]))
            hint = (
                "; keys stay in the environment: key=env:NAME"
                if "key" in name or "token" in name
                else ""
            )
            raise ConfigurationError(
                f"the LLM address has the unknown parameter {name!r}; known are {names}{hint}"
            )


def _clean_url(text: str) -> str:
    try:
        url = urlsplit(text)
        _ = url.port
    except ValueError:
        url = urlsplit("")
    if "@" in url.netloc:
        raise ConfigurationError(
            "the LLM address holds a user name or password: put the key into the environment"
        )
    if url.scheme not in ("http", "https") or not url.hostname or url.query or url.fragment:
        raise ConfigurationError(
            "the base URL of the LLM has to look like https://host/v1, without anything after it"
        )
    if url.scheme == "http" and not _is_local(url.hostname):
        raise ConfigurationError(
            f"{url.hostname} is no local server: use https, or the key would be sent unencrypted"
        )
    return text.rstrip("/")


def _number(kind: Callable[[str], N], least: float) -> Callable[[str, str], N]:
    def read(name: str, text: str) -> N:
        try:
            value = kind(text)
        except ValueError:
            value = kind("-1")
        if value < least or not math.isfinite(value):
            raise ConfigurationError(
                f"{name}={text!r} in the LLM address is not a number from {least:g} upwards"
            )
        return value

    return read


def _environment_variable(name: str, text: str) -> str:
    match = re.fullmatch(r"env:([A-Za-z_][A-Za-z0-9_]*)", text)
    if match is None:  # the text may be the key itself: it is not repeated
        raise ConfigurationError(
            f"{name}=… in the LLM address must say in which environment variable the key is: "
            f"{name}=env:NAME"
        )
    return match[1]


_PARAMETERS: Mapping[str, tuple[str, Callable[[str, str], Any]]] = {
    "in_flight": ("in_flight", _number(int, 1)),
    "rpm": ("requests_per_minute", _number(int, 1)),
    "tpm": ("tokens_per_minute", _number(int, 1)),
    "timeout": ("timeout", _number(float, 0.1)),
    "input_price": ("input_price", _number(float, 0)),
    "output_price": ("output_price", _number(float, 0)),
    "key": ("key_variable", _environment_variable),
}


def _is_local(host: str) -> bool:
    try:
        address = ip_address(host)
    except ValueError:
        return "." not in host or host.endswith(LOCAL_NAMES)
    return address.is_private or address.is_loopback
