"""What was saturated while jobs were executed: the server's one thread, or the machine's
processors.

Processor time alone does not show it. A thread that waits for the disk inside `fdatasync` or
`write`, or that waits for a processor, uses none and does no work; a processor that the hypervisor
gives away is not available here. So:

    server_occupied   share of the time in which the server's one thread was not waiting for work
    machine_occupied  share of all processors' time that was used, or stolen by the hypervisor
    others_occupied   the part of it that nothing measured used; if large, the rest tells nothing

The first is sampled by the driver at its tick: 250 times a second, about 15 µs each. The others are
the kernel's sums."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

PROCESSORS = Path("/proc/stat")


class Bounds:
    """Measures from its creation until `shares` is called."""

    def __init__(self, only_thread: int | None) -> None:
        """`only_thread` is the process of a server that has one thread for all its clients, where
        there is one."""
        self._thread = Thread(only_thread) if only_thread and PROCESSORS.exists() else None
        self._begun = Processors.now()

    def look(self) -> None:
        if self._thread:
            self._thread.look()

    def shares(self, measured: float) -> dict[str, float]:
        """What was occupied so far; `measured` are the seconds of processor time of all that
        belongs to it."""
        occupied = {"server_occupied": self._thread.occupied} if self._thread else {}
        if self._begun and (now := Processors.now()):
            occupied |= (now - self._begun).shares(measured)
        return occupied


class Thread:
    """The main thread of a process, sampled by `look`."""

    def __init__(self, pid: int) -> None:
        self._stat = Path(f"/proc/{pid}/task/{pid}/stat")
        self._samples = self._waiting = 0

    def look(self) -> None:
        self._samples += 1
        self._waiting += waits_for_work(self._stat.read_bytes())

    @property
    def occupied(self) -> float:
        """The share of the looks that did not find it waiting; 0 before the first look."""
        return 1 - self._waiting / self._samples if self._samples else 0.0


def waits_for_work(stat: bytes) -> bool:
    """An event loop sleeps interruptibly (S) only when it waits for its clients.

    With or without a processor it is R, and D within a system call that waits for the disk.
    """
    return stat.rpartition(b")")[2].split()[0] == b"S"


@dataclass(frozen=True)
class Processors:
    """What all processors have done, in seconds of one."""

    used: float
    stolen: float
    idle: float

    @classmethod
    def now(cls) -> Processors | None:
        """Since the machine started; None where the kernel does not say."""
        return cls.parse(PROCESSORS.read_text()) if PROCESSORS.exists() else None

    @classmethod
    def parse(cls, text: str) -> Processors:
        ticks = os.sysconf("SC_CLK_TCK")
        seconds = (int(field) / ticks for field in text.split(None, 9)[1:9])
        user, nice, system, idle, iowait, irq, softirq, stolen = seconds
        return cls(user + nice + system + irq + softirq, stolen, idle + iowait)

    def __sub__(self, other: Processors) -> Processors:
        return Processors(
            self.used - other.used, self.stolen - other.stolen, self.idle - other.idle
        )

    def shares(self, measured: float) -> dict[str, float]:
        everything = self.used + self.stolen + self.idle
        if not everything:
            return {}
        others = max(0.0, self.used - measured)
        return {
            "machine_occupied": (self.used + self.stolen) / everything,
            "others_occupied": others / everything,
        }
