"""Tokens as text. The file holds every token's bytes behind their number: one byte, or two when it
is above 127."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

BLANK = "▁".encode()
BEGIN, END = 1, 2


class Vocabulary:
    def __init__(self, path: Path) -> None:
        self.tokens = _tokens(path.read_bytes())

    def text(self, tokens: Iterable[int]) -> str:
        """Without the marks of beginning and end."""
        data = b"".join(self.tokens[token] for token in tokens if token not in (0, BEGIN, END))
        return data.replace(BLANK, b" ").decode(errors="replace").strip()


def _tokens(data: bytes) -> list[bytes]:
    tokens: list[bytes] = []
    at = 0
    while at < len(data):
        length, at = data[at], at + 1
        if length > 127:
            length, at = length - 128 + 128 * data[at], at + 1
        tokens.append(data[at : at + length])
        at += length
    return tokens
