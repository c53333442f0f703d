"""Emulates PPU's sailbandwidth v2.1.0. Source: "PCCL: sailbandwidth user guide (v2.1)"."""

from __future__ import annotations

from functools import partial

from linkgauge.cli.tool_options import ToolOption, whole

from .nvbandwidth import speak
from .nvbandwidth.dialects import OPTIONS, WRITES_AS_READS, Dialect, or_all


def _threads(written: str) -> int:
    if (number := whole(written)) not in range(64, 1025, 64):
        raise ValueError("give a multiple of 64 up to 1024, or -1")
    return number


_OPTIONS = (
    *(option._replace(about=option.about.replace("\n", "")) for option in OPTIONS),
    ToolOption("--useNormalCopy", "Use normal copy for sm test"),
    ToolOption("--nBlocks arg (=-1)", "nBlocks for sm bulk copy test", or_all(whole), "blocks", 1),
    ToolOption(
        "--nThreads arg (=-1)", "nThreads for sm bulk copy test", or_all(_threads), "threads"
    ),
    ToolOption("--isSingleDie", "Use single die for ce test"),
    ToolOption("--testLocalCopy", "Test local copy in D2D Tests"),
    ToolOption("--displayUR", "Show utilization ratio matrixs in D2D Tests"),
    ToolOption("--disableVm", "Disable virtual mode"),
)

SAILBANDWIDTH = Dialect(
    "sailbandwidth",
    "v2.1.0",
    ("sailbandwidth Version: v2.1.0",),
    _OPTIONS,
    WRITES_AS_READS,
    has_bulk=True,
)

run = partial(speak, SAILBANDWIDTH)
