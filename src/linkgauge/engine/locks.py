"""One run at a time on a device: others would disturb its figures and have theirs disturbed.

What holds a device is a listening Unix socket of the abstract namespace, `\\0linkgauge/<device>`:
no file to be left behind, and the kernel takes it away with the process, however that ends. Who
connects learns the holder's process id, and that it is over when the connection ends. Such names
are seen within a network namespace only: runs in containers of their own do not see each other.
Where there is no such namespace (not Linux) nothing is held.
"""

from __future__ import annotations

import errno
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from linkgauge.model.errors import DeviceBusy
from linkgauge.model.machine import Machine
from linkgauge.model.result import PlannedSheet

from .plan import able

BACKLOG = 4096
"""Runs that may wait for one device."""
LONGEST_NAME = 107
"""Bytes of an address, with its leading zero."""
AGAIN_SECONDS = 0.05
"""Before another attempt to have a device."""
_CREDENTIALS = struct.Struct("3i")
"""Linux' ucred: process, user and group."""


def devices_measured(machine: Machine, plan: Sequence[PlannedSheet]) -> dict[str, str]:
    """The devices in the plan's cells, by what is to be held: PCI address, else UUID.

    A device with neither is not held, nor is host memory: CPUs serve any number of runs at once,
    as they serve all else on the machine. Nor are simulated devices, which are not there.
    """
    keys = {
        device.memory: device.pci or device.uuid
        for devices in machine.devices.values()
        for device in devices
    }
    if machine.simulated is not None or not any(keys.values()):
        return {}
    places = {str(place) for _, cell in able(plan) for place in cell.places}
    return {key: memory for memory, key in keys.items() if key and memory in places}


@contextmanager
def hold(
    devices: Mapping[str, str], *, wait: bool = False, tell: Callable[[str], None] = lambda _: None
) -> Iterator[None]:
    """Holds these devices (their names by their keys). Where another run holds one, raises Busy
    with who it is; with `wait`, tells so once and goes on when all are free."""
    told = False
    with ExitStack() as held:
        # All runs take them in one order, so that no two wait for each other.
        for key in sorted(devices) if sys.platform == "linux" else ():
            while (lock := _take(key)) is None:
                who = f"{devices[key]} ({key}) is being measured by {_holder(key)}"
                if not wait:
                    raise DeviceBusy(f"{who}: give --wait to go on when it has ended")
                if not told:
                    tell(f"waiting: {who}")
                    told = True
                _await_end(key)
            held.enter_context(lock)
        yield


def _address(key: str) -> bytes:
    return f"\0linkgauge/{key}".encode()[:LONGEST_NAME]


def _take(key: str) -> socket.socket | None:
    """What to close to let go of it; None where another process has it."""
    lock = socket.socket(socket.AF_UNIX)
    try:
        lock.bind(_address(key))
        lock.listen(BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            lock.close()
            return None
        # A sandbox without such names is no reason not to measure.
    return lock


def _holder(key: str) -> str:
    """Who has it: process id and command, as far as this process may know."""
    with suppress(OSError), socket.socket(socket.AF_UNIX) as asking:
        asking.setblocking(False)
        asking.connect(_address(key))
        credentials = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        process = _CREDENTIALS.unpack(credentials)[0]
        if process == 0:  # of another container
            return "another run"
        with suppress(OSError):
            command = Path(f"/proc/{process}/cmdline").read_bytes().rstrip(b"\0")
            words = command.decode("utf-8", "replace").split("\0")
            return f"process {process} ({' '.join(words)})"
        return f"process {process}"
    return "another run"


def _await_end(key: str) -> None:
    """Until its holder is gone, by way of a connection that nobody accepts."""
    with suppress(OSError), socket.socket(socket.AF_UNIX) as waiting:
        waiting.connect(_address(key))
        waiting.recv(1)
    # It may have its name but not listen yet: do not ask without pause.
    time.sleep(AGAIN_SECONDS)
