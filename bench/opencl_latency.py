"""Compare the pointer chase of OpenCL devices that are the CPU itself with a plain loop in C.

Both go over one full random cycle in the same pages of shared virtual memory, taking turns, as
host_latency.py does, whose loop in C it is. Needs gcc, and an OpenCL CPU device whose kernels reach
host memory in place (PoCL).
"""

from __future__ import annotations

import argparse
import ctypes
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from host_latency import ROUNDS, Outcome, by_group, compare, references
from linkgauge.backends import open_backend
from linkgauge.backends.opencl.chase import HOPS
from linkgauge.backends.opencl.memory import OpenCLBuffer
from linkgauge.backends.protocol import Backend, Copy
from linkgauge.model.errors import LinkgaugeError, Unsupported
from linkgauge.model.notation import parse_transfer

SIZES = (256 << 10, 2 << 20, 128 << 20)
"""Bytes within a core's own caches, of the benchmarks, and beyond all caches. What lies in between
is in a cache that other guests use too, each core's part of it another."""
LINE = 64
LOOPS = 64
"""Longer than what a launch and a wakening thread take."""


def chases(library: ctypes.CDLL, backend: Backend, rounds: int) -> Iterator[Outcome]:
    """A case for each size. The references' pointers lie in the lines of linkgauge's own."""
    transfer = parse_transfer("host:0 -> null by opencl:0.sm")
    if (reason := backend.refusal(transfer)) is not None:
        raise Unsupported(str(reason))
    for size in SIZES:
        buffer = backend.allocate(transfer.source, size, transfer.engine)
        with closing(backend.prepare([Copy(transfer, buffer, None, size, 1)], "chase")) as group:
            if not isinstance(buffer, OpenCLBuffer) or buffer.use != "shared":
                raise Unsupported("opencl:0 has no fine-grained shared virtual memory")
            start = ctypes.c_void_p(buffer.address)
            if library.make_cycle(start, ctypes.c_size_t(size)) != size // LINE:
                raise RuntimeError("the reference has no cycle over all lines")
            of_c = start, ctypes.c_uint64(LOOPS * HOPS), min(os.sched_getaffinity(0))
            theirs = partial(lambda given: library.chase(*given) / (LOOPS * HOPS), of_c)
            ours = by_group(group, LOOPS, HOPS)
            yield compare(f"chase, {size >> 10} KiB", "chase", rounds, (ours, theirs))
        buffer.free()


def main() -> int:
    """Prints each case; 1 if one misses its bar or cannot be measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="pairs of each case")
    rounds = parser.parse_args().rounds
    print("latency                      opencl (ns)         C (ns)      C : opencl [95 %]      bar")
    missed = 0
    try:
        with tempfile.TemporaryDirectory() as folder, closing(open_backend("opencl")) as backend:
            for outcome in chases(references(Path(folder)), backend, rounds):
                missed += not outcome.holds
                print(outcome, flush=True)
    except (RuntimeError, OSError, LinkgaugeError) as error:
        print(f"opencl_latency: {error}", file=sys.stderr)
        return 1
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
