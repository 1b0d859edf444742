"""Where Pub/Sub is: `pubsub://PROJECT?ack_deadline=60s&timeout=10s&endpoint=host:443`."""

from __future__ import annotations

import os
import re
from urllib.parse import urlsplit

from msgspec import Struct

from holdfast.adapters.url_parameters import Readers, duration, duration_between, read_all
from holdfast.errors import ConfigurationError

EMULATOR = "PUBSUB_EMULATOR_HOST"
PROJECT = ("PUBSUB_PROJECT_ID", "GOOGLE_CLOUD_PROJECT")
"""What names the project if the URL does not."""
ENDPOINT = "pubsub.googleapis.com:443"
EXAMPLE = "pubsub://my-project"

_PROJECT = re.compile(r"(?:[a-z][a-z0-9.-]*:)?[a-z][a-z0-9-]{4,61}[a-z0-9]")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._~+%-]{2,254}")


class Address(Struct, frozen=True):
    """A project, and how it is reached."""

    project: str
    emulator: str = ""
    """`host:port` of an emulator: no credentials, no encryption."""
    endpoint: str = ENDPOINT
    """Messages with ordering keys keep their order if all publishers use one region's endpoint."""
    timeout: float = 10.0
    """Seconds that a request may take, but for waiting for messages."""
    ack_deadline: int = 60
    """Of subscriptions that are created here, in seconds."""

    def __str__(self) -> str:
        return f"pubsub://{self.project}" + (f" (emulator {self.emulator})" * bool(self.emulator))

    def topic(self, name: str) -> str:
        return f"projects/{self.project}/topics/{checked_name(name, 'topic')}"

    def subscription(self, name: str) -> str:
        return f"projects/{self.project}/subscriptions/{checked_name(name, 'subscription')}"


def parse(url: str) -> Address:
    """Raises ConfigurationError."""
    parts = urlsplit(url)
    project = parts.netloc or next((os.environ[name] for name in PROJECT if name in os.environ), "")
    if not _PROJECT.fullmatch(project) or parts.path.strip("/") or parts.fragment:
        raise ConfigurationError(
            f"bus = {url!r} names no project of Google Cloud: write for example {EXAMPLE}, "
            f"or pubsub:// and set {' or '.join(PROJECT)}"
        )
    parameters = read_all(PARAMETERS, parts.query, "the Pub/Sub parameter")
    return Address(project, **{"emulator": os.environ.get(EMULATOR, ""), **parameters})


def checked_name(name: str, kind: str) -> str:
    """A name that Pub/Sub accepts. Raises ConfigurationError."""
    if not _NAME.fullmatch(name) or name.lower().startswith("goog"):
        raise ConfigurationError(
            f"{name!r} can't be a {kind} of Pub/Sub: a name has 3 to 255 letters, digits and "
            "-._~+%, begins with a letter, and not with goog"
        )
    return name


def last_part(path: str) -> str:
    """`jobs` of `projects/p/topics/jobs`."""
    return path.rpartition("/")[2]


def _host(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9.\-\[\]:]+:\d+", text):
        raise ValueError("write host:port")
    return text


PARAMETERS: Readers = {
    "emulator": _host,
    "endpoint": _host,
    "timeout": duration,
    "ack_deadline": lambda text: int(duration_between("10s", "10m")(text)),
}
