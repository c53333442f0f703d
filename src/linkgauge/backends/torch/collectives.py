"""A rank's part of a collective by torch.distributed: timed, its iterations apart, and checked."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from linkgauge import _native
from linkgauge.backends.protocol import Copy, Gated, Pace, Timing, Wrong
from linkgauge.model.collective import (
    Collective,
    NumberName,
    Reduction,
    content_fields,
    origin_of,
)
from linkgauge.model.errors import Unsupported

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
_POISON = 0xA5
_MOST_LOOPS = 1 << 16


def library_of(unit: TorchDevice) -> str:
    """torch's name for what carries out collectives of such devices: nccl is RCCL on ROCm."""
    if unit.facts.type == "cuda":
        return "nccl"
    return {"cpu": "gloo", "xpu": "xccl"}.get(unit.facts.type) or unit.facts.type


class TorchCollective(Gated):
    """The part of the rank that is at `place`, in the group that torch.distributed has joined.
    Raises Unsupported, in all ranks alike, for what torch does not do."""

    most_loops = _MOST_LOOPS

    def __init__(
        self, distributed: Any, unit: TorchDevice, work: Collective, copy: Copy, place: int
    ) -> None:
        self._library = library_of(unit)
        _check(work, self._library)
        self._distributed, self._unit, self._work, self._place = distributed, unit, work, place
        self._rank, self._ranks = distributed.get_rank(), distributed.get_world_size()
        self._counts = counts = work.counts(copy.size, self._ranks)
        self._seed = 0
        self.pace = Pace(seconds=0.02, loops=2, steps=work.aggregated, rehearsed=True)
        kind = getattr(unit.torch, _TYPES[work.type])
        whole = own(copy.destination).tensor
        self._bytes = whole
        numbers = whole[: whole.numel() // work.number.bytes * work.number.bytes].view(kind)
        if work.in_place:
            sends, receives = self._rank * counts.send_step, self._rank * counts.receive_step
            self._given = numbers[sends : sends + counts.send]
            self._result = numbers[receives : receives + counts.receive]
            self._all = numbers
        else:
            source = own(copy.source).tensor
            size = counts.send * work.number.bytes
            self._given = source[:size].view(kind)
            self._result = self._all = numbers[: counts.receive]
        self._call = self._made() if counts.count else (lambda: None)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader of the figure must know."""
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
        """torch works in the buffer that it is given."""
        return not self._work.in_place and self._work.collective in (
            "all_reduce",
            "reduce",
            "broadcast",
        )

    def _made(self) -> Callable[[], object]:
        """One call of the collective."""
        distributed, work = self._distributed, self._work
        reduction = work.reduction and getattr(distributed.ReduceOp, _REDUCTIONS[work.reduction])
        root = work.root or 0
        match work.collective:
            case "all_reduce":
                call = partial(distributed.all_reduce, self._result, reduction)
            case "reduce":
                call = partial(distributed.reduce, self._result, root, reduction)
            case "broadcast":
                call = partial(distributed.broadcast, self._result, root)
            case "all_gather":
                gathered = self._all[: self._counts.receive]
                return partial(distributed.all_gather_into_tensor, gathered, self._given)
            case "reduce_scatter":
                return partial(
                    distributed.reduce_scatter_tensor, self._result, self._given, reduction
                )
            case _:
                return partial(distributed.all_to_all_single, self._result, self._given)
        if not self._copies_first:
            return call
        sends = work.collective != "broadcast" or self._rank == root
        return lambda: (self._result.copy_(self._given) if sends else None, call())

    def wait(self) -> Timing:
        loops, laps = self.pass_gate()
        begin = time.monotonic()
        self._carry_out(loops * laps)
        seconds = time.monotonic() - begin
        return Timing((seconds,), seconds, (None,), ((0.0, seconds),))

    def _carry_out(self, loops: int) -> None:
        """So many iterations, until the device is done."""
        with calling(f"torch.distributed.{self._work.collective}"):
            for _ in range(loops):
                for _ in range(self._work.aggregated):
                    self._call()
                if self._work.blocking:
                    self._unit.finish()
        self._unit.finish()

    def iterations(self, count: int) -> tuple[tuple[float, ...], ...]:
        """Each after a barrier."""
        found = []
        for _ in range(count):
            with calling("torch.distributed.barrier"):
                self._distributed.barrier()
                self._unit.finish()
            begin = time.monotonic()
            self._carry_out(1)
            found.append((time.monotonic() - begin) / self._work.aggregated)
        return (tuple(found),)

    def check(self) -> Wrong:
        """Fills this rank's buffers, carries the collective out once, and counts what is wrong. The
        numbers are made and compared in the host's memory."""
        self._seed += 1
        self._bytes.fill_(_POISON)
        number, cpus = self._work.number, sorted(os.sched_getaffinity(0))
        content = content_fields(self._work, self._ranks, self._seed)
        if self._counts.send:
            made = self._host_copy(self._given)
            where = made.data_ptr(), self._counts.send, number.code
            _native.fill_content(*where, content, self._rank, cpus)
            self._given.copy_(made)
        self._unit.finish()
        self._carry_out(1)
        origin = origin_of(self._work, self._counts, self._rank, self._ranks)
        if origin is None or not self._counts.receive:
            return Wrong()
        found = self._host_copy(self._result)
        where = found.data_ptr(), self._counts.receive, number.code
        origins = origin.first, origin.chunk, origin.base
        count, first = _native.count_wrong(*where, content, origins, cpus)
        return Wrong(count, self._place, first)

    def _host_copy(self, numbers: Any) -> Any:
        with calling("Tensor.to"):
            return numbers.to("cpu", copy=True).contiguous()


def _check(work: Collective, library: str) -> None:
    """Raises Unsupported for what torch.distributed, or what it calls, does not do."""
    name = work.collective
    known = ("all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "alltoall")
    if name not in known:
        raise Unsupported(f"torch.distributed has no {name} of one tensor")
    if work.type not in _TYPES:
        raise Unsupported(f"torch.distributed has no numbers of type {work.type}")
    if work.reduction is not None and (
        work.reduction not in _REDUCTIONS or (work.reduction == "avg" and library == "gloo")
    ):
        raise Unsupported(f"{library} does not reduce by {work.reduction} through torch")
    if work.graphed or work.registered:
        raise Unsupported("torch.distributed takes no graphs and no registered buffers here")
