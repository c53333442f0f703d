"""Follows the kernel's log from a moment on, by /dev/kmsg, as far as it may be read."""

from __future__ import annotations

import errno
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from linkgauge.model.gaps import NEEDS_ROOT, Gap
from linkgauge.model.kernel_log import KernelLog, LogLine
from linkgauge.model.machine import Machine

from .kernel_lines import LogRecord, interest_of, parse_record, recognize

KMSG = Path("/dev/kmsg")
_DEVICE = os.makedev(1, 11)
"""Containers have other files in its place, such as the console."""
_LARGEST = 8192
"""Bytes of a record (CONSOLE_EXT_LOG_MAX); each read returns one."""
_AT_ONCE = 10_000
"""Records read at one time: the next time goes on, however fast they come."""
ALIKE = 20
"""Lines kept of one kind, code, gravity and device: a flood of one does not displace another."""
MOST = 1000
"""Lines kept in all."""

Source = Callable[[], bytes]
"""The next record. Raises BlockingIOError at the log's end, BrokenPipeError where records were
overwritten before they were read, as reads of /dev/kmsg do."""


class Follower:
    """Reads what is new in the log and concerns the `machine`: from `source`, or not at all for a
    reason. The time of the first call is `since` seconds after the run's start."""

    def __init__(
        self,
        source: Source | str,
        machine: Machine,
        *,
        since: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = source
        self._interest = interest_of(machine)
        self._since = since
        self._clock = clock
        self._began = clock()
        self._read_until = 0.0
        self._is_first = True
        self._kept: Counter[tuple[object, ...]] = Counter()

    def new(self) -> KernelLog | None:
        """What appeared since the last call, None if nothing. The first time says in any case
        whether the log can be read. Never raises."""
        first, self._is_first = self._is_first, False
        if isinstance(self._source, str):
            return KernelLog(unknown=(Gap(self._source, "kernel log"),)) if first else None
        records, lost = _read(self._source)
        elapsed = self._clock() - self._began
        found = [self._line(record, elapsed) for record in records]
        self._read_until = elapsed
        concerning = [line for line in found if line is not None]
        lines = [line for line in concerning if self._keeps(line)]
        log = KernelLog(tuple(lines), len(concerning) - len(lines), lost)
        return log if first or log != KernelLog() else None

    def _line(self, record: LogRecord, elapsed: float) -> LogLine | None:
        # The kernel stamps records by a clock that is not adjusted and drifts from ours by seconds
        # in weeks. When the record was read bounds when it was written.
        at = min(max(record.seconds - self._began, self._read_until), elapsed)
        return recognize(record, self._interest, round(self._since + at, 6))

    def _keeps(self, line: LogLine) -> bool:
        alike = (line.kind, line.code, line.gravity, line.pci)
        if self._kept[alike] >= ALIKE or self._kept.total() >= MOST:
            return False
        self._kept[alike] += 1
        return True


def _read(source: Source) -> tuple[list[LogRecord], bool]:
    """The records up to the log's end, and whether some were lost."""
    records: list[LogRecord] = []
    lost = False
    for _ in range(_AT_ONCE):
        try:
            data = source()
        except BlockingIOError:
            break
        except OSError as error:
            lost = True
            if error.errno in (errno.EPIPE, errno.EINVAL):
                continue  # overwritten, or too long: the next read goes on behind it
            break
        if not data:
            break
        if (record := parse_record(data)) is not None:
            records.append(record)
    return records, lost


@contextmanager
def following(machine: Machine, since: float = 0.0, path: Path = KMSG) -> Iterator[Follower | None]:
    """Follows the log from here on; None for a simulated machine, which no kernel speaks of."""
    if machine.simulated is not None:
        yield None
        return
    found = _open(path)
    if isinstance(found, str):
        yield Follower(found, machine, since=since)
        return
    try:
        yield Follower(partial(os.read, found, _LARGEST), machine, since=since)
    finally:
        os.close(found)


def _open(path: Path) -> int | str:
    """The descriptor of the log, at its end; or why there is none."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        return _why_closed(path, error)
    try:
        if os.fstat(descriptor).st_rdev == _DEVICE:
            os.lseek(descriptor, 0, os.SEEK_END)
            return descriptor
        why = f"{path} is not the kernel's log (usual in containers)"
    except OSError as error:
        why = f"{path}: {error.strerror}"
    os.close(descriptor)
    return why


def _why_closed(path: Path, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{path} is missing (usual in containers)"
    if isinstance(error, PermissionError) and os.geteuid():
        return f"{path}: {error.strerror} (kernel.dmesg_restrict): {NEEDS_ROOT}"
    return f"{path}: {error.strerror}"
