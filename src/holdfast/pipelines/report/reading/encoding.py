"""Which encoding a file is in, and its text.

A mark at the beginning decides, then the pattern of zero bytes in UTF-16, then whether it is UTF-8 for the most part: a
few bad bytes in a UTF-8 file become � and do not turn the rest of it into another alphabet. Everything else is a guess,
and Western European text is tried before statistics are asked, which like to take French for Polish.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterable, Iterator

from holdfast.pipelines.report.reading.survey import Survey

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CANDIDATES = [
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "koi8_r", "mac_roman"),
    *("shift_jis", "euc_jp", "gb18030", "big5", "euc_kr"),
]
_WESTERN = set(
    "ÄÖÜäöüßÀÂÇÈÉÊËÎÏÔÙÛàâçèéêëîïôùûŒœÁÍÑÓÚáíñóúÃÕãõÌÒìòÅÆØåæø"  # letters
    "¡¿ºª«»‘’“”„‚–—…•·°§€£©®™²½´ \xa0"  # and what stands between them
)
_MARK_IN_WORD = re.compile("(?<=[a-z])[¡-¶¸-¿](?=[a-z])")


def encoding_of(survey: Survey) -> str:
    """The name of the codec that reads the file."""
    for mark, name in _MARKS:
        if survey.head.startswith(mark):
            return name
    return _by_zero_bytes(survey.head) or _by_validity(survey) or _by_guess(survey.sample)


def is_guess(encoding: str) -> bool:
    """Whether nothing in the file proves the encoding."""
    return bool(encoding) and not encoding.startswith("utf")


def text_of(chunks: Iterable[bytes], encoding: str) -> io.TextIOWrapper:
    """The file as text, line ends as they are. What can't be decoded is read as �."""
    return io.TextIOWrapper(io.BufferedReader(_Chunks(chunks)), encoding, errors="replace", newline="")


def _by_zero_bytes(head: bytes) -> str | None:
    """UTF-16 without a mark: ASCII characters, of which every table has some, leave every other byte zero."""
    pairs = len(head) // 2
    first, second = head[0::2].count(0), head[1::2].count(0)
    if not pairs or max(first, second) < 0.02 * pairs or min(first, second) > 0.1 * max(first, second):
        return None
    return "utf-16-be" if first > second else "utf-16-le"


def _by_validity(survey: Survey) -> str | None:
    return "utf-8" if survey.multibyte >= survey.invalid else None


def _by_guess(sample: bytes) -> str:
    if _is_western(sample.decode("cp1252", errors="replace")):
        return "cp1252"
    from charset_normalizer import from_bytes

    best = from_bytes(sample, cp_isolation=_CANDIDATES).best()
    if best is not None:
        return best.encoding
    return "latin-1" if "\ufffd" in sample.decode("cp1252", errors="replace") else "cp1252"


def _is_western(text: str) -> bool:
    """Whether it reads as Western European: familiar characters, few accents, no ³ or ¹ in the middle of a word."""
    foreign = [character for character in text if character > "\x7f"]
    if not set(foreign) <= _WESTERN:
        return False
    letters = sum(map(str.isalpha, text))
    accents = sum(map(str.isalpha, foreign))
    return accents <= 0.25 * letters and not _MARK_IN_WORD.search(text)


class _Chunks(io.RawIOBase):
    """Chunks as a stream."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks: Iterator[bytes] = iter(chunks)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

    def close(self) -> None:
        close = getattr(self._chunks, "close", None)
        if close is not None:
            close()
        super().close()
