"""What an Excel file would take to open, found out before anything is opened.

A few kilobytes can unpack to gigabytes, a single cell far away makes a sheet of 17 billion, and one
long text can be named by a million cells. What the archive says about itself need not be true, so
everything is unpacked once, block by block, and counted."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from array import array
from collections.abc import Iterator

from holdfast.errors import InvalidInput

LARGEST_CONTENT = 500_000_000
"""Bytes that are packed into the file."""
LARGEST_TEXT = 500_000_000
"""Bytes of text that its cells name, each time counted."""
MOST_CELLS = 10_000_000
"""Cells of the rectangle that holds all cells of a sheet."""

_BLOCK = 1 << 20
_TAG = re.compile(rb"<(?:\w+:)?(?:c|row)\b(?:[^<>]*?\sr\s*=\s*[\"']([A-Za-z]{0,3})(\d{1,9}))?")
_NAMED = re.compile(rb"\st\s*=\s*[\"']s[\"'][^<]*<(?:\w+:)?v\b[^<>]*>\s*(\d{1,9})")
_TEXT_END = re.compile(rb"</(?:\w+:)?si\s*>|<(?:\w+:)?si\s*/>")
_SHARED = "xl/sharedstrings.xml"


class LimitExceeded(Exception):
    """The file takes more than it may. Says what."""


def refuse_bombs(data: bytes, filename: str) -> None:
    """Raises InvalidInput for an archive that is broken, or that it would not be safe to open."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _Inspection(archive).run()
    except LimitExceeded as excess:
        raise InvalidInput(
            f"{filename} is not opened: {excess}. Save the sheet with the comments as .csv."
        ) from None
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        ValueError,
        NotImplementedError,
        RuntimeError,
        OSError,
    ) as error:
        raise InvalidInput(
            f"{filename} looks like an Excel file and can't be unpacked: {error}."
        ) from None


class _Inspection:
    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._left = LARGEST_CONTENT
        self._texts = array("Q")
        self._named = 0

    def run(self) -> None:
        members = self._archive.infolist()
        for member in members:
            if member.filename.lower() == _SHARED:
                self._measure_texts(member)
        for member in members:
            if member.filename.lower() != _SHARED:
                self._measure_sheet(member)

    def _measure_texts(self, member: zipfile.ZipInfo) -> None:
        """How long each shared text is, with the marks around it."""
        size = 0
        for block in self._blocks(member, b"<"):
            *ended, begun = map(len, _TEXT_END.split(block))
            for length in ended:
                self._texts.append(size + length)
                size = 0
            size += begun
            if len(self._texts) > MOST_CELLS:
                raise LimitExceeded(f"it holds more than {MOST_CELLS:,} texts")

    def _measure_sheet(self, member: zipfile.ZipInfo) -> None:
        cells, width, height = 0, 1, 1
        for block in self._blocks(member, b"<"):
            references = _TAG.findall(block)
            cells += len(references)
            width = max(width, *map(_column, {letters for letters, _ in references}), 1)
            height = max(height, *(int(digits) for _, digits in references if digits), 1)
            if max(cells, width * height) > MOST_CELLS:
                raise LimitExceeded(
                    f"a sheet of it takes more than {MOST_CELLS:,} cells, empty ones between "
                    "others counted"
                )
            self._count_named(block)

    def _count_named(self, block: bytes) -> None:
        known = len(self._texts)
        for index in map(int, _NAMED.findall(block)):
            self._named += self._texts[index] if index < known else 0
        if self._named > LARGEST_TEXT:
            raise LimitExceeded(f"its cells hold more than {LARGEST_TEXT / 1e6:,.0f} MB of text")

    def _blocks(self, member: zipfile.ZipInfo, mark: bytes) -> Iterator[bytes]:
        """The content in blocks that end before a mark, so that nothing that begins with it is cut
        in two."""
        rest = b""
        for block in self._unpacked(member):
            joined = rest + block
            cut = joined.rfind(mark)
            if cut <= 0 or len(joined) - cut > _BLOCK:
                cut = len(joined)
            rest = joined[cut:]
            yield joined[:cut]
        yield rest

    def _unpacked(self, member: zipfile.ZipInfo) -> Iterator[bytes]:
        if member.file_size > self._left:
            raise _too_large()
        member.file_size = (
            self._left + 2 * _BLOCK
        )  # else only as much is unpacked as the archive says that there is
        with self._archive.open(member) as content:
            while block := content.read(_BLOCK):
                self._left -= len(block)
                if self._left < 0:
                    raise _too_large()
                yield block


def _too_large() -> LimitExceeded:
    return LimitExceeded(f"it unpacks to more than {LARGEST_CONTENT / 1e6:,.0f} MB")


def _column(letters: bytes) -> int:
    """A is 1, Z is 26, AA is 27."""
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - 64
    return number
