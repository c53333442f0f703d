"""Host memory by kind of page and by policy: what is obtained, what is refused and why; first
touch."""

import pytest
from msgspec.structs import replace

from linkgauge import _native
from linkgauge._native import Policy
from linkgauge.backends import native
from linkgauge.backends.host import HostBackend
from linkgauge.backends.protocol import Copy, run
from linkgauge.machine.host import read_host
from linkgauge.machine.tree import Captured
from linkgauge.model.documents.result import Placement
from linkgauge.model.errors import Unsupported
from linkgauge.model.notation import parse_memory, parse_transfer

HUGE = 2 << 20
CPUS = read_host().nodes[0].cpus
NODE = read_host().nodes[0]


def placed(name, size=3 * HUGE, alone=True, nodes=(0,)):
    memory = parse_memory(name)
    kind = native.KINDS[memory.kind]
    pages, placement = native.allocate(memory, size, kind, 0, alone, CPUS, nodes)
    pages.close()
    return placement


class Refusing:
    """Memory of a system that refuses every policy, or gives small pages alone."""

    bind_error, bound, address = "mbind: Operation not permitted", False, 0

    def __init__(self, size, kind, node, cpus, policy=Policy.BIND, nodes=()):
        self.size, self.closed = size, False

    def huge_bytes(self):
        return HUGE

    def close(self):
        self.closed = True


@pytest.mark.parametrize(
    ("name", "alone", "reason"),
    [
        ("host:0", False, "cannot bind memory to host:0: mbind: Operation not permitted"),
        ("host:0/preferred", True, "cannot place memory by preferred: mbind: Operation"),
        ("host:0/interleave", True, "cannot place memory by interleave: mbind: Operation"),
        ("host:0/weighted", True, r"\(Linux 6.9 has this policy\)"),
        ("host:0/base", True, "2.0 MiB of 6.0 MiB is in huge pages"),
        ("host:0/thp", True, "only 2.0 MiB of 6.0 MiB is in huge pages: allow transp"),
        ("host:0/huge", True, "only 2.0 MiB of 6.0 MiB is in huge pages: reserve some"),
    ],
)
def test_what_a_system_refuses_is_a_skip_with_its_words(monkeypatch, name, alone, reason):
    monkeypatch.setattr(_native, "Memory", Refusing)
    with pytest.raises(Unsupported, match=reason):
        placed(name, alone=alone)


@pytest.mark.parametrize(
    ("pages", "reason"),
    [
        ({}, "the pool has no huge pages of 2 MiB: reserve some"),
        ({"sys/kernel/mm/hugepages": 0}, "the pool has no huge pages"),
        ({"sys/kernel/mm/hugepages": 2}, "the pool has 2 huge pages of 2 MiB, 3 are needed"),
        ({"sys/kernel/mm/hugepages": 9, "sys/devices/system/node/node0/hugepages": 1},
         "the pool has 1 huge pages"),
        ({"sys/kernel/mm/hugepages": 3}, None),
    ],
)  # fmt: skip
def test_a_pool_that_is_too_small_is_said_before_anything_is_allocated(pages, reason):
    files = {
        f"{place}/hugepages-2048kB/nr_hugepages": f"{count}\n" for place, count in pages.items()
    }
    root = Captured({name: text.encode() for name, text in files.items()}, {})
    if reason is None:
        native._check_pool(3 * HUGE, 0, root)
        return
    with pytest.raises(Unsupported, match=reason):
        native._check_pool(3 * HUGE, 0, root)


@pytest.mark.parametrize(
    ("pages", "warned"),
    [
        (None, False), ({0: 512, 1: 512}, False), ({0: 540, 1: 484}, False), ({0: 1024}, True),
        ({0: 700, 1: 324}, True),
    ],
)  # fmt: skip
def test_interleaved_memory_that_lies_unevenly_is_said(pages, warned):
    placement = Placement("host:0/interleave", 1 << 30, 0, True, 0, pages)
    assert bool(list(native.unevenly(placement, [0, 1]))) is warned
    small = replace(placement, bytes=4096)
    assert list(native.unevenly(small, [0, 1])) == []


def touch(name, size=3 * HUGE, threads=1):
    backend = HostBackend([NODE])
    transfer = parse_transfer(f"null -> {name} by cpu*{threads}")
    buffer = backend.allocate(transfer.destination, size, transfer.engine)
    return backend.prepare([Copy(transfer, None, buffer, size, 1)], "touch")


@pytest.mark.parametrize("kind", ["base", "pageable"])
@pytest.mark.parametrize("threads", {1, len(CPUS)})
def test_each_batch_of_a_first_touch_has_its_time(kind, threads):
    group = touch(f"host:0/{kind}", threads=threads)
    for loops, batches in ((1, 1), (2, 3)):
        timing = run(group, loops, batches)
        (progress,) = timing.progress
        assert timing.seconds == (timing.span,) == (progress[-1],)
        assert len(progress) == batches + 1
        assert list(progress) == sorted(progress)


def test_a_first_touch_takes_unlocked_memory():
    for name in ("host:0", "host:0/huge"):
        with pytest.raises(Unsupported, match=r"unlocked|huge pages"):
            touch(name)
