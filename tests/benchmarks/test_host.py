"""What benchmarks of the host measure: the cells of each, over one node and several."""

from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes import machine
from linkgauge.benchmarks.catalog import CATALOG
from linkgauge.benchmarks.table import DeviceSet
from linkgauge.engine.plan import make_plan, peak_memory
from linkgauge.model.errors import InputError
from linkgauge.model.hardware.machine import Node

KI, MI, GI = 1 << 10, 1 << 20, 1 << 30
ONE = (Node(0, (0, 1, 2), memory_available=24 * GI, last_level_cache=32 * MI),)
TWO = (Node(0, (0, 1), memory_available=GI), Node(1, (2, 3), memory_available=GI))
APART = (*ONE, Node(1, (), memory_available=GI))
"""A node of memory alone."""
EIGHT = (Node(0, tuple(range(8)), last_level_cache=MI),)
PAGES, POLICIES = ("base", "thp", "hugetlb"), ("bind", "preferred", "interleave", "weighted")


def laid_out(name, nodes, **how):
    return CATALOG[name].lay_out(DeviceSet("host", tuple(nodes), **how))


def cells(name, nodes, **how):
    return {(c.row, c.column): str(c) for c in laid_out(name, nodes, **how).cells}


CHASE = "host:0 -> null by cpu*1"


@pytest.mark.parametrize(
    ("name", "nodes", "place", "text"),
    [
        ("host_to_host_memcpy_read_cpu", TWO, "0 1", "host:1 -> null by host:0.cpu"),
        ("host_to_host_memcpy_write_cpu", TWO, "1 0", "null -> host:0 by host:1.cpu"),
        ("host_to_host_memcpy_copy_cpu", TWO, "0 1", "host:0 -> host:1 by cpu"),
        ("host_threads_memcpy_copy_cpu", ONE, "0 2", "host:0 -> host:0 by cpu*2"),
        # STREAM: a row for each mode; of several nodes also every pair and all threads at once.
        ("memory_stream_triad", ONE, "0 peak 2", "host:0 -> host:0 by cpu*2"),
        ("memory_stream_copy", TWO, "1 peak host:0", "host:0 -> host:0 by host:1.cpu"),
        ("memory_stream_copy", TWO, "all stream 4",
         "host:0 -> host:0 by cpu & host:1 -> host:1 by cpu"),
        ("memory_stream_write", APART, "0 stream host:1", "null -> host:1 by host:0.cpu"),
        # Latencies are chases of one thread; others load the memory at shares of their rate.
        ("memory_latency", ONE, "0 base 6 KiB", "host:0/base -> null by cpu*1 x3"),
        ("memory_latency_nodes", TWO, "0 1", "host:1 -> null by host:0.cpu*1"),
        ("memory_latency_loaded", EIGHT, "0 read 0%", CHASE),
        ("memory_latency_loaded", EIGHT, "0 read 25%",
         f"{CHASE} & host:0 -> null by cpu*7 at 25%"),
        ("memory_latency_loaded", EIGHT, "0 write 100%", f"{CHASE} & null -> host:0 by cpu*7"),
        ("memory_latency_loaded", EIGHT, "0 2:1 75%",
         f"{CHASE} & host:0 -> null by cpu*4 at 75% & null -> host:0 by cpu*2 at 75%"),
        # Kinds of pages and policies stand side by side.
        ("memory_pages_copy", ONE, "0 thp", "host:0/thp -> host:0/thp by cpu"),
        ("memory_pages_write", ONE, "0 base", "null -> host:0/base by cpu"),
        ("memory_pages_touch", ONE, "0 cpu*3 thp", "null -> host:0/thp by cpu*3"),
        ("memory_pages_policy_read", TWO, "1 weighted", "host:1/weighted -> null by cpu"),
        ("memory_pages_policy_read", TWO, "all interleave",
         "host:0/interleave -> null by cpu & host:1/interleave -> null by cpu"),
        ("cpu_primes_single", (Node(0, ()), TWO[1]), "0 1", "null -> null by host:1.cpu*1"),
        ("cpu_primes_all", TWO, "0 4",
         "null -> null by host:0.cpu*2 & null -> null by host:1.cpu*2"),
        ("core_to_core_latency", (Node(0, (3, 5)),), "5 3", "cpu:5 -> cpu:3 by cpu"),
    ],
)  # fmt: skip
def test_each_cell_is_made_of_these_transfers(name, nodes, place, text):
    found = {f"{row} {column}": cell for (row, column), cell in cells(name, nodes).items()}
    assert found[place] == text


@pytest.mark.parametrize(
    ("name", "nodes", "rows", "columns"),
    [
        ("memory_stream_triad", ONE, ["0 stream", "0 peak"], ["1", "2", "3"]),
        ("memory_latency", TWO, ["0", "0<-1", "1<-0", "1"], None),
        ("memory_latency", APART, ["0", "0<-1"], None),
        ("memory_pages_read", TWO, ["0", "1"], [*PAGES]),
        ("memory_pages_latency", ONE, [f"0 {kind}" for kind in PAGES], None),
        ("memory_pages_touch", (Node(0, (5,)),), ["0 cpu*1"], [*PAGES]),
        ("memory_pages_policy_write", APART, ["0"], [*POLICIES]),
        ("memory_latency_loaded", EIGHT, [f"0 {kind}" for kind in
                                          ("read", "3:1", "2:1", "1:1", "copy", "write")],
         ["0%", "25%", "50%", "75%", "100%"]),
        ("core_to_core_latency", (Node(0, (3, 5, 9)),), ["3", "5", "9"], ["5", "9", "3"]),
    ],
)  # fmt: skip
def test_rows_and_columns(name, nodes, rows, columns):
    found = cells(name, nodes)
    own = [row.rpartition(" ")[0] if name == "memory_latency" else row for row, _ in found]
    assert list(dict.fromkeys(own)) == rows
    assert columns is None or list(dict.fromkeys(column for _, column in found)) == columns


@pytest.mark.parametrize(
    ("name", "nodes"),
    [
        ("memory_latency", (Node(0, ()),)),
        ("memory_latency_loaded", (Node(0, (5,)),)),
        ("memory_pages_policy_copy", ONE),
        ("cpu_primes_single", (Node(0, ()),)),
        ("cpu_primes_all", (Node(0, ()),)),
        ("core_to_core_latency", (Node(0, (3,)),)),
    ],
)
def test_what_a_machine_lacks_is_the_reason(name, nodes):
    benchmark = laid_out(name, nodes)
    assert (benchmark.cells, bool(benchmark.reason)) == ((), True)


@pytest.mark.parametrize(
    ("kind", "source", "destination"),
    [("copy", 1, 1), ("scale", 1, 1), ("add", 2, 1), ("triad", 2, 1), ("read", 1, 0),
     ("write", 0, 1)],
)  # fmt: skip
def test_streams_count_every_array_that_is_read_or_written(kind, source, destination):
    table = laid_out(f"memory_stream_{kind}", ONE)
    assert table.unit.symbol == "B/s (STREAM)"
    assert {c.operation for c in table.cells} == {f"stream-{kind}", f"peak-{kind}"}
    for cell in table.cells:
        assert cell.bytes_reported(100) == 100 * (source + destination)
        assert sum(size for _, size in cell.buffers(100)) == 100 * (source + destination)
    (everything,) = (c for c in laid_out(f"memory_stream_{kind}", TWO).cells
                     if c.row == "all stream")  # fmt: skip
    assert everything.bytes_reported(100) == 200 * (source + destination)


def test_the_plan_counts_all_three_arrays():
    here = machine(available=GI - 1)
    triad = laid_out("memory_stream_triad", here.host.nodes)
    assert peak_memory(make_plan([triad], here, [MI])) == {"host:0": 3 * MI}
    for size, why in ((384 * MI, "needs 1.1 GiB, host:0 has"), (1001, "a multiple of 8 bytes")):
        with pytest.raises(InputError, match=why):
            make_plan([triad], here, [size])
    copy = laid_out("memory_stream_copy", here.host.nodes)
    assert peak_memory(make_plan([copy], here, [1001])) == {"host:0": 2002}


@given(st.none() | st.integers(0, 1 << 42), st.integers(0, GI))
def test_a_curve_of_half_octaves_ends_beyond_the_caches_as_far_as_memory_goes(available, cache):
    node = Node(0, (0,), memory_available=available, last_level_cache=cache)
    sizes = [c.transfers[0].scale * 2 * KI for c in laid_out("memory_latency", (node,)).cells
             if c.row == "0 base"]  # fmt: skip
    assert {b / a for a, b in pairwise(sizes)} <= {3 / 2, 4 / 3}
    assert all(available is None or size <= max(available // 4, 4 * KI) for size in sizes)
    if available is None or available > 1 << 41:
        assert sizes[-1] >= max(GI // 2, 2 * cache)


def test_of_many_nodes_a_sample_is_stated():
    nodes = tuple(Node(n, (n,), memory_available=64 * KI) for n in range(4))
    few, every = (laid_out("memory_latency", nodes, profile=one) for one in (None, "full"))
    assert few.title.endswith(", 7 of 16 pairs of nodes")
    assert [len({cell.row for cell in of.cells}) for of in (few, every)] == [14, 32]


CORES = (*range(56), *range(112, 168))
BIG = tuple(Node(n, tuple(range(112 * n, 112 * (n + 1))), cores=tuple(range(112 * n, 112 * n + 56)))
            for n in (0, 1))  # fmt: skip


@pytest.mark.parametrize(
    ("nodes", "much", "chosen"),
    [
        (BIG, "quick", (0, 14, 28, 42, 112, 126, 140, 154)),
        (BIG, "standard", tuple(CORES[at * 112 // 64] for at in range(64))),
        ((Node(0, (3, 5, 9, 11), cores=(3, 5)),), "quick", (3, 5)),
        ((Node(0, (3, 5, 9, 11), cores=(3, 5)),), "standard", (3, 5, 9, 11)),
        ((Node(0, (0, 1), cores=(0,)),), "quick", (0, 1)),  # two threads of the only core
        ((Node(0, (2, 4, 6)),), "quick", (2, 4, 6)),  # nothing says what they share
    ],
)
def test_cache_lines_go_both_ways_between_all_cpus_or_a_stated_sample(nodes, much, chosen):
    table = laid_out("core_to_core_latency", nodes, profile=much)
    places = [(int(cell.row), int(cell.column)) for cell in table.cells]
    assert places == list(permutations(chosen, 2))
    there = sum(len(node.cpus) for node in nodes)
    assert table.title.endswith(f", {len(chosen)} of {there} CPUs") is (len(chosen) < there)
    assert {(cell.report, cell.operation) for cell in table.cells} == {("latency", "ping-pong")}
