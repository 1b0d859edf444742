"""OpenAI's transcriptions, or any server that speaks its protocol. It says what is said in a
segment, not when."""

from __future__ import annotations

from uuid import uuid4

from holdfast.adapters.llm.transport import Transport
from holdfast.apps.transcription.hosted.service import HostedService, as_wav
from holdfast.apps.transcription.model.transcript import Turn
from holdfast.apps.transcription.transcriber import Speech
from holdfast.errors import Transient
from holdfast.ports.context import Context

MODEL = "openai:gpt-transcribe"


class OpenAITranscriber:
    max_seconds = 60.0
    """A recording may have 25 MB; shorter pieces give better times."""
    in_flight = 8

    def __init__(self, address: str = MODEL, transport: Transport | None = None) -> None:
        self._service = HostedService(address, transport)
        self.name = self._service.address.name

    def check(self, language: str) -> None:
        self._service.key()

    async def transcribe(self, speech: Speech, ctx: Context) -> list[Turn]:
        key = self._service.key()
        boundary = uuid4().hex
        headers = {
            "content-type": f"multipart/form-data; boundary={boundary}",
            "idempotency-key": ctx.idempotency_key,
        }
        if key:
            headers["authorization"] = f"Bearer {key.reveal()}"
        body = _form(boundary, self._fields(speech), as_wav(speech.samples))
        answer = await self._service.post("/audio/transcriptions", headers, body)
        text = answer.get("text") if isinstance(answer, dict) else None
        if not isinstance(text, str):
            raise Transient(f"{self.name} answered without a text")
        ctx.usage(cost=None)
        text = text.strip()
        return [Turn(speech.start, speech.start + speech.seconds, text)] if text else []

    def _fields(self, speech: Speech) -> dict[str, str]:
        fields = {"model": self._service.address.model, "response_format": "json"}
        fields["language"] = speech.language.partition("-")[0]
        return fields | ({"prompt": speech.hints} if speech.hints else {})

    async def aclose(self) -> None:
        await self._service.aclose()


def _form(boundary: str, fields: dict[str, str], sound: bytes) -> bytes:
    parts = [
        f'--{boundary}\r\ncontent-disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in fields.items()
    ]
    head = 'content-disposition: form-data; name="file"; filename="segment.wav"'
    file = f"--{boundary}\r\n{head}\r\ncontent-type: audio/wav\r\n\r\n".encode()
    return b"".join([*parts, file, sound, f"\r\n--{boundary}--\r\n".encode()])
