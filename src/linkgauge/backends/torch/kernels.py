"""Work by torch's own kernels on one device: a copy, a write, or an operation of STREAM."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from linkgauge.backends.protocol import Copy
from linkgauge.model.errors import Unsupported
from linkgauge.model.operations.operation import Operation

from . import content
from .buffer import own
from .gated import GatedWork, repeated
from .runtime import TorchDevice

NO_READS = "torch has no operation that only reads memory and tells what it has read"


def by_kernel(unit: TorchDevice, copy: Copy, does: Operation) -> GatedWork:
    """Returns the work of a kernel of torch that is called once for each loop, on the whole
    buffers. If a size is not a multiple of 8, the kernel works on bytes."""
    if copy.destination is None:
        raise Unsupported(f"{copy.transfer}: {NO_READS}")
    return repeated((unit,), "launch", _call(unit.torch, copy, does))


def _call(torch: Any, copy: Copy, does: Operation) -> Callable[[], object]:
    into = own(copy.destination).tensor[: copy.size]
    if copy.source is None:
        return _writes(torch, into, copy)
    work = does.array
    if work is None or not work.computes:
        kind = torch.uint8 if copy.size % content.WORD else torch.int64
        ends = own(copy.source).tensor[: copy.size].view(kind), into.view(kind)
        return partial(torch.add, ends[0], 0, out=ends[1])
    numbers = into.view(torch.float64)
    arrays = own(copy.source).tensor.view(torch.float64)
    b, c = arrays[: numbers.numel()], arrays[numbers.numel() : 2 * numbers.numel()]
    if work.kind == "scale":
        return partial(torch.mul, b, 3.0, out=numbers)
    return partial(torch.add, b, c, alpha=3.0 if work.kind == "triad" else 1.0, out=numbers)


def _writes(torch: Any, into: Any, copy: Copy) -> Callable[[], object]:
    """Returns a function that writes the pattern CONSTANT. If the size is not a multiple of 8, a
    copy writes the last bytes."""
    whole = copy.size // content.WORD * content.WORD
    word = content.first_word(copy.seed)
    fill = partial(into[:whole].view(torch.int64).fill_, word)
    if copy.size == whole:
        return fill
    left = list(word.to_bytes(content.WORD, "little", signed=True)[: copy.size - whole])
    end = partial(into[whole:].copy_, torch.tensor(left, dtype=torch.uint8, device=into.device))
    return lambda: (fill(), end())
