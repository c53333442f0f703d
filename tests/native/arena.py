"""CPUs, and threads that are alive, for the tests of the native core."""

from __future__ import annotations

import os
import time
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st

CPUS = sorted(os.sched_getaffinity(0))

cpu_lists = st.lists(st.sampled_from(CPUS), min_size=1, max_size=5)
quick = settings()


def threads_alive() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def settles_at(count: int) -> bool:
    """Whether the thread count returns; the kernel may list a joined thread for a moment."""
    for _ in range(200):
        if threads_alive() <= count:
            return True
        time.sleep(0.01)
    return False
