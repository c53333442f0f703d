"""How CUDA copies are set up: by settings for each path, which may be tuned for a GPU model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from linkgauge.backends.cache import load, store, tuned_file
from linkgauge.model.memory import Memory
from linkgauge.model.operations.operation import OperationName
from linkgauge.model.settings import Blocks, EngineSettings, Streams, Threads
from linkgauge.model.transfer import Transfer

IN_KERNEL_LOOPS = 64 << 20
"""From this size on, one launch of a kernel does all loops, as in nvbandwidth. Below it, each loop
is a launch. The size is in bytes."""

LEAST_SEARCHED = 64 << 20
"""The smallest arrays, in bytes, with which the fastest kernel is searched."""

LEAST_IN_KERNEL = 2
"""The smallest number of loops in one launch. With a single loop, it matters more that
multiprocessors do not finish at the same time."""
IN_PLACE_LOOPS = 16
"""The number of in-place repeats in a sample, as in nvbandwidth. With fewer repeats, caches would
serve a smaller share."""

FULL_GRID = (1 << 31) - 1
"""A number of blocks that stands for one block for every tile of the copy."""


_PATHS = {
    ("host", "own"): "from-host",
    ("own", "host"): "to-host",
    ("own", "peer"): "peer-write",
    ("peer", "own"): "peer-read",
    ("own", "own"): "local",
}
"""The names of paths for settings. The key says where source and destination are, as seen from the
device that copies."""


class CopySettings(msgspec.Struct, frozen=True):
    """The settings of a copy by CUDA. The defaults are nvbandwidth's. A thread of a `plain` kernel
    accesses 16 bytes at a time. A `bulk` kernel uses the bulk copy unit (compute capability 9.0 and
    later) and a ring of four chunks of 32 KiB in shared memory. `blocks` is the number of blocks
    (None: one on each multiprocessor). `threads` is the number of threads in each block, a multiple
    of 64. `unroll` is the number of accesses that a thread has in flight (plain) or of chunks that
    are loaded ahead (bulk: 1 to 3). Only plain kernels use the next three settings. If `spread` is
    true, the accesses of a thread lie a grid's width apart, else a block's width. If `in_place` is
    true, a kernel does all loops of a part of the copy before the next part. If `streaming` is
    true, data leave the caches early. A copy engine's transfer is split over `streams` streams."""

    kernel: Literal["plain", "bulk"] = "plain"
    blocks: Blocks | None = None
    threads: Threads = 512
    unroll: Annotated[int, Meta(ge=1, le=32)] = 12
    spread: bool = False
    in_place: bool = False
    streaming: bool = False
    streams: Streams = 1

    def describe(self, engine: str) -> str:
        if engine == "ce":
            return f"{self.streams} streams"
        grid = "" if self.blocks in (None, FULL_GRID) else f" {self.blocks} blocks"
        if self.kernel == "bulk":
            return f"bulk{grid}, {self.unroll} of 4 chunks ahead"
        known = {"spread": self.spread, "in place": self.in_place, "streaming": self.streaming}
        hints = "".join(f", {name}" for name, on in known.items() if on)
        return f"plain{grid} of {self.threads} threads, {self.unroll} in flight{hints}"


DEFAULT = CopySettings()
SPLIT_DEFAULT = CopySettings(blocks=FULL_GRID, threads=1024, unroll=1, in_place=True)
"""The settings of nvbandwidth's split-warp kernel: one access per thread, repeated in place."""


ARRAY_DEFAULT = CopySettings(blocks=FULL_GRID, threads=1024, unroll=4)
"""The default settings of kernels over arrays: a block for each 64 KiB."""
BULK_DEFAULT = CopySettings(kernel="bulk", unroll=2)


def is_shaped(engines: EngineSettings) -> bool:
    return bool(engines.kernel or engines.blocks or engines.threads)


def chosen(
    tuned: Mapping[str, CopySettings],
    engines: EngineSettings,
    transfer: Transfer,
    operation: OperationName = "copy",
) -> CopySettings:
    """Returns the user's settings, else the settings in `tuned`, else the defaults. If the user
    sets a kernel or its grid, `tuned` is ignored."""
    given, default = {"streams": engines.streams}, defaults(transfer, operation)
    base = tuned.get(key(transfer, operation), default)
    if transfer.engine.kind == "sm":
        given = {"blocks": engines.blocks, "threads": engines.threads}
        bulk = operation in ("copy", "peak-copy") and not transfer.both_ways
        if engines.kernel == "bulk" and bulk:
            base = BULK_DEFAULT
        elif is_shaped(engines):
            base = default
    asked = {name: value for name, value in given.items() if value is not None}
    return msgspec.structs.replace(base, **asked)


def _seen(memory: Memory, owner: Memory) -> str:
    if memory.is_null or memory.is_host:
        return memory.space
    return "own" if memory.place == owner else "peer"


def key(transfer: Transfer, operation: OperationName = "copy") -> str:
    """Returns the name of a path's tuned settings, such as `sm from-host` or `sm peak-read`."""
    owner = transfer.engine.owner
    if operation != "copy":
        return f"{transfer.engine.kind} {operation}"
    ends = _seen(transfer.source, owner), _seen(transfer.destination, owner)
    path = "split" if transfer.both_ways else _PATHS.get(ends, "other")
    return f"{transfer.engine.kind} {path}"


def load_tuned(model: str, folder: Path | None = None) -> dict[str, CopySettings]:
    return load(tuned_file(model, folder), dict[str, CopySettings])


def tuned_notes(tuned: Mapping[str, CopySettings]) -> list[str]:
    return [
        f"tuned: {path}: {best.describe(path.partition(' ')[0])}"
        for path, best in sorted(tuned.items())
    ]


def store_tuned(
    model: str, best: dict[str, CopySettings | None], folder: Path | None = None
) -> Path:
    """Stores the settings in `best`, by path, and returns the file. None deletes a path's settings;
    paths that `best` lacks keep theirs. Raises OSError if the file cannot be written."""
    path = tuned_file(model, folder)
    known = load_tuned(model, folder) | best
    store(path, {name: settings for name, settings in known.items() if settings is not None})
    return path


def defaults(transfer: Transfer, operation: OperationName = "copy") -> CopySettings:
    if operation != "copy":
        return BULK_DEFAULT if operation == "bulk-copy" else ARRAY_DEFAULT
    return SPLIT_DEFAULT if transfer.both_ways else DEFAULT


def cuda_version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"
