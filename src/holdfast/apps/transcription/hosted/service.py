"""What hosted transcribers have in common: an address, a key that is shown to nobody, and errors
that say what to do. Keys, addresses and errors are those of language models."""

from __future__ import annotations

import io
import os
import time
import wave
from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.adapters.llm.address import ModelAddress, parse
from holdfast.adapters.llm.api_key import ApiKey, read_key
from holdfast.adapters.llm.error_responses import error_for
from holdfast.adapters.llm.transport import HttpTransport, Transport
from holdfast.errors import Transient


class HostedService:
    """Sends requests to one model."""

    def __init__(self, address: str, transport: Transport | None = None) -> None:
        self.address: ModelAddress = parse(address)
        self._transport = transport

    def key(self) -> ApiKey:
        """Raises ConfigurationError that names the variable."""
        return read_key(self.address, os.environ)

    async def post(self, path: str, headers: Mapping[str, str], body: bytes) -> Any:
        """The decoded answer. Raises what the status means."""
        if self._transport is None:
            self._transport = HttpTransport(proxies=not self.address.is_local)
        url = f"{self.address.base_url}{path}"
        answer = await self._transport.post(url, headers, body, self.address.timeout)
        if answer.status != 200:
            raise error_for(answer, self.address, self.key(), time.time())
        try:
            return msgspec.json.decode(answer.body)
        except msgspec.DecodeError:
            raise Transient(f"{self.address.name} answered with something unknown") from None

    async def aclose(self) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.aclose()


def as_wav(samples: bytes) -> bytes:
    """16-bit samples at 16 kHz as a file."""
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(16_000)
        out.writeframes(samples)
    return file.getvalue()
