"""How a model can be reached: the key is there, the server answers, the price is known. Nothing is
asked or paid."""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from urllib.parse import urlsplit

from holdfast.adapters.llm.address import ModelAddress, parse
from holdfast.adapters.llm.api_key import read_key
from holdfast.adapters.llm.prices import Prices
from holdfast.errors import ConfigurationError
from holdfast.ports.health import Finding, Findings, make_finding, milliseconds

CONNECT_TIMEOUT = 5.0
PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


async def findings(name: str) -> Findings:
    address = parse(name)
    yield _key(address)
    yield await _reachable(address)
    yield _price(address)


def _key(address: ModelAddress) -> Finding:
    if not address.needs_key:
        return make_finding("key", f"none is needed for {address.name} on the local network")
    try:
        key = read_key(address, os.environ)
    except ConfigurationError as error:
        return make_finding(
            "key",
            str(error),
            fail=True,
            why="without it every report fails at its first call",
            fix=f"export {address.key_variables[0]}=… where workers are started",
        )
    return make_finding(
        "key", f"{key.variable} is set ({len(key.reveal())} characters); it was not tried"
    )


async def _reachable(address: ModelAddress) -> Finding:
    url = urlsplit(address.base_url)
    if not address.is_local and any(os.environ.get(name) for name in PROXIES):
        return make_finding("reachable", "through a proxy; it was not tried")
    port = url.port or (443 if url.scheme == "https" else 80)
    context = ssl.create_default_context() if url.scheme == "https" else None
    began = time.perf_counter()
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT):
            _, writer = await asyncio.open_connection(url.hostname, port, ssl=context)
        writer.close()
    except (OSError, TimeoutError) as error:
        return make_finding(
            "reachable",
            f"{url.hostname}:{port} can't be reached: {error or 'no answer in time'}",
            warn=True,
            why="calls would be retried until their attempts are used up",
            fix="check the network, the firewall and base_url; a proxy is named by HTTPS_PROXY",
        )
    return make_finding(
        "reachable", f"{url.hostname}:{port} in {milliseconds(time.perf_counter() - began)}"
    )


def _price(address: ModelAddress) -> Finding:
    priced = Prices(address).known
    return make_finding(
        "price",
        f"known for {address.name}" if priced else f"unknown for {address.name}",
        warn=not priced and not address.is_local,
        why="costs are shown as unknown, and --budget has no effect",
        fix="add ?input_price=…&output_price=… (US dollars per million tokens) to HOLDFAST_LLM",
    )
