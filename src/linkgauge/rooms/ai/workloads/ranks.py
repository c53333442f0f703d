"""Runs the processes of a training step, joined by torch.distributed."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

import msgspec

from linkgauge.machine.processes.launch import launched
from linkgauge.machine.processes.process import Process
from linkgauge.model.errors import LinkgaugeError, Unsupported
from linkgauge.model.operations.workload import Workload

from .site import Site

PORT = "29511"
"""The port at which mpiexec's ranks meet, unless MASTER_ADDR and MASTER_PORT name another place."""


# The processes of a training step: one for each device, joined by torch.distributed.


_TIMEOUT = timedelta(seconds=120)
_STDERR = 2
_END = 10.0
END = 0
COMMUNICATE = -1
"""Commands in place of a number of steps: END ends the workload on other ranks, COMMUNICATE runs
only its collectives."""


class Join(msgspec.Struct, frozen=True):
    """A message that makes a process rank `rank`. All ranks meet at the address `meeting`."""

    rank: int
    size: int
    device: str
    meeting: str


class Ranks:
    def __init__(
        self, site: Site, rank: int, size: int, meeting: str, started: Sequence[Process] = (),
        folder: tempfile.TemporaryDirectory[str] | None = None,
    ) -> None:  # fmt: skip
        self.rank, self.size, self._site = rank, size, site
        self._started, self._folder = started, folder
        self._group = site.torch.distributed
        if site.is_cuda:
            site.torch.cuda.set_device(site.device)
        if meeting.startswith("file:"):  # all are on this machine, whatever its name resolves to
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        self._threads = site.torch.get_num_threads()
        if site.is_cpu:  # they share its cores
            site.torch.set_num_threads(max(1, self._threads // size))
        backend = "nccl" if site.is_cuda else "gloo"
        self._group.init_process_group(
            backend, init_method=meeting, rank=rank, world_size=size, timeout=_TIMEOUT
        )
        self._control = self._group.new_group(backend="gloo", timeout=_TIMEOUT)

    @property
    def library(self) -> str:
        return "NCCL" if self._site.is_cuda else "gloo"

    def reduce(self, gradients: Any, *, later: bool = False) -> Any:
        """Sums gradients over all ranks. If `later`, returns a handle to wait for the sums."""
        return self._group.all_reduce(gradients, async_op=later)

    def tell(self, number: int) -> None:
        """Sends a command from rank 0 to all ranks: a number of steps, END or COMMUNICATE."""
        self._group.broadcast(self._site.torch.tensor([number]), 0, group=self._control)

    def hear(self) -> int:
        heard = self._site.torch.zeros(1, dtype=self._site.torch.long)
        self._group.broadcast(heard, 0, group=self._control)
        return int(heard)

    def share(self, asked: Workload | None) -> Workload | None:
        """Sends rank 0's workload to all ranks, and returns it. None makes the ranks end."""
        box = [msgspec.json.encode(asked).decode() if asked is not None else None]
        self._group.broadcast_object_list(box, 0, group=self._control)
        return None if box[0] is None else msgspec.json.decode(box[0], type=Workload)

    def barrier(self) -> None:
        self._group.barrier(group=self._control)

    def close(self) -> None:
        if self.rank == 0:
            with suppress(RuntimeError):  # a rank that is gone needs not to be told
                self.share(None)
        if self._group.is_initialized():
            self._group.destroy_process_group()
        self._site.torch.set_num_threads(self._threads)
        deadline = time.monotonic() + _END
        for process in self._started:
            with suppress(LinkgaugeError):  # the work is over, however it ended
                process.answer(type(None), lambda: deadline - time.monotonic())
            process.close()
        if self._folder is not None:
            self._folder.cleanup()


def gather(site: Site, size: int) -> Ranks:
    """Joins `size` ranks, and starts the other ranks if no launcher did. Raises Unsupported for too
    few devices, or if a launcher started another number of ranks."""
    launch = launched(by_torch=True)
    if launch.size > 1:
        if launch.size != size:
            raise Unsupported(f"{size} ranks: the launcher started {launch.size}")
        return Ranks(site, 0, size, from_environment())
    own = site.device.index or 0
    there = size + own if site.is_cpu else site.torch.cuda.device_count()
    if own + size > there:
        raise Unsupported(f"{size} ranks need {size} devices from {site.memory} on: {there} in all")
    folder = tempfile.TemporaryDirectory(prefix="linkgauge-ranks-")
    meeting = f"file://{folder.name}/meeting"
    started = [_start(site, rank, size, own + rank, meeting) for rank in range(1, size)]
    try:
        return Ranks(site, 0, size, meeting, started, folder)
    except BaseException:
        for process in started:
            process.kill()
        folder.cleanup()
        raise


def from_environment() -> str:
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", PORT)
    return "env://"


def _start(site: Site, rank: int, size: int, index: int, meeting: str) -> Process:
    device = site.device.type if site.is_cpu else f"{site.device.type}:{index}"
    process = Process(f"{__package__}.training", output=_STDERR)
    process.ask(Join(rank, size, device, meeting))
    return process
