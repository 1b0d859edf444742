"""The first look at a file, byte by byte: its digest, its size, and what tells its encoding."""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

HEAD = 1 << 16
SAMPLE = 1 << 15


@dataclass(frozen=True, slots=True)
class FileSurvey:
    sha256: str
    bytes: int
    breaks: int
    """Line ends, counted generously: the file has no more rows than this and one."""
    head: bytes
    sample: bytes
    """Lines from anywhere in the file that are not ASCII: the ones that tell an encoding."""
    invalid: int
    """Bytes that are not UTF-8."""
    multibyte: int
    """Bytes that are there because characters outside ASCII take several in UTF-8."""


def survey(chunks: Iterable[bytes]) -> FileSurvey:
    """Read everything once, in the memory of a chunk."""
    look = _Look()
    for chunk in chunks:
        look.at(chunk)
    return look.result()


class _Look:
    def __init__(self) -> None:
        self._digest = sha256()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._head = bytearray()
        self._sample = bytearray()
        self._bytes = self._breaks = self._characters = self._invalid = 0

    def at(self, chunk: bytes) -> None:
        self._digest.update(chunk)
        self._bytes += len(chunk)
        self._breaks += chunk.count(b"\n") + chunk.count(b"\r")
        if len(self._head) < HEAD:
            self._head += chunk[: HEAD - len(self._head)]
        if len(self._sample) < SAMPLE and not chunk.isascii():
            self._sample += _foreign_lines(chunk)[: SAMPLE - len(self._sample)]
        self._count(self._decoder.decode(chunk))

    def result(self) -> FileSurvey:
        self._count(self._decoder.decode(b"", final=True))
        return FileSurvey(
            sha256=self._digest.hexdigest(),
            bytes=self._bytes,
            breaks=self._breaks,
            head=bytes(self._head),
            sample=bytes(self._sample),
            invalid=self._invalid,
            multibyte=self._bytes - self._characters,
        )

    def _count(self, text: str) -> None:
        self._characters += len(text)
        self._invalid += text.count("\ufffd")


def _foreign_lines(chunk: bytes) -> bytes:
    """The lines of a chunk that are not ASCII, without its ends, which may be halves of lines, if
    there are others."""
    lines = chunk.splitlines(keepends=True)
    inner = [line for line in lines[1:-1] if not line.isascii()]
    return b"".join(inner) or chunk
