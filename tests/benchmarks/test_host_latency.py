"""Curves, loads and nodes: which chases a machine is given."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.benchmarks.catalog import CATALOG
from linkgauge.benchmarks.host_latency import (
    BEYOND,
    LARGEST,
    SMALLEST,
    UNIT,
    half_octaves,
    sizes_of,
)
from linkgauge.benchmarks.table import DeviceSet
from linkgauge.model.machine import Node

MI, GI = 1 << 20, 1 << 30
ONE = (Node(0, (0, 1), memory_available=24 * GI, last_level_cache=32 * MI),)
TWO = tuple(Node(n, (2 * n, 2 * n + 1), memory_available=GI) for n in (0, 1))
MEMORY_ALONE = (*ONE, Node(1, (), memory_available=GI))


def laid_out(name, nodes, **how):
    return CATALOG[name].lay_out(DeviceSet("host", nodes, **how))


@given(st.integers(SMALLEST, 1 << 40))
def test_sizes_are_half_octaves_of_whole_units(most):
    sizes = list(half_octaves(SMALLEST, most))
    assert sizes[0] == SMALLEST
    assert most / 1.5 < sizes[-1] <= most
    assert all(size % UNIT == 0 for size in sizes)
    assert {b / a for a, b in pairwise(sizes)} <= {3 / 2, 4 / 3}


@given(st.integers(0, 2 * GI), st.none() | st.integers(0, 1 << 42))
def test_a_curve_ends_beyond_the_caches_as_far_as_memory_goes(caches, available):
    sizes = sizes_of(Node(0, (0,), memory_available=available), caches)
    if available is None or available >= 4 * max(2 * BEYOND * caches, LARGEST):
        assert sizes[-1] >= max(LARGEST, BEYOND * caches)
    assert all(available is None or size <= available // 4 for size in sizes)


def test_a_curve_has_base_and_huge_pages_side_by_side():
    cells = laid_out("memory_latency", ONE).cells
    assert {cell.row for cell in cells} == {"0 base", "0 huge"}
    assert [cell.column for cell in cells][:3] == ["4 KiB", "6 KiB", "8 KiB"]
    assert [str(cell) for cell in cells][:2] == [
        "host:0/base -> null by cpu*1 x2",
        "host:0/base -> null by cpu*1 x3",
    ]
    assert {cell.operation for cell in cells} == {"chase"}


@pytest.mark.parametrize(
    ("nodes", "rows"),
    [
        (TWO, ["0", "0<-1", "1<-0", "1"]),
        (MEMORY_ALONE, ["0", "0<-1"]),
        ((Node(0, ()),), []),
    ],
)
def test_local_and_remote_nodes_have_rows_and_threads_only_where_cpus_are(nodes, rows):
    benchmark = laid_out("memory_latency", nodes)
    assert list(dict.fromkeys(c.row.rpartition(" ")[0] for c in benchmark.cells)) == rows
    assert (benchmark.reason is None) is bool(rows)


def test_of_many_nodes_a_sample_is_stated():
    nodes = tuple(Node(n, (n,), memory_available=64 << 10) for n in range(4))
    few, all_pairs = (laid_out("memory_latency", nodes, profile=one) for one in (None, "full"))
    assert few.title.endswith(", 7 of 16 pairs of nodes")
    assert len({cell.row for cell in few.cells}) == 14
    assert len({cell.row for cell in all_pairs.cells}) == 32
    assert all_pairs.title in few.title


def test_latencies_between_nodes_are_a_matrix():
    benchmark = laid_out("memory_latency_nodes", TWO)
    assert [(c.row, c.column, str(c)) for c in benchmark.cells] == [
        ("0", "0", "host:0 -> null by cpu*1"),
        ("0", "1", "host:1 -> null by host:0.cpu*1"),
        ("1", "0", "host:0 -> null by host:1.cpu*1"),
        ("1", "1", "host:1 -> null by cpu*1"),
    ]
    assert benchmark.size == 64 * MI
    assert laid_out("memory_latency_nodes", ONE).size == 128 * MI


def test_other_cpus_load_the_memory_at_shares_of_their_rate():
    (node,) = (Node(0, tuple(range(8)), last_level_cache=MI),)
    cells = {c.place: str(c) for c in laid_out("memory_latency_loaded", (node,)).cells}
    chase = "host:0 -> null by cpu*1"
    assert cells["0 read", "0%"] == chase
    assert cells["0 read", "25%"] == f"{chase} & host:0 -> null by cpu*7 at 25%"
    assert cells["0 write", "100%"] == f"{chase} & null -> host:0 by cpu*7"
    assert cells["0 copy", "50%"] == f"{chase} & host:0 -> host:0 by cpu*7 at 50%"
    mix = f"{chase} & host:0 -> null by cpu*4 at 75% & null -> host:0 by cpu*2 at 75%"
    assert cells["0 2:1", "75%"] == mix
    assert len(cells) == 6 * 5


def test_one_cpu_loads_nothing_beside_itself():
    benchmark = laid_out("memory_latency_loaded", (Node(0, (5,)),))
    assert (benchmark.cells, "needs two CPUs" in benchmark.reason) == ((), True)
    assert laid_out("memory_latency", (Node(0, (5,)),)).cells


def test_mixes_that_lack_cpus_stay_to_be_refused_with_the_reason():
    cells = laid_out("memory_latency_loaded", ONE).cells
    assert {c.row for c in cells if c.column == "0%"} == {"0 read", "0 copy", "0 write"}
    assert {c.row for c in cells if c.column == "25%"} >= {"0 3:1", "0 2:1", "0 1:1"}
