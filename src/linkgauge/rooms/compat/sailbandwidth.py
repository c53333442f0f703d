"""`linkgauge as sailbandwidth`: PPU's adaptation of nvbandwidth, v2.1.0.

Source: "PCCL: sailbandwidth user guide (v2.1)".
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

import msgspec

from linkgauge.cli.tool import OnceAction

from .nvbandwidth import (
    HELP,
    WRITES_AS_READS,
    Dialect,
    NvbandwidthOptions,
    make_parser,
    number,
    parse,
    speak,
)

_HELP = HELP.replace("plain \n" + " " * 33, "plain ")
"""The same help without line breaks."""
_OWN_HELP = """\
  --useNormalCopy                Use normal copy for sm test
  --nBlocks arg (=-1)            nBlocks for sm bulk copy test
  --nThreads arg (=-1)           nThreads for sm bulk copy test
  --isSingleDie                  Use single die for ce test
  --testLocalCopy                Test local copy in D2D Tests
  --displayUR                    Show utilization ratio matrixs in D2D Tests
  --disableVm                    Disable virtual mode
"""
_WITHOUT_MEANING = ("isSingleDie", "disableVm")
"""Options specific to PPUs: other devices have no such choice."""


def _number(text: str, allowed: range, what: str) -> int | None:
    """None for -1, which leaves the choice to the backend."""
    return None if text == "-1" else number(text, allowed, what)


def sailbandwidth_options(arguments: Sequence[str]) -> NvbandwidthOptions:
    """Kernels copy by the bulk copy unit unless the normal copy is asked for. Raises UsageError;
    reports on stderr which options have no meaning here."""
    parser = make_parser()
    for name in ("useNormalCopy", "testLocalCopy", "displayUR", *_WITHOUT_MEANING):
        parser.add_argument(f"--{name}", action="store_true", default=False)
    blocks = partial(_number, allowed=range(1, 1 << 31), what="a number of blocks, or -1")
    multiples = range(64, 1025, 64)
    threads = partial(_number, allowed=multiples, what="a multiple of 64 up to 1024, or -1")
    parser.add_argument("--nBlocks", dest="blocks", type=blocks, action=OnceAction)
    parser.add_argument("--nThreads", dest="threads", type=threads, action=OnceAction)
    given = parse(parser, arguments)
    for name in _WITHOUT_MEANING:
        if given[name]:
            print(f"sailbandwidth: --{name} has no meaning here: ignored", file=sys.stderr)
    kernel = "plain" if given["useNormalCopy"] else "bulk"
    return msgspec.convert(given | {"kernel": kernel}, NvbandwidthOptions)


SAILBANDWIDTH = Dialect(
    "sailbandwidth",
    "v2.1.0",
    ("sailbandwidth Version: v2.1.0",),
    f"sailbandwidth CLI:\n{_HELP}{_OWN_HELP}",
    sailbandwidth_options,
    WRITES_AS_READS,
)

run = partial(speak, SAILBANDWIDTH)
