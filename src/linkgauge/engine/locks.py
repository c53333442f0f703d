"""Lets only one run at a time use a device, because concurrent runs disturb each other's figures.

A run holds a device by a listening Unix socket in the abstract namespace, `\\0linkgauge/<device>`,
which the kernel removes when the process ends. A process that connects learns the holder's process
id, and its connection ends when the holder ends. Names are visible only within a network namespace,
so containers do not see each other's runs. On other systems than Linux, no device is held."""

from __future__ import annotations

import errno
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from linkgauge.model.documents.result import PlannedTable
from linkgauge.model.errors import DeviceBusy
from linkgauge.model.hardware.machine import Machine

from .plan import able

BACKLOG = 4096
"""Runs that may wait for one device."""
LONGEST_NAME = 107
"""Maximum bytes of an address, including its leading zero."""
AGAIN_SECONDS = 0.05
"""Delay before the next attempt to take a device."""
_CREDENTIALS = struct.Struct("3i")
"""Linux' ucred: process, user and group."""


def devices_measured(machine: Machine, plan: Sequence[PlannedTable]) -> dict[str, str]:
    """Returns the names of the devices that no other run may use during a plan, by PCI address or
    else UUID. Leaves out devices without either. Host memory is not held, because CPUs serve
    several runs. Returns an empty dict for simulated machines and for runs of several ranks."""
    if machine.simulated is not None or machine.ranks:
        return {}
    keys = {device.memory: device.pci or device.uuid for device in machine.all_devices}
    if not any(keys.values()):
        return {}
    places = {str(place) for _, cell in able(plan) for place in cell.places}
    return {key: memory for memory, key in keys.items() if key and memory in places}


@contextmanager
def hold(
    devices: Mapping[str, str], *, wait: bool = False, tell: Callable[[str], None] = lambda _: None
) -> Iterator[None]:
    """Holds devices (names by key) during this block. If another run holds one of them, raises
    DeviceBusy or, if `wait` is true, calls `tell` once and waits until all are free."""
    reported = False
    with ExitStack() as held:
        # All runs take devices in the same order, so no two can wait for each other.
        for key in sorted(devices) if sys.platform == "linux" else ():
            while (lock := _take(key)) is None:
                who = f"{devices[key]} ({key}) is being measured by {_holder(key)}"
                if not wait:
                    raise DeviceBusy(f"{who}: give --wait to start when it ends")
                if not reported:
                    tell(f"waiting: {who}")
                    reported = True
                _await_end(key)
            held.enter_context(lock)
        yield


def _address(key: str) -> bytes:
    return f"\0linkgauge/{key}".encode()[:LONGEST_NAME]


def _take(key: str) -> socket.socket | None:
    """Returns a socket that holds the device until closed, or None if another process has it."""
    lock = socket.socket(socket.AF_UNIX)
    try:
        lock.bind(_address(key))
        lock.listen(BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            lock.close()
            return None
        # A sandbox without such names must not prevent measuring.
    return lock


def _holder(key: str) -> str:
    with suppress(OSError), socket.socket(socket.AF_UNIX) as asking:
        asking.setblocking(False)
        asking.connect(_address(key))
        credentials = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        process = _CREDENTIALS.unpack(credentials)[0]
        if process == 0:  # in another container
            return "another run"
        with suppress(OSError):
            command = Path(f"/proc/{process}/cmdline").read_bytes().rstrip(b"\0")
            words = command.decode("utf-8", "replace").split("\0")
            return f"process {process} ({' '.join(words)})"
        return f"process {process}"
    return "another run"


def holder(key: str) -> str | None:
    """Describes the process that holds this device. Returns None if no process does."""
    if sys.platform != "linux":
        return None
    with suppress(OSError), socket.socket(socket.AF_UNIX) as asking:
        asking.setblocking(False)
        asking.connect(_address(key))
        return _holder(key)
    return None


def _await_end(key: str) -> None:
    with suppress(OSError), socket.socket(socket.AF_UNIX) as waiting:
        waiting.connect(_address(key))
        waiting.recv(1)
    # It may be bound but not listening yet: do not retry without a pause.
    time.sleep(AGAIN_SECONDS)
