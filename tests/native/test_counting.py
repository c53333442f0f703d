"""What threads meet with is counted, whatever the kernel grants."""

import errno
import os
import platform
import resource
import subprocess
import sys
import textwrap

import pytest

from linkgauge import _native

CPUS = sorted(os.sched_getaffinity(0))
SIZE = 1 << 20


def counted():
    memory = _native.Memory(SIZE, _native.Kind.PAGEABLE, None, CPUS[:1])
    team = _native.Team([_native.Job(_native.Op.WRITE, 0, memory.address, SIZE, 1, CPUS[:1])])
    try:
        assert team.counts().seconds == 0
        team.arm(3)
        team.open()
        (span,) = team.wait()
        return span, team.counts()
    finally:
        team.close()
        memory.close()


def test_a_team_counts_between_the_gate_and_its_end():
    span, counts = counted()
    assert counts.seconds >= span.end - span.begin
    assert counts.page_faults >= 0
    assert 0 <= counts.involuntary <= counts.context_switches


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


def test_too_few_descriptors_are_left_to_others():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert soft >= 8
    refused = run(
        f"""
        import resource
        from linkgauge import _native
        resource.setrlimit(resource.RLIMIT_NOFILE, (8, {hard}))
        """
    )
    assert refused.startswith(f"{errno.EMFILE} None True")
