"""Runs sailbandwidth, PPU's adaptation of nvbandwidth, v2.1.0: `linkgauge as sailbandwidth`.

Source: "PCCL: sailbandwidth user guide (v2.1)"."""

from __future__ import annotations

from functools import partial

from linkgauge.cli.tool_options import ToolOption

from .nvbandwidth import speak
from .nvbandwidth.dialects import OPTIONS, WRITES_AS_READS, Dialect, number_or_all

_blocks = partial(number_or_all, allowed=range(1, 1 << 31), what="a number of blocks")
_threads = partial(number_or_all, allowed=range(64, 1025, 64), what="a multiple of 64 up to 1024")
_OPTIONS = (
    *(option._replace(about=option.about.replace("\n", "")) for option in OPTIONS),
    ToolOption("--useNormalCopy", "Use normal copy for sm test"),
    ToolOption("--nBlocks arg (=-1)", "nBlocks for sm bulk copy test", _blocks, "blocks"),
    ToolOption("--nThreads arg (=-1)", "nThreads for sm bulk copy test", _threads, "threads"),
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
