"""The host backend: CPUs of its threads, arrays, primes, products, and what is missing for them."""

import errno
import os
import re
import sys
from contextlib import closing
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from linkgauge import _native
from linkgauge.backends.host import HostBackend
from linkgauge.backends.native import refused
from linkgauge.backends.operations import by_threads as primes
from linkgauge.backends.protocol import Copy, run
from linkgauge.machine.host import read_host
from linkgauge.machine.tree import Captured
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.hardware.machine import Node
from linkgauge.model.notation import parse_transfers
from linkgauge.model.operations.operation import size_of
from machine_kit import captured

CPUS = sorted(os.sched_getaffinity(0))


def copies_of(backend, transfers):
    return [
        Copy(
            transfer,
            *(
                None if memory.is_null else backend.allocate(memory, 4096, transfer.engine)
                for memory in (transfer.source, transfer.destination)
            ),
            4096,
            1,
        )
        for transfer in transfers
    ]


@pytest.mark.parametrize(
    ("text", "threads"),
    [
        ("null -> host:0 by cpu*2", None),
        ("null -> host:0 by cpu*1 & host:0 -> null by cpu*1", None),
        ("null -> host:0 by cpu & host:0 -> null by cpu", None),
        ("null -> host:0 by cpu*2 & host:0 -> null by cpu*1", 3),
        ("null -> host:0 by cpu & host:0 -> null by cpu & host:0 -> null by cpu", 3),
    ],
)
def test_threads_that_share_cpus_are_told(text, threads):
    cpu = read_host().nodes[0].cpus[0]
    backend = HostBackend([Node(0, (cpu, cpu))])  # one CPU stands for two: any machine has it
    transfers = parse_transfers(text)
    copies = copies_of(backend, transfers)
    backend.prepare(copies).close()
    says = [] if threads is None else [f"host:0: {threads} threads share 2 CPUs"]
    for transfer in transfers:
        assert [words for words in backend.remarks(transfer) if "share" in str(words)] == says
    backend.prepare(copies[:1]).close()
    assert not any("share" in str(words) for words in backend.remarks(transfers[0]))


@pytest.mark.parametrize(
    ("engine", "reason"),
    [
        ("host:0.cpu*2", None),
        ("host:0.cpu*3", "host:0 has 2 usable CPUs"),
        ("host:2.cpu", "this process may use no CPU of host:2 (cpuset)"),
    ],
)
def test_a_node_has_so_many_usable_cpus(engine, reason):
    backend = HostBackend([Node(0, (CPUS[0], CPUS[0])), Node(2, ())])
    (transfer,) = parse_transfers(f"host:0 -> host:0 by {engine}")
    assert backend.refusal(transfer) == reason


@pytest.mark.parametrize(
    ("text", "operation", "why"),
    [
        ("host:0 -> null by cpu", "peak-copy", "peak-copy is another operation (a = b)"),
        ("null -> host:0 by cpu", "stream-read", "stream-read is another operation (b is read)"),
        ("host:0 -> host:0 by cpu", "peak-add", "the source of peak-add holds two arrays"),
    ],
)
def test_what_has_other_arrays_is_refused(text, operation, why):
    backend = HostBackend([Node(0, (CPUS[0],))])
    with pytest.raises(Unsupported, match=re.escape(f"{text}: {why}")):
        backend.prepare(copies_of(backend, parse_transfers(text)), operation)


def thread(events, seconds, found=None):
    """What one thread did, as the native core has it."""
    (own,) = _native.find_primes(CPUS[:1], 3, 1)
    found = primes.FOUND[10_000] * events if found is None else found
    return SimpleNamespace(
        begin=5.0, end=5.0 + seconds, events=events, found=found, counts=own.counts
    )


def timing(monkeypatch, threads, placed, loops=10):
    monkeypatch.setattr(primes, "_native", SimpleNamespace(find_primes=lambda *_: list(threads)))
    group = primes.PrimesGroup(placed, 10_000)
    return run(group, loops)


def test_a_rate_is_the_sum_of_the_threads_own(monkeypatch):
    """Who waits for the slowest one's last event has no lower rate by that."""
    found = timing(monkeypatch, [thread(10, 1.0), thread(4, 2.0)], [(0, 1)])
    assert found.seconds == (10 / 12,)
    assert found.span == 2.0


def test_a_wrong_number_of_primes_is_an_error(monkeypatch):
    with pytest.raises(BackendError, match="CPU 1 found 7 primes in 1 events"):
        timing(monkeypatch, [thread(1, 1.0), thread(1, 1.0, found=7)], [(0, 1)])


TICKS = os.sysconf("SC_CLK_TCK")
STAT = f"""cpu  9 9 9 9 9 9 9 {7 * TICKS} 0 0
cpu0 1 1 1 1 1 1 1 {TICKS} 0 0
cpu1 1 1 1 1 1 1 1 {2 * TICKS} 0 0
cpu12 1 1 1 1 1 1 1 {4 * TICKS} 0 0
intr 5
"""


@pytest.mark.parametrize(
    ("stat", "cpus", "seconds"),
    [
        *((STAT, [0], 1), (STAT, [1, 12], 6), (STAT, [0, 1, 12], 7)),
        *(("", [0], None), ("cpu0 1 2 3", [0], None), ("cpu0 a b c d e f g h", [0], None)),
        (STAT.replace("cpu1 ", "x "), [0, 1], None),
        (STAT.replace(f"{2 * TICKS} 0", "9" * 5000), [0, 1], None),
    ],
)
def test_the_steal_of_the_cpus_used_is_added_up_if_all_are_reported(
    monkeypatch, stat, cpus, seconds
):
    """None before, so much after."""
    before = re.sub(r"( 1){7} \d+", r" 1 1 1 1 1 1 1 0", STAT)
    monkeypatch.setattr(primes, "ROOT", captured({"proc/stat": before}))

    def find(*_):
        monkeypatch.setattr(primes, "ROOT", captured({"proc/stat": stat}))
        return [thread(10, 1.0) for _ in cpus]

    monkeypatch.setattr(primes, "_native", SimpleNamespace(find_primes=find))
    group = primes.PrimesGroup([cpus], 10_000)
    assert run(group, 10).counters.steal == seconds


PARANOID = "proc/sys/kernel/perf_event_paranoid"
GUEST = {PARANOID: b"2", "sys/class/dmi/id/sys_vendor": b"QEMU"}


@pytest.mark.parametrize(
    ("code", "files", "reason"),
    [
        (errno.EACCES, {PARANOID: b"4"}, "kernel.perf_event_paranoid is 4: set it to 2"),
        (errno.EPERM, {PARANOID: b"2"}, "seccomp"), (errno.EPERM, {}, "CAP_PERFMON"),
        (errno.ENOSYS, {}, "has no perf_event_open"), (errno.ENOENT, {}, "has no perf_event_open"),
        (errno.ENOENT, {PARANOID: b"-1"}, "no performance counters (PMU) of this CPU"),
        (errno.ENOENT, GUEST, "QEMU gives this guest no performance counters"),
        (errno.EMFILE, {PARANOID: b"2"}, "ulimit -n"),
        (errno.EINVAL, {PARANOID: b"2"}, "perf_event_open: EINVAL"),
    ],
)  # fmt: skip
def test_missing_counters_have_a_reason(code, files, reason):
    assert reason in refused(code, Captured(files))


def product_of(edge):
    (work,) = parse_transfers("null -> null by host:0.cpu*1")
    backend = HostBackend([Node(0, (CPUS[0],))])
    return backend.prepare([Copy(work, None, None, size_of(edge), 3)], "matmul-fp32")


def test_products_of_less_than_single_precision_are_found_wrong():
    """As TF32 has it: ten bits after the point."""
    numpy = pytest.importorskip("numpy")
    pytest.importorskip("threadpoolctl")
    group = product_of(200)
    run(group, 2)
    assert group.mismatch() is None
    coarse = [
        (matrix.view(numpy.uint32) & numpy.uint32(0xFFFFE000)).view(numpy.float32)
        for matrix in (group.product._a, group.product._b)
    ]
    group.product._product = coarse[0] @ coarse[1]
    assert group.mismatch() is not None


@pytest.mark.parametrize("missing", ["numpy", "threadpoolctl"])
def test_without_the_library_it_is_skipped_with_the_remedy(missing, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(Unsupported, match=r"not installed: .* -m pip install 'linkgauge\[blas\]'"):
        product_of(8)


def test_an_endless_copy_has_the_times_that_its_loops_would_have_taken():
    backend = HostBackend(read_host().nodes)
    transfers = parse_transfers("host:0 -> host:0 by cpu*1 & host:0 -> null by cpu*1")
    first, other = copies_of(backend, transfers)
    other = replace(other, endless=True, size=64)  # many more passes than the first has loops
    with closing(backend.prepare([first, other])) as group:
        timing = run(group, 1000)
    for seconds, times in zip(timing.seconds, timing.progress, strict=True):
        assert times[-1] - times[0] == pytest.approx(seconds)
