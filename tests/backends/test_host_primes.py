"""Primes on host threads: rates by transfer, what was counted, and wrong numbers."""

import errno
import os
from types import SimpleNamespace

import pytest

from linkgauge import _native
from linkgauge.backends import host_primes
from linkgauge.backends.counting import refused
from linkgauge.backends.host_primes import FOUND, PrimesGroup
from linkgauge.machine.tree import Captured
from linkgauge.model.errors import BackendError

CPUS = sorted(os.sched_getaffinity(0))


def thread(events, seconds, found=None):
    """What one thread did, as the native core has it."""
    (own,) = _native.find_primes(CPUS[:1], 3, 1)
    found = FOUND * events if found is None else found
    return SimpleNamespace(
        begin=5.0, end=5.0 + seconds, events=events, found=found, counts=own.counts
    )


def timing(monkeypatch, threads, placed, loops=10):
    monkeypatch.setattr(
        host_primes, "_native", SimpleNamespace(find_primes=lambda *_: list(threads))
    )
    group = PrimesGroup(placed)
    group.arm(loops)
    group.open()
    return group.wait()


def test_a_rate_is_the_sum_of_the_threads_own(monkeypatch):
    """Who waits for the slowest one's last event has no lower rate by that."""
    found = timing(monkeypatch, [thread(10, 1.0), thread(4, 2.0)], [(0, 1)])
    assert found.seconds == (10 / 12,)
    assert found.span == 2.0


def test_each_node_has_its_own_rate(monkeypatch):
    threads = [thread(10, 1.0), thread(30, 1.0), thread(0, 1.0)]
    found = timing(monkeypatch, threads, [(0, 1), (2,)], loops=20)
    assert found.seconds[0] == 20 / 40
    assert found.seconds[1] > 1e9
    assert [(one.cpu, one.steps) for one in found.counters.threads] == [(0, 10), (1, 30), (2, 0)]


def test_a_wrong_number_of_primes_is_an_error(monkeypatch):
    with pytest.raises(BackendError, match="CPU 1 found 7 primes in 1 events"):
        timing(monkeypatch, [thread(1, 1.0), thread(1, 1.0, found=7)], [(0, 1)])


PARANOID = "proc/sys/kernel/perf_event_paranoid"
GUEST = {PARANOID: b"2", "sys/class/dmi/id/sys_vendor": b"QEMU"}


@pytest.mark.parametrize(
    ("code", "files", "reason"),
    [
        (errno.EACCES, {PARANOID: b"4"}, "kernel.perf_event_paranoid is 4: set it to 2"),
        (errno.EPERM, {PARANOID: b"2"}, "seccomp"),
        (errno.EPERM, {}, "CAP_PERFMON"),
        (errno.ENOSYS, {}, "has no perf_event_open"),
        (errno.ENOENT, {}, "has no perf_event_open"),
        (errno.ENOENT, {PARANOID: b"-1"}, "no performance counters (PMU) of this CPU"),
        (errno.ENOENT, GUEST, "QEMU gives this guest no performance counters"),
        (errno.EMFILE, {PARANOID: b"2"}, "ulimit -n"),
        (errno.EINVAL, {PARANOID: b"2"}, "perf_event_open: EINVAL"),
    ],
)
def test_missing_counters_have_a_reason(code, files, reason):
    assert reason in refused(code, Captured(files))
