"""Which encoding a file is in, and its text.

A mark at the beginning decides, then the pattern of zero bytes in UTF-16, then whether it is UTF-8
for the most part: a few bad bytes in a UTF-8 file become � and do not turn the rest of it into
another alphabet. Everything else is a guess, and Western European text is tried before statistics
are asked, which like to take French for Polish."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterable, Iterator

from holdfast.apps.report.reading.survey import FileSurvey

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
_STRUCTURE = re.compile(r"[\r\n\[{]")
_MARK_IN_WORD = re.compile("(?<=[a-z])[¡-¶¸-¿](?=[a-z])")


def encoding_of(survey: FileSurvey) -> str:
    """The name of the codec that reads the file."""
    for mark, name in _MARKS:
        if survey.head.startswith(mark):
            return name
    return _by_zero_bytes(survey) or _by_validity(survey) or _by_guess(survey.sample)


def is_guess(encoding: str) -> bool:
    """Whether nothing in the file proves the encoding."""
    return bool(encoding) and not encoding.startswith("utf")


def text_of(chunks: Iterable[bytes], encoding: str) -> io.TextIOWrapper:
    """The file as text, line ends as they are. What can't be decoded is read as �."""
    return io.TextIOWrapper(
        io.BufferedReader(_Chunks(chunks)), encoding, errors="replace", newline=""
    )


def _by_zero_bytes(survey: FileSurvey) -> str | None:
    """UTF-16 without a mark: ASCII characters, of which every table has some, leave every other
    byte zero.

    A few zero bytes that are just there, in a file that is UTF-8 otherwise, do not make it UTF-16.
    """
    first, second = survey.head[0::2].count(0), survey.head[1::2].count(0)
    least = max(4, (0.005 if survey.invalid else 0.05) * len(survey.head) / 2)
    if max(first, second) < least or min(first, second) > 0.1 * max(first, second):
        return None
    name = "utf-16-be" if first > second else "utf-16-le"
    return name if _STRUCTURE.search(survey.head.decode(name, "replace")) else None


def _by_validity(survey: FileSurvey) -> str | None:
    return "utf-8" if survey.multibyte >= survey.invalid else None


def _by_guess(sample: bytes) -> str:
    western = sample.decode("cp1252", errors="replace")
    if _is_western(western):
        return "cp1252"
    return _by_statistics(sample) or ("latin-1" if "\ufffd" in western else "cp1252")


def _by_statistics(sample: bytes) -> str | None:
    from charset_normalizer import from_bytes

    guesses = from_bytes(sample, cp_isolation=_CANDIDATES)
    return next((guess.encoding for guess in guesses if not _MARK_IN_WORD.search(str(guess))), None)


def _is_western(text: str) -> bool:
    """Whether it reads as Western European: familiar characters, few accents, no ³ or ¹ in the
    middle of a word."""
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
