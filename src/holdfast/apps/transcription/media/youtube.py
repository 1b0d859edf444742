"""Videos of YouTube: their details by one call of its Data API, their sound by yt-dlp, if that is
installed."""

from __future__ import annotations

import json
import re
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from holdfast.apps.transcription.media.fetching import FetchLimits, connect
from holdfast.apps.transcription.media.probing import language_of
from holdfast.apps.transcription.media.url_guard import check_url
from holdfast.errors import ConfigurationError, Permanent, Transient

API = "https://www.googleapis.com/youtube/v3/videos"
KEY = "YOUTUBE_API_KEY"
HOSTS = ("youtube.com", "www.youtube.com", "m.youtube.com", "music.youtube.com")
VIDEO = re.compile(r"[A-Za-z0-9_-]{11}")
LENGTH = re.compile(r"P(?:(\d+)D)?T?(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?")
LARGEST = 1024 * 1024
"""Bytes of an answer."""


def video_id(url: str) -> str | None:
    """The id of a video, if the URL is one of YouTube's."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    host, path = (parts.hostname or "").lower(), parts.path.strip("/")
    candidate = ""
    if host == "youtu.be":
        candidate = path
    elif host in HOSTS:
        first, _, rest = path.partition("/")
        shown = first in ("shorts", "embed", "live", "v")
        candidate = rest if shown else parse_qs(parts.query).get("v", [""])[0]
    return candidate if VIDEO.fullmatch(candidate) else None


def details(id: str, key: str, *, api: str = API) -> dict[str, Any]:
    """Fields of `MediaMetadata`. The key is sent in a header, never in the URL."""
    hosts = () if api == API else (urlsplit(api).netloc,)
    query = urlencode({"part": "snippet,contentDetails", "id": id})
    items = _ask(f"{api}?{query}", key, hosts).get("items") or []
    if not items:
        raise Permanent(f"YouTube knows no video {id}: it was removed, or it is private")
    snippet, content = items[0].get("snippet", {}), items[0].get("contentDetails", {})
    if not (length := _seconds(content.get("duration", ""))):
        raise Permanent(f"video {id} has no length yet: it is live, or has not begun")
    language = snippet.get("defaultAudioLanguage") or snippet.get("defaultLanguage") or ""
    fields: dict[str, Any] = {
        "title": snippet.get("title"),
        "organization": snippet.get("channelTitle"),
        "summary": snippet.get("description"),
        "tags": snippet.get("tags"),
        "durationSec": length,
        "language": language_of(language),
        "links": [f"https://www.youtube.com/watch?v={id}"],
    }
    return {name: value for name, value in fields.items() if value}


def _ask(url: str, key: str, hosts: tuple[str, ...]) -> dict[str, Any]:
    target = check_url(url, hosts)
    connection = connect(target)
    headers = {"Host": target.host_header, "X-Goog-Api-Key": key}
    try:
        connection.request("GET", target.path, headers=headers)
        response = connection.getresponse()
        status, body = response.status, response.read(LARGEST)
    except (OSError, HTTPException) as error:
        raise Transient(f"{target.host} did not answer: {error}") from None
    finally:
        connection.close()
    return _decoded(status, body)


def _decoded(status: int, body: bytes) -> dict[str, Any]:
    if status in (429, 500, 502, 503, 504):
        raise Transient(f"YouTube's Data API answered {status}")
    if status in (400, 401, 403):
        raise ConfigurationError(
            f"YouTube's Data API refuses the key in {KEY} ({status}): check the key, that the API "
            "is enabled for it, and its quota"
        )
    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    if status != 200 or not isinstance(answer, dict):
        raise Transient(f"YouTube's Data API answered {status} with something unknown")
    return answer


def _seconds(text: str) -> float:
    """`PT1H2M3S`."""
    parts = LENGTH.fullmatch(text)
    days, hours, minutes, seconds = (int(p or 0) for p in parts.groups()) if parts else (0,) * 4
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def download(url: str, folder: Path, limits: FetchLimits) -> Path:
    """The sound of a video, by yt-dlp."""
    try:
        from yt_dlp import YoutubeDL  # type: ignore[import-not-found]
        from yt_dlp.utils import DownloadError  # type: ignore[import-not-found]
    except ImportError:
        raise ConfigurationError(
            "the sound of YouTube's videos needs yt-dlp: pip install 'holdfast[youtube]', or give "
            "the URL of the recording itself"
        ) from None
    options: Any = {
        "format": "bestaudio/best",
        "outtmpl": str(folder / "sound.%(ext)s"),
        "max_filesize": limits.max_bytes,
        "noplaylist": True,
        "quiet": True,
        "no_warnings": True,
        "cachedir": False,
    }
    try:
        with YoutubeDL(options) as loader:
            loader.download([url])
    except DownloadError as error:
        raise Transient(f"yt-dlp could not fetch {url}: {error}") from error
    if (sound := next(folder.glob("sound.*"), None)) is None:  # it says nothing, and leaves nothing
        raise Permanent(
            f"yt-dlp fetched nothing of {url}: it has no sound, or more than "
            f"{limits.max_bytes:,} bytes (transcription.max_bytes)"
        )
    return sound
