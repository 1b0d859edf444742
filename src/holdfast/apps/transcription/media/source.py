"""A recording as a file of this host, for as long as it is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from holdfast.apps.transcription.media.fetching import FetchLimits, fetch
from holdfast.apps.transcription.media.url_guard import Refused, check_url
from holdfast.apps.transcription.media.youtube import API, download, video_id
from holdfast.apps.transcription.model.job import MediaResource
from holdfast.errors import Permanent


class MediaSources(Struct, frozen=True):
    """Where recordings may come from: what steps find with `ctx.use(MediaSources)`."""

    limits: FetchLimits = FetchLimits()
    folder: str | None = None
    """Files below it may be named by a job's `path`; `/` allows all; None: no files, for jobs come
    from other systems."""
    youtube_api: str = API

    @contextmanager
    def opened(
        self, media: MediaResource, is_cancelled: Callable[[], bool] = lambda: False
    ) -> Iterator[str]:
        """The path of a file with the recording in it."""
        if media.path:
            yield str(self._local(media.path))
            return
        with TemporaryDirectory(prefix="holdfast-media-") as folder:
            if video_id(media.url) is not None:
                check_url(media.url, self.limits.hosts)
                yield str(download(media.url, Path(folder), self.limits))
                return
            path = Path(folder) / "recording"
            fetch(media.url, path, self.limits, is_cancelled=is_cancelled)
            yield str(path)

    def _local(self, name: str) -> Path:
        if self.folder is None:
            raise Refused(
                "this worker takes no files of its own host: give a URL, or set "
                "HOLDFAST_TRANSCRIPTION_FOLDER to the folder that they are in"
            )
        path = Path(name).resolve()
        if not path.is_relative_to(Path(self.folder).resolve()):
            raise Refused(f"{name} is not in the folder of recordings")
        if not path.is_file():
            raise Permanent(f"there is no file {name}")
        return path
