"""Named ranges of cells in a profiler's timeline, through NVTX, which is optional."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from importlib.util import find_spec

from linkgauge.model.documents.result import PlannedCell
from linkgauge.model.errors import pip_install
from linkgauge.model.settings import Settings
from linkgauge.model.units import format_size

DOMAIN = "linkgauge"
_INJECTED = "NVTX_INJECTION64_PATH"
"""The environment variable with which a profiler makes NVTX load its library."""


def profiled_by(settings: Settings) -> str | None:
    """Returns the profiler in `settings`, or `a profiler` if the environment shows one, or None."""
    return settings.profiler or ("a profiler" if os.environ.get(_INJECTED) else None)


def advice(settings: Settings) -> str | None:
    profiler = profiled_by(settings)
    if profiler is None or find_spec("nvtx") is not None:
        return None
    remedy = pip_install("nvtx")
    return f"note: {profiler} sees no ranges of cells without NVIDIA's nvtx: {remedy}"


def range_name(cell: PlannedCell, size: int, benchmark: str) -> str:
    """Returns a range's name: `host_to_device_memcpy_ce (0, 1): host:0 -> cuda:1 by ce, 1 MiB`."""
    sized = f", {format_size(size)}" if size else ""
    return f"{benchmark} {cell.place}: {cell}{sized}".lstrip()


@contextmanager
def marked(names: Iterable[str], profiler: str | None) -> Iterator[None]:
    """Marks a range for each name while this block runs. Does nothing without a profiler."""
    with ExitStack() as open_ranges:
        if profiler is not None:
            try:
                annotate = import_module("nvtx").annotate
            except ImportError:  # said before the run
                names = ()
            for name in names:
                open_ranges.enter_context(annotate(name, domain=DOMAIN))
        yield
