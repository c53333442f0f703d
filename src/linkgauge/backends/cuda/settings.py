"""Settings of copies: settings of engines for each path, and settings stored for a GPU model."""

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
"""The size in bytes from which one launch carries out all loops of a kernel copy, as in
nvbandwidth. Below this size each loop is a launch, so that the figure is that of single copies."""

LEAST_SEARCHED = 64 << 20
"""The size in bytes from which arrays are used to find the fastest kernel for a device's memory."""

LEAST_IN_KERNEL = 2
"""The fewest loops of a launch that carries out several loops. Multiprocessors do not finish at the
same time, which affects one loop more than two."""
IN_PLACE_LOOPS = 16
"""The in-place repeats of a step in a sample, as in nvbandwidth. With fewer repeats, caches serve a
smaller share of them."""

FULL_GRID = (1 << 31) - 1
"""A grid with a block for every tile of the copy."""


_PATHS = {
    ("host", "own"): "from-host",
    ("own", "host"): "to-host",
    ("own", "peer"): "peer-write",
    ("peer", "own"): "peer-read",
    ("own", "own"): "local",
}
"""The names of the paths on which settings depend. A path is given by the owners of source and
destination, as seen from the engine's device."""


class CopySettings(msgspec.Struct, frozen=True):
    """The settings of one copy. The defaults are the geometry of nvbandwidth's kernel.

    kernel     plain: threads access 16 bytes at a time; bulk: the bulk copy unit, through a ring of
               four 32 KiB chunks in shared memory (compute capability 9.0 and later)
    blocks     blocks of the grid; None: one per multiprocessor
    threads    threads of a block, a multiple of 64 (plain only)
    unroll     plain: accesses in flight per thread; bulk: chunks that load at the same time
    spread     a thread's accesses are a grid's width apart, otherwise a block's width (plain only)
    in_place   a step does all its loops before the next step begins (plain only): caches may then
               serve the repeats
    streaming  evict-first loads and stores (plain only)
    streams    streams over which a copy engine's transfer is split"""

    kernel: Literal["plain", "bulk"] = "plain"
    blocks: Blocks | None = None
    threads: Threads = 512
    unroll: Annotated[int, Meta(ge=1, le=32)] = 12
    spread: bool = False
    in_place: bool = False
    streaming: bool = False
    streams: Streams = 1

    def describe(self, engine: str) -> str:
        """Returns the settings that concern an engine (`ce` or `sm`), as text."""
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
"""nvbandwidth's split-warp kernel: one access per thread, repeated in place."""


ARRAY_DEFAULT = CopySettings(blocks=FULL_GRID, threads=1024, unroll=4)
"""The settings for kernels over arrays: a block for each 64 KiB."""
BULK_DEFAULT = CopySettings(kernel="bulk", unroll=2)


def is_shaped(engines: EngineSettings) -> bool:
    """Whether the user set the shape of kernels by hand."""
    return bool(engines.kernel or engines.blocks or engines.threads)


def override(
    base: CopySettings,
    engines: EngineSettings,
    transfer: Transfer,
    operation: OperationName = "copy",
) -> CopySettings:
    """Returns the settings `base`, changed by what the user set by hand. If the user sets a
    kernel's shape, all other values come from the kernel's defaults, not from a tuned shape. Copies
    in both directions use the plain kernel, because the bulk kernel copies in one direction
    only."""
    bulk = operation in ("copy", "peak-copy") and not transfer.both_ways
    given = {"streams": engines.streams}
    if transfer.engine.kind == "sm":
        given = {"blocks": engines.blocks, "threads": engines.threads}
        if engines.kernel == "bulk" and bulk:
            base = BULK_DEFAULT
        elif is_shaped(engines):
            base = defaults(transfer, operation)
    asked = {name: value for name, value in given.items() if value is not None}
    return msgspec.structs.replace(base, **asked)


def chosen(
    tuned: Mapping[str, CopySettings],
    engines: EngineSettings,
    transfer: Transfer,
    operation: OperationName = "copy",
) -> CopySettings:
    """Returns the settings set by hand, else the settings in `tuned` for the transfer's path, else
    the defaults."""
    base = tuned.get(key(transfer, operation), defaults(transfer, operation))
    return override(base, engines, transfer, operation)


def _seen(memory: Memory, owner: Memory) -> str:
    if memory.is_null or memory.is_host:
        return memory.space
    return "own" if memory.place == owner else "peer"


def key(transfer: Transfer, operation: OperationName = "copy") -> str:
    """Returns the name under which the tuned settings of a transfer are stored: `sm from-host`, or
    `sm peak-read` for arrays."""
    owner = transfer.engine.owner
    if operation != "copy":
        return f"{transfer.engine.kind} {operation}"
    ends = _seen(transfer.source, owner), _seen(transfer.destination, owner)
    path = "split" if transfer.both_ways else _PATHS.get(ends, "other")
    return f"{transfer.engine.kind} {path}"


def load_tuned(model: str, folder: Path | None = None) -> dict[str, CopySettings]:
    """Returns the settings stored for a GPU model. Returns an empty mapping if there are none or
    the file cannot be decoded."""
    return load(tuned_file(model, folder), dict[str, CopySettings])


def store_tuned(
    model: str, best: dict[str, CopySettings | None], folder: Path | None = None
) -> Path:
    """Stores settings for a GPU model, and keeps the stored settings of other paths. None instead
    of settings removes a path, which then uses the defaults. Raises OSError."""
    path = tuned_file(model, folder)
    known = load_tuned(model, folder) | best
    store(path, {name: settings for name, settings in known.items() if settings is not None})
    return path


def defaults(transfer: Transfer, operation: OperationName = "copy") -> CopySettings:
    """Returns the settings of a transfer for which no settings are tuned or set by hand."""
    if operation != "copy":
        return ARRAY_DEFAULT
    return SPLIT_DEFAULT if transfer.both_ways else DEFAULT
