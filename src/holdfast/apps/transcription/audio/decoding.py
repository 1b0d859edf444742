"""Any recording as samples: 16 bits, 16 kHz, one channel, a piece at a time, so that the length of
a recording does not matter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import av
from av.audio.resampler import AudioResampler
from av.error import FFmpegError, InvalidDataError

from holdfast.errors import Permanent

RATE = 16_000
BYTES_PER_SECOND = 2 * RATE


def samples_of(path: str) -> Iterator[bytes]:
    """The sound of a file. Raises Permanent if there is none in it."""
    with opened(path) as container:
        if not container.streams.audio:
            raise Permanent(f"{path} has no sound in it: nothing can be transcribed")
        resampler = AudioResampler(format="s16", layout="mono", rate=RATE)
        for frame in _frames(container):
            for resampled in resampler.resample(frame):
                yield _bytes(resampled)
        for resampled in resampler.resample(None):
            yield _bytes(resampled)


@contextmanager
def opened(path: str) -> Iterator[Any]:
    """A media file that can be read: no playlists, no addresses, nothing but this file."""
    try:
        with av.open(path, options={"protocol_whitelist": "file"}) as container:
            yield container
    except (FFmpegError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Permanent(
            f"{path} can't be read as a recording: {reason}; try another format, such as mp3"
        ) from error


def _frames(container: Any) -> Iterator[Any]:
    """Damaged packets are left out: a scratch is no reason to give up the rest."""
    for packet in container.demux(audio=0):
        try:
            yield from packet.decode()
        except InvalidDataError:
            continue


def _bytes(frame: Any) -> bytes:
    return bytes(frame.planes[0])[: 2 * frame.samples]
