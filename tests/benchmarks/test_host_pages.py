"""Benchmarks of pages and policies: their cells on machines of one node and of several."""

from linkgauge.benchmarks.catalog import CATALOG, select
from linkgauge.benchmarks.table import DeviceSet
from linkgauge.model.machine import Node

KINDS = ("base", "thp", "hugetlb")
POLICIES = ("bind", "preferred", "interleave", "weighted")
ONE = (Node(0, (0, 1, 2), 1 << 34, 1 << 34),)
TWO = (*ONE, Node(1, (3, 4), 1 << 34, 1 << 34))


def laid_out(name, nodes=ONE):
    return CATALOG[f"memory_pages_{name}"].lay_out(DeviceSet("host", tuple(nodes)))


def cells(name, nodes=ONE):
    return {(cell.row, cell.column): str(cell) for cell in laid_out(name, nodes).cells}


def test_bandwidth_has_a_column_for_each_kind_of_page():
    assert cells("copy") == {
        ("0", kind): f"host:0/{kind} -> host:0/{kind} by cpu" for kind in KINDS
    }
    assert cells("read", TWO)["1", "thp"] == "host:1/thp -> null by cpu"
    assert cells("write")["0", "base"] == "null -> host:0/base by cpu"


def test_random_accesses_have_a_row_for_each_kind_and_sizes_beyond_the_caches():
    found = laid_out("latency")
    assert {cell.row for cell in found.cells} == {f"0 {kind}" for kind in KINDS}
    assert {cell.operation for cell in found.cells} == {"chase"}
    for cell in found.cells:
        assert cell.transfers[0].bytes_moved(found.size) % (1 << 20) == 0
    large = laid_out("latency", (Node(0, (0,), 1 << 36, 1 << 36, 1 << 28),))
    assert {cell.column for cell in large.cells} == {"1 MiB", "8 MiB", "64 MiB", "1 GiB"}


def test_first_touch_is_by_one_thread_and_by_all():
    assert cells("touch")["0 cpu*1", "base"] == "null -> host:0/base by cpu*1"
    assert cells("touch")["0 cpu*3", "thp"] == "null -> host:0/thp by cpu*3"
    assert {cell.operation for cell in laid_out("touch").cells} == {"touch"}
    assert len(cells("touch", (Node(0, (5,)),))) == len(KINDS)


def test_policies_stand_side_by_side_where_there_are_nodes_to_choose_from():
    assert cells("policy_copy") == {}
    assert "needs two nodes" in (laid_out("policy_copy").reason or "")
    found = cells("policy_read", TWO)
    assert set(found) == {(row, policy) for row in ("0", "1", "all") for policy in POLICIES}
    assert found["0", "bind"] == "host:0 -> null by cpu"
    assert found["1", "weighted"] == "host:1/weighted -> null by cpu"
    assert found["all", "interleave"] == (
        "host:0/interleave -> null by cpu & host:1/interleave -> null by cpu"
    )


def test_a_node_of_memory_alone_is_interleaved_over_but_has_no_threads():
    found = cells("policy_write", (*ONE, Node(2, (), 1 << 34)))
    assert set(found) == {("0", policy) for policy in POLICIES}


def test_they_take_the_place_of_the_kinds_of_memory_in_all_profiles():
    for profile in ("quick", "standard", "full"):
        names = {row.name for row in select((), (), profile=profile)}
        assert "host_kinds_memcpy_copy_cpu" not in names
        assert ("memory_pages_copy" in names) == (profile != "quick")
    assert select(["host_kinds_memcpy_copy_cpu"], ())
