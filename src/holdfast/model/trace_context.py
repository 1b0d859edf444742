"""W3C trace context: where a request or message comes from, so that traces of several systems can
be put together. It is taken in and passed on also where nobody records spans here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from msgspec import Struct

TRACEPARENT = "traceparent"
TRACESTATE = "tracestate"
NAMES = (TRACEPARENT, "googclient_traceparent", "ce-traceparent")
"""Where messages carry it: as W3C says, as Google's client libraries do, as CloudEvents do."""
CLOUD_HEADER = "x-cloud-trace-context"

_W3C = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_CLOUD = re.compile(r"([0-9a-f]{32})/([0-9]{1,20})(?:;o=([01]))?")
MAX_STATE = 512


class TraceContext(Struct, frozen=True):
    """Of one span; ids are hexadecimal."""

    trace_id: str
    span_id: str
    sampled: bool = True
    state: str = ""

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{'01' if self.sampled else '00'}"

    @property
    def attributes(self) -> dict[str, str]:
        """As messages carry it."""
        state = {TRACESTATE: self.state} if self.state else {}
        return {TRACEPARENT: self.traceparent, **state}


def parse(traceparent: str, state: str = "") -> TraceContext | None:
    """None for what is no trace context: others may write anything."""
    parts = _W3C.fullmatch(traceparent.strip())
    if parts is None or not int(parts[1], 16) or not int(parts[2], 16):
        return None
    state = state if len(state) <= MAX_STATE and state.isprintable() else ""
    return TraceContext(parts[1], parts[2], bool(int(parts[3], 16) & 1), state)


def of_attributes(attributes: Mapping[str, str]) -> TraceContext | None:
    """What a message says, or a run that was made of one."""
    for name in NAMES:
        if (text := attributes.get(name)) is not None:
            context = parse(text, attributes.get(TRACESTATE, ""))
            if context is not None:
                return context
    return None


def of_headers(headers: Mapping[str, str]) -> TraceContext | None:
    """What a request says; names are in lower case. Also as Google's load balancers say it."""
    context = of_attributes(headers)
    if context is not None:
        return context
    parts = _CLOUD.fullmatch(headers.get(CLOUD_HEADER, ""))
    if parts is None or not int(parts[1], 16):
        return None
    span = f"{int(parts[2]) & (1 << 64) - 1:016x}"
    return parse(f"00-{parts[1]}-{span}-{'01' if parts[3] == '1' else '00'}")


_current: ContextVar[TraceContext | None] = ContextVar("holdfast_trace", default=None)


def current() -> TraceContext | None:
    """What is being worked on: for log lines, and for runs that are submitted meanwhile."""
    return _current.get()


@contextmanager
def entered(context: TraceContext | None) -> Iterator[None]:
    """Work on it."""
    token = _current.set(context)
    try:
        yield
    finally:
        _current.reset(token)
