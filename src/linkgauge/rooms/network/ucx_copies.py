"""Carries out a rank's part of copies by UCX. The rank whose interface is the copy's engine puts or
gets the bytes. The other rank polls UCX until a message says that all bytes have arrived."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from linkgauge import _native
from linkgauge.model.errors import TookTooLong
from linkgauge.model.hardware.inventory import Interface
from linkgauge.model.transfer import Engine, Transfer

from .ucx import Mapped, Worker, check, timed

BY_UCX = ("ucx", "rdma")
WINDOW = 128
"""The copies of one buffer that are under way at the same time. With this many, the sender rarely
waits for a copy to end."""
GPU_TRANSPORT = "cuda_copy"
"""The transport for GPU memory, used together with a transport of the network. cuda_ipc would
bypass the network."""


class UcxWorkers:
    """UCX workers, one for each interface and transport. A worker opens at its first use."""

    def __init__(self, nics: Sequence[Interface], *, with_gpu: bool = False) -> None:
        self._nics = nics
        self._more = (GPU_TRANSPORT,) if with_gpu else ()
        self._opened: dict[int | None, Worker] = {}

    def of_engine(self, engine: Engine, rank: int) -> Worker:
        if not engine.owner.is_nic:
            return self._at(None, engine)
        own = engine.owner.rank == rank or engine.far is None
        return self._at(engine.owner.index if own else engine.far, engine)

    def _at(self, number: int | None, engine: Engine) -> Worker:
        key = number if engine.kind == "ucx" or number is None else ~number
        if key not in self._opened:
            self._opened[key] = Worker(self._settings(number, engine))
        return self._opened[key]

    def _settings(self, number: int | None, engine: Engine) -> dict[str, str]:
        if number is None:
            return {}
        nic = self._nics[number]
        name, transport = (f"{nic.rdma}:1", "ib") if engine.kind == "rdma" else (nic.name, "tcp")
        return {"NET_DEVICES": name, "TLS": ",".join((transport, *self._more))}

    def close(self) -> None:
        for worker in self._opened.values():
            worker.close()
        self._opened.clear()


class UcxPart(NamedTuple):
    """A rank's part of a copy, number `place` in its cell. `there` is the other rank's
    memory. If `moves`, this rank moves the bytes: it puts them if `puts`, else it gets them."""

    place: int
    transfer: Transfer
    worker: Worker
    address: int
    size: int
    handle: int
    there: Mapped
    puts: bool
    moves: bool
    tag: int


class Copies:
    """A rank's copies. They begin together, and fail after `silent` seconds without progress."""

    def __init__(self, parts: Sequence[UcxPart], loops: int, silent: float) -> None:
        self._parts = parts
        self._silent = silent
        fields = [_fields(part) for part in parts]
        self._native = _native.UcxCopies(timed(), fields, loops, WINDOW)

    def run(self) -> dict[int, float]:
        """Runs the copies. Returns the end time of each copy that this rank moves, by `place`."""
        self._native.run(self._silent)
        if self._native.silent:
            transfer = self._parts[0].transfer
            raise TookTooLong("UCX", f"{transfer}: silent for {self._silent:g} s")
        call, status, at = self._native.failure
        if call:
            check(call, status, str(self._parts[at].transfer))
        moved = zip(self._parts, self._native.ended, strict=True)
        return {part.place: ended for part, ended in moved if part.moves}


def _fields(part: UcxPart) -> tuple[int, int, int, int, int, int, int, int, bool, bool]:
    end = key = 0
    if part.moves:
        end = part.worker.end(part.there.worker)
        key = part.worker.key(end, part.there.key)
    own = (part.address, part.size, part.handle)
    return (part.worker.handle, end, key, *own, part.there.address, part.tag, part.puts, part.moves)
