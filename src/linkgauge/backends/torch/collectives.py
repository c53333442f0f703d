"""Carries out, times and checks one rank's part of a collective by torch.distributed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from linkgauge.backends.host_memory import usable_cpus
from linkgauge.backends.iterations import nothing
from linkgauge.backends.operations.collectives import POISON, CollectiveGroup, RankShare
from linkgauge.backends.protocol import Copy, Timing, Wrong
from linkgauge.model.errors import Unsupported
from linkgauge.model.operations.collective import Collective, CollectiveName, NumberName, Reduction

from .buffer import own
from .runtime import TorchDevice, calling

_TYPES: dict[NumberName, str] = {
    "int8": "int8",
    "uint8": "uint8",
    "int32": "int32",
    "int64": "int64",
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "bfloat16": "bfloat16",
}
_REDUCTIONS: dict[Reduction, str] = {
    "sum": "SUM",
    "prod": "PRODUCT",
    "max": "MAX",
    "min": "MIN",
    "avg": "AVG",
}
_CALLS: dict[CollectiveName, tuple[str, tuple[str, ...]]] = {
    "all_reduce": ("all_reduce", ("reduction",)),
    "reduce": ("reduce", ("root", "reduction")),
    "broadcast": ("broadcast", ("root",)),
    "all_gather": ("all_gather_into_tensor", ("given",)),
    "reduce_scatter": ("reduce_scatter_tensor", ("given", "reduction")),
    "alltoall": ("all_to_all_single", ("given",)),
}
"""torch's function for each collective, and its arguments after the result."""
_MOST_LOOPS = 1 << 16


def library_of(unit: TorchDevice) -> str:
    """Returns torch's name for the library of collectives. On ROCm, `nccl` means RCCL."""
    if unit.facts.type == "cuda":
        return "nccl"
    return {"cpu": "gloo", "xpu": "xccl"}.get(unit.facts.type) or unit.facts.type


class TorchCollective(CollectiveGroup):
    """A rank of a collective. All ranks raise Unsupported if torch lacks the operation."""

    most_loops = _MOST_LOOPS

    def __init__(
        self, distributed: Any, unit: TorchDevice, work: Collective, copy: Copy, place: int
    ) -> None:
        super().__init__(work)
        self._library = library_of(unit)
        _check(work, self._library)
        self._distributed, self._unit, self._place = distributed, unit, place
        rank, ranks = distributed.get_rank(), distributed.get_world_size()
        self._share = RankShare(work, rank, ranks, copy.size)
        self._counts = counts = self._share.counts
        kind, each = getattr(unit.torch, _TYPES[work.type]), work.number.bytes
        self._bytes = own(copy.destination).tensor
        source = self._bytes if work.in_place else own(copy.source).tensor
        sent, received = source[self._share.sends_at :], self._bytes[self._share.receives_at :]
        self._given = sent[: counts.send * each].view(kind)
        self._result = received[: counts.receive * each].view(kind)
        self._call = self._made() if counts.count else nothing

    @property
    def remarks(self) -> tuple[str, ...]:
        said = [
            f"by torch.distributed ({self._library}), torch {self._unit.torch.__version__}",
            "timed by the host's clock: Python's time to call torch is part of it",
        ]
        if self._copies_first:
            said.append("out of place: a copy to the receive buffer comes before the call")
        if not self._counts.count:
            said.append("nothing moves: a rank's share is a whole number of 16 bytes")
        names = (name for name in sorted(os.environ) if name.startswith(("NCCL_", "RCCL_")))
        return (*said, *(f"{name}={os.environ[name]}" for name in names))

    @property
    def _copies_first(self) -> bool:
        # Some calls of torch have a single buffer, so the data must be in the receive buffer first.
        return not self._work.in_place and "given" not in _CALLS[self._work.collective][1]

    def _made(self) -> Callable[[], object]:
        distributed, work = self._distributed, self._work
        reduction = work.reduction and getattr(distributed.ReduceOp, _REDUCTIONS[work.reduction])
        root = work.root or 0
        known = {"given": self._given, "root": root, "reduction": reduction}
        name, arguments = _CALLS[work.collective]
        made = getattr(distributed, name)
        call = partial(made, self._result, *(known[one] for one in arguments))
        if not self._copies_first:
            return call
        sends = work.collective != "broadcast" or self._share.rank == root
        return lambda: (self._result.copy_(self._given) if sends else None, call())

    def wait(self) -> Timing:
        loops, batches = self.pass_gate()
        begin = time.monotonic()
        self.carry_out(loops * batches)
        return Timing.of_one((begin, time.monotonic()))

    def carry_out(self, loops: int) -> None:
        with calling(f"torch.distributed.{self._work.collective}"):
            for _ in range(loops):
                for _ in range(self._work.aggregated):
                    self._call()
                if self._work.blocking:
                    self._unit.finish()
        self._unit.finish()

    def iterations(self, count: int) -> tuple[tuple[float, ...], ...]:
        """Returns this rank's seconds for each of `count` iterations. A barrier precedes each."""
        found = []
        for _ in range(count):
            with calling("torch.distributed.barrier"):
                self._distributed.barrier()
                self._unit.finish()
            begin = time.monotonic()
            self.carry_out(1)
            found.append((time.monotonic() - begin) / self._work.aggregated)
        return (tuple(found),)

    def fill(self) -> None:
        """Fills the send buffer with data made on the host, and overwrites the receive buffer."""
        self._bytes.fill_(POISON)
        if self._counts.send:
            made = self._host_copy(self._given)
            self._share.fill(made.data_ptr(), self._seed, usable_cpus())
            self._given.copy_(made)
        self._unit.finish()

    def found(self) -> Iterator[Wrong]:
        found = self._host_copy(self._result)
        count, first = self._share.wrong(found.data_ptr(), self._seed, usable_cpus())
        yield Wrong(count, self._place, first)

    def _host_copy(self, numbers: Any) -> Any:
        with calling("Tensor.to"):
            return numbers.to("cpu", copy=True).contiguous()


def _check(work: Collective, library: str) -> None:
    name = work.collective
    if name not in _CALLS:
        raise Unsupported(f"torch.distributed has no {name} of one tensor")
    if work.type not in _TYPES:
        raise Unsupported(f"torch.distributed has no numbers of type {work.type}")
    if work.reduction is not None and (
        work.reduction not in _REDUCTIONS or (work.reduction == "avg" and library == "gloo")
    ):
        raise Unsupported(f"{library} does not reduce by {work.reduction} through torch")
    if work.graphed or work.registered:
        raise Unsupported("torch.distributed takes no graphs and no registered buffers here")
