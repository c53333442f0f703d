"""What threads meet with is counted, whatever the kernel grants."""

import errno
import platform
import subprocess
import sys
import textwrap

import pytest


def run(code: str) -> str:
    """What a process prints that first runs `code`, and then searches primes."""
    script = textwrap.dedent(code) + textwrap.dedent(
        """
        import os
        from linkgauge._native import find_primes
        (thread,) = find_primes(sorted(os.sched_getaffinity(0))[:1], 100, 1)
        counts = thread.counts
        print(counts.refused, counts.cycles, counts.page_faults >= 0, counts.migrations)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241, "riscv64": 241}


@pytest.mark.skipif(platform.machine() not in PERF_EVENT_OPEN, reason="number of the call unknown")
def test_a_seccomp_profile_that_refuses_perf_leaves_what_the_kernel_counts():
    """As a container's does: the filter answers this one call with EPERM."""
    refused = run(
        f"""
        import ctypes, struct
        number, eperm = {PERF_EVENT_OPEN[platform.machine()]}, {errno.EPERM}
        program = b"".join(
            struct.pack("HBBI", *line)
            for line in (
                (0x20, 0, 0, 0),  # load the call's number
                (0x15, 0, 1, number),  # if it is this one
                (0x06, 0, 0, 0x00050000 | eperm),  # refuse
                (0x06, 0, 0, 0x7FFF0000),  # else allow
            )
        )
        buffer = ctypes.create_string_buffer(program)
        filter = struct.pack("HxxxxxxP", 4, ctypes.addressof(buffer))
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.prctl(38, 1, 0, 0, 0) == 0  # no new privileges
        assert libc.prctl(22, 2, filter, 0, 0) == 0  # filter calls
        """
    )
    assert refused.startswith(f"{errno.EPERM} None True")
