"""The buffers of a rank whose network interfaces move bytes: pinned memory of its host and, for
UCX, memory of its GPU."""

from __future__ import annotations

from linkgauge import _native
from linkgauge.backends import GPUS, native, open_backend
from linkgauge.backends.cuda import CudaBackend
from linkgauge.backends.cuda.memory import address_in
from linkgauge.backends.member import Allocate, Allocated, BackendMember
from linkgauge.backends.protocol import Backend, Pattern
from linkgauge.backends.rank_memory import HostMemory
from linkgauge.machine.host import read_host
from linkgauge.machine.launch import Launch
from linkgauge.model.errors import BackendError
from linkgauge.model.memory import Memory
from linkgauge.model.notation import parse_memory
from linkgauge.model.settings import Settings


class NetGpu(BackendMember):
    """This rank's GPU: the one of its number among the ranks of its machine; if there are fewer,
    ranks share them."""

    backend: CudaBackend

    def __init__(self, launch: Launch, backend: Backend) -> None:
        if not isinstance(backend, CudaBackend):
            raise TypeError(f"not the cuda backend: {backend!r}")
        devices = backend.devices()
        super().__init__(launch.rank, backend, devices[launch.local_rank % len(devices)])
        self.place = Memory(GPUS, parse_memory(self._device.memory).index, rank=launch.rank)

    def enter(self) -> None:
        """Makes its context that of the calling thread: UCX uses whichever is current."""
        self.backend.device_of(self.place).enter()


def open_gpu(launch: Launch, settings: Settings) -> NetGpu:
    """Raises Unsupported, in one line, if there is none."""
    return NetGpu(launch, open_backend(GPUS, settings.engines, read_host()))


class NetMemory:
    """Buffers by their number in the run. Calls about one that is not here raise BackendError."""

    def __init__(self, rank: int, gpu: NetGpu | None = None) -> None:
        self.host = HostMemory(rank)
        self.gpu = gpu
        self._pages: dict[int, _native.Memory] = {}

    def enter(self) -> None:
        """To be called by a thread before it uses UCX."""
        if self.gpu is not None:
            self.gpu.enter()

    def allocate(self, command: Allocate) -> Allocated:
        """Raises AllocationError, and Unsupported if it cannot be placed."""
        if command.memory.is_host:
            self._pages[command.number], allocated = self.host.allocate(command)
            return allocated
        if self.gpu is None or command.memory != self.gpu.place:
            raise BackendError("allocate", f"{command.memory} is not here")
        return self.gpu.allocate(command)

    def address(self, number: int) -> int:
        if number in self._pages:
            return self._pages[number].address
        return address_in(self._of_gpu(number).buffers[number])

    def free(self, number: int) -> None:
        """Does nothing for a buffer of another rank."""
        pages = self._pages.pop(number, None)
        if pages is not None:
            pages.close()
        elif self.gpu is not None:
            self.gpu.free(number)

    def fill(self, number: int, size: int, pattern: Pattern, seed: int, inverted: bool) -> None:
        if number in self._pages:
            address = self._pages[number].address
            native.fill(address, size, pattern, seed, inverted, self.host.cpus)
        else:
            self._of_gpu(number).fill(number, size, pattern, seed, inverted)

    def first_mismatch(self, number: int, size: int, pattern: Pattern, seed: int) -> int | None:
        if number in self._pages:
            address = self._pages[number].address
            return native.first_mismatch(address, size, pattern, seed, self.host.cpus)
        return self._of_gpu(number).first_mismatch(number, size, pattern, seed)

    def checksum(self, number: int, size: int) -> int:
        if number in self._pages:
            return native.checksum(self._pages[number].address, size, self.host.cpus)
        return self._of_gpu(number).checksum(number, size)

    def _of_gpu(self, number: int) -> NetGpu:
        if self.gpu is None or number not in self.gpu.buffers:
            raise BackendError("buffer", f"number {number} is not allocated here")
        return self.gpu

    def close(self) -> None:
        for number in tuple(self._pages):
            self.free(number)
        if self.gpu is not None:
            self.gpu.close()
