"""Files on their way into the blob store: in parts, so that nobody ever holds all of one."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path, PurePath
from typing import BinaryIO

from holdfast.apps.report.request import Upload
from holdfast.engine.payloads import Payloads
from holdfast.model.names import path_part

PART = 4 * 1024 * 1024


async def upload(payloads: Payloads, tenant: str, filename: str, source: BinaryIO) -> Upload:
    """Store what `source` gives. The same bytes again are the same parts, and cost nothing."""
    digest, size, keys = sha256(), 0, []
    for part in _parts(source):
        digest.update(part)
        size += len(part)
        key = f"{path_part(tenant)}/uploads/{sha256(part).hexdigest()}"
        await payloads.put_at(key, part)
        keys.append(key)
    return Upload(
        filename=PurePath(filename).name, sha256=digest.hexdigest(), bytes=size, parts=tuple(keys)
    )


def file_parts(path: Path) -> Iterable[bytes]:
    """A file's bytes, a part at a time."""
    with path.open("rb") as source:
        yield from _parts(source)


def _parts(source: BinaryIO) -> Iterable[bytes]:
    while part := source.read(PART):
        yield part
