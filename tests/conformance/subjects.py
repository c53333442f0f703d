"""The backends under test, and what a test may do behind their backs."""

from __future__ import annotations

import ctypes
import os
from itertools import permutations
from pathlib import Path

import pytest

from compiled_kit import c_library_of, module_of
from linkgauge.backends import open_backend
from linkgauge.backends.protocol import Copy
from linkgauge.backends.sim.backend import simulate
from linkgauge.backends.sim.description import load
from linkgauge.machine.host import read_host
from linkgauge.model.errors import BackendError
from linkgauge.model.settings import EngineSettings, Simulation

NPU = Path(__file__).parents[2] / "examples/plugins/backend"
ALLOWED = sorted(os.sched_getaffinity(0))


def out_of_order(*calls):
    for call in calls:
        with pytest.raises(BackendError):
            call()


def release(*copies: Copy) -> None:
    for copy in copies:
        for buffer in (copy.source, copy.destination):
            if buffer is not None:
                buffer.free()


class Subject:
    """A backend with its transfers to try. `paths` are single ones, `groups` concurrent ones;
    `chases` follow pointers, `exchanges` go between the caches of CPUs. `arrays` is a memory and
    the engine that does there what STREAM does and multiplies matrices, `ranks` the memories
    between which there are collectives."""

    name = ""
    memories: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    chases: tuple[str, ...] = ()
    exchanges: tuple[str, ...] = ()
    arrays: tuple[str, str] = ("", "")
    ranks: tuple[str, ...] = ()

    def __init__(self):
        self.backend = open_backend(self.name)

    @property
    def multiplier(self) -> str:
        return ".".join(self.arrays)

    def through(self, memory: str) -> str:
        """A transfer that allocates this memory."""
        return next(path for path in self.paths if memory in path.split())

    def corrupt(self, buffer, offset: int) -> None:
        """Flips one bit of one byte, past everything that the backend knows."""
        (byte,) = self.content(buffer, offset, 1)
        self.write(buffer, offset, bytes([byte ^ 0x10]))

    def content(self, buffer, offset: int = 0, size: int | None = None) -> bytes:
        """Bytes of a buffer: all, or so many."""
        data = ctypes.create_string_buffer(buffer.size if size is None else size)
        self.move(buffer, ctypes.addressof(data), buffer.address + offset, len(data))
        return data.raw

    def write(self, buffer, offset: int, data: bytes) -> None:
        held = ctypes.create_string_buffer(data, len(data))
        self.move(buffer, buffer.address + offset, ctypes.addressof(held), len(data))

    def move(self, buffer, destination: int, source: int, size: int) -> None:
        """Copies bytes from or to the memory of a buffer."""
        ctypes.memmove(destination, source, size)


class Host(Subject):
    name = "host"
    arrays = ("host:0", "cpu*1")
    memories = ("host:0", "host:0/pageable", "host:0/staging")
    paths = (
        "host:0 -> host:0 by cpu",
        "host:0 -> host:0/staging by cpu",
        "host:0 -> host:0 by cpu*1",
        "host:0 -> null by cpu",
        "null -> host:0 by cpu",
        "null -> host:0/pageable by cpu",
        "host:0/pageable -> host:0/pageable by cpu",
        "host:0 -> host:0/pageable by cpu",
    )
    groups = (
        "host:0 -> host:0 by cpu*1 & host:0 -> host:0 by cpu*1",
        "host:0 -> host:0 by cpu & null -> host:0 by cpu x2 & host:0 -> null by cpu",
    )
    refused = (
        "host:77 -> host:0 by cpu",
        "host:0 -> host:0 by host:77.cpu",
        "host:0 -> opencl:0 by host:0.cpu",
        "host:0 -> host:0 by cpu*100000",
        "host:0 <-> host:0 by cpu",
        "host:0/mapped -> host:0 by cpu",
        "cpu:0 -> cpu:77777",
        "cpu:0 -> cpu:0",
        "cpu:0 <-> cpu:1",
        "cpu:0 -> cpu:1 by cpu*2",
    )
    chases = ("host:0 -> null by cpu*1", "host:0/pageable -> null by cpu*1")
    exchanges = tuple(
        f"cpu:{first} -> cpu:{second}" for first, second in permutations(ALLOWED[:3], 2)
    )


class OpenCL(Subject):
    name = "opencl"
    arrays = ("opencl:0", "sm")
    memories = ("opencl:0", "host:0")
    paths = (
        "host:0 -> opencl:0 by ce",
        "opencl:0 -> host:0 by ce",
        "opencl:0 -> opencl:0 by ce",
        "host:0/pageable -> opencl:0 by ce",
        "opencl:0 -> opencl:1 by opencl:0.ce",
        "opencl:0 -> opencl:1 by opencl:1.ce",
        "host:0 -> opencl:0 by sm",
        "opencl:0 -> host:0 by sm",
        "opencl:0 -> opencl:0 by sm",
        "opencl:1 -> opencl:0 by opencl:0.sm",
        "opencl:0 -> null by sm",
        "opencl:1 -> null by opencl:0.sm",
        "null -> opencl:1 by opencl:0.sm",
        "host:0 -> null by opencl:0.sm",
        "host:0 <-> opencl:0 by sm",
        "opencl:0 <-> opencl:1 by sm",
    )
    groups = (
        "host:0 -> opencl:0 by ce & opencl:0 -> host:0 by ce x2",
        "opencl:0 -> opencl:1 by opencl:0.ce & opencl:1 -> opencl:0 by opencl:1.ce",
        "host:0 -> opencl:0 by sm & opencl:1 -> host:0 by sm & host:0 -> opencl:1 by ce",
        " & ".join(["host:0 -> opencl:0 by ce"] * 16),
    )
    refused = (
        "host:0 -> opencl:77 by ce",
        "host:77 -> opencl:0 by ce",
        "host:0 -> cuda:0 by opencl:0.ce",
        "host:0 -> opencl:0 by host:0.cpu",
        "host:0 -> host:0 by opencl:0.ce",
        "host:0/huge -> opencl:0 by ce",
    )
    chases = (
        "host:0 -> null by opencl:0.sm",
        "opencl:0 -> null by sm",
        "opencl:1 -> null by opencl:0.sm",
    )

    def __init__(self):
        # Skips where there is no OpenCL, and lets PoCL run kernels on CPUs younger than it.
        import opencl_kit

        self._kit = opencl_kit
        super().__init__()

    def corrupt(self, buffer, offset):
        self._kit.corrupt(buffer, offset)

    def content(self, buffer):
        if buffer.memory.is_host:
            with buffer.at() as address:
                return ctypes.string_at(address, buffer.size)
        data = bytearray(buffer.size)
        self._kit.cl.enqueue_copy(buffer.unit.queue, data, buffer.for_copy(buffer.size))
        return bytes(data)


class Sim(Subject):
    name = "sim"
    arrays = ("sim:3", "sm")
    memories = ("sim:0", "host:0", "host:1/pageable")
    paths = (
        "host:0 -> sim:0 by ce",
        "sim:0 -> host:1 by ce",
        "sim:0 -> sim:0 by ce",
        "sim:0 -> sim:5 by ce",
        "sim:0 -> sim:5 by sim:5.ce",
        "host:0/pageable -> sim:0 by ce",
        "sim:0 -> host:1/wc by ce",
        "host:0 -> sim:0 by sm",
        "sim:0 -> host:0 by sm",
        "sim:0 -> sim:1 by sm",
        "host:0 <-> sim:0 by sm",
        "sim:0 <-> sim:7 by sim:7.sm",
        "sim:1 -> null by sim:0.sm",
        "null -> sim:1 by sim:0.sm",
        "host:0 -> host:1 by cpu*2",
        "host:1 -> null by host:0.cpu",
        "null -> host:1/pageable by cpu",
    )
    groups = (
        "host:0 -> sim:0 by ce & sim:0 -> host:0 by ce x2",
        "sim:0 -> sim:1 by sm & sim:0 -> sim:2 by sm & host:0 -> sim:0 by sm",
        "host:0 -> host:1 by cpu & sim:3 -> sim:4 by sim:4.ce & sim:1 -> null by sm x2",
        " & ".join(["sim:0 -> host:0 by ce"] * 16),
    )
    refused = (
        "host:0 -> sim:77 by ce",
        "host:77 -> sim:0 by ce",
        "host:0 -> cuda:0 by sim:0.ce",
        "host:0 -> sim:0 by host:0.cpu",
        "sim:1 -> sim:2 by sim:0.ce",
        "sim:0 <-> sim:1 by ce",
        "sim:0 -> null by ce",
        "host:0/managed -> sim:0 by ce",
        "host:0/pageable -> sim:0 by sm",
        "host:0 <-> host:1 by cpu",
        "host:0 -> host:0 by cpu*1000",
        "sim:0 -> sim:1 by sim:0.ccl",
        "cpu:0 -> cpu:77777",
        "cpu:3 -> cpu:3",
        "cpu:0 -> cpu:1 x2",
        "cpu:0 -> cpu:1 by cpu:1.cpu",
    )
    chases = ("host:1 -> null by sim:0.sm", "sim:1 -> null by sim:0.sm")
    exchanges = ("cpu:0 -> cpu:1", "cpu:95 -> cpu:0")
    ranks = ("sim:0", "sim:1", "sim:2", "sim:5")

    def __init__(self):
        self.backend = simulate(Simulation(*load("ppu-8")), EngineSettings())

    def corrupt(self, buffer, offset):
        buffer.flip(offset, 4)

    def content(self, buffer):
        return bytes(buffer.window[: buffer.size])


class Npu(Subject):
    """The vendor's library of docs/vendor.md."""

    arrays = ("npu:0", "sm")
    memories = ("npu:0", "host:0", "host:0/pageable")
    paths = (
        "host:0 -> npu:0 by ce",
        "npu:1 -> host:0/pageable by ce",
        "npu:0 -> npu:0 by ce",
        "npu:0 -> npu:1 by ce",
        "host:0/pageable -> npu:0 by ce",
    )
    groups = (
        "host:0 -> npu:0 by ce & npu:0 -> host:0 by ce x2",
        " & ".join(["npu:0 -> npu:1 by npu:1.ce"] * 16),
    )
    refused = (
        "host:0 -> npu:2 by ce",
        "host:77 -> npu:0 by ce",
        "host:0 -> npu:0 by sm",
        "npu:0 -> null by ce",
        "host:0/huge -> npu:0 by ce",
        "npu:0 -> npu:1 by host:0.cpu",
        "host:0 -> host:0 by npu:0.ce",
        "npu:0@1 -> host:0 by ce",
    )
    chases = ("npu:0 -> null by ce",)

    def __init__(self):
        npu = module_of(NPU / "linkgauge_npu.py")
        self.library = npu.Library(str(c_library_of(NPU / "npu.c")))
        self.backend = npu.Npu(self.library, read_host().nodes)

    def move(self, buffer, *how):
        if buffer.memory.is_host:
            super().move(buffer, *how)
        else:
            buffer.copy(*how)
