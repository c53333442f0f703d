"""What UCX does for a put in shared memory, without UCX: process_vm_writev (CMA) into the memory of
another process. Pages decide: ucx_perftest's buffers are segments of System V (small pages),
linkgauge's are anonymous (huge pages, where the kernel has them).

    python bench/cma.py [MIB] [ROUNDS]

Kinds of pages alternate; every byte is checked. The other process has nothing to do.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import statistics
import sys
import time

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.shmat.restype = ctypes.c_void_p
PUTS = 32
KINDS = ("System V", "small pages", "huge pages")


class Vector(ctypes.Structure):
    _fields_ = (("address", ctypes.c_void_p), ("length", ctypes.c_size_t))


def allocate(kind: str, size: int) -> int:
    """The address of memory that nobody frees before the end."""
    if kind == "System V":
        segment = LIBC.shmget(0, ctypes.c_size_t(size), 0o1600)
        address = LIBC.shmat(segment, None, 0)
        LIBC.shmctl(segment, 0, None)  # IPC_RMID: gone with the last who is attached
        return int(address)
    pages = mmap.mmap(-1, size + (2 << 20), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    advice = mmap.MADV_HUGEPAGE if kind == "huge pages" else mmap.MADV_NOHUGEPAGE
    pages.madvise(advice)
    KEPT.append(pages)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    return -(-begin // (2 << 20)) * (2 << 20)


KEPT: list[mmap.mmap] = []


def rate(kind: str, size: int) -> float:
    """Bytes/s of puts into a child that has written all of its buffer once."""
    own, there = allocate(kind, size), allocate(kind, size)
    data = os.urandom(1 << 20) * (size >> 20)
    ctypes.memmove(own, data, size)
    says, ready = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        ctypes.memset(there, 1, size)
        os.write(ready[1], b"r")
        os.read(says[0], 1)
        os._exit(ctypes.string_at(there, size) != data)
    os.read(ready[0], 1)
    source, target = Vector(own, size), Vector(there, size)
    write = LIBC.process_vm_writev
    arguments = (child, ctypes.byref(source), 1, ctypes.byref(target), 1, 0)
    try:
        for _ in range(4):
            write(*arguments)
        begun = time.perf_counter()
        done = sum(write(*arguments) for _ in range(PUTS))
        seconds = time.perf_counter() - begun
        os.write(says[1], b"!")
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    if done != PUTS * size or os.waitpid(child, 0)[1]:
        sys.exit(f"{kind}: not all bytes arrived")
    return done / seconds


def main() -> None:
    size = (int(sys.argv[1]) if len(sys.argv) > 1 else 16) << 20
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    found: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for _ in range(rounds):
        for kind in KINDS:
            found[kind].append(rate(kind, size) / 1e9)
    for kind, rates in found.items():
        low, high = min(rates), max(rates)
        print(f"{kind:12} {statistics.median(rates):6.2f} GB/s ({low:.2f} to {high:.2f})")


if __name__ == "__main__":
    main()
