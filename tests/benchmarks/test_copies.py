"""The table of copies says what nvbandwidth's tests do, on any number of devices."""

from itertools import permutations

import msgspec
import pytest

from fakes import device, machine
from linkgauge.benchmarks.catalog import CATALOG, select
from linkgauge.benchmarks.copies import NVBANDWIDTH
from linkgauge.benchmarks.host_latency import chosen_cpus
from linkgauge.benchmarks.host_sweeps import thread_counts
from linkgauge.benchmarks.table import DeviceSet
from linkgauge.model.errors import InputError
from linkgauge.model.machine import Node
from linkgauge.model.transfer import Report

ORDER = """
host_to_device_memcpy_ce device_to_host_memcpy_ce
host_to_device_bidirectional_memcpy_ce device_to_host_bidirectional_memcpy_ce
device_to_device_memcpy_read_ce device_to_device_memcpy_write_ce
device_to_device_bidirectional_memcpy_read_ce device_to_device_bidirectional_memcpy_write_ce
all_to_host_memcpy_ce all_to_host_bidirectional_memcpy_ce
host_to_all_memcpy_ce host_to_all_bidirectional_memcpy_ce
all_to_one_write_ce all_to_one_read_ce one_to_all_write_ce one_to_all_read_ce
host_to_device_memcpy_sm device_to_host_memcpy_sm
host_to_device_bidirectional_memcpy_sm device_to_host_bidirectional_memcpy_sm
device_to_device_memcpy_read_sm device_to_device_memcpy_write_sm
device_to_device_bidirectional_memcpy_read_sm device_to_device_bidirectional_memcpy_write_sm
all_to_host_memcpy_sm all_to_host_bidirectional_memcpy_sm
host_to_all_memcpy_sm host_to_all_bidirectional_memcpy_sm
all_to_one_write_sm all_to_one_read_sm one_to_all_write_sm one_to_all_read_sm
host_device_latency_sm device_to_device_latency_sm device_local_copy
""".split()

CELLS = {
    # name: (row, column, transfers of that cell over three devices 0, 1, 2), report
    "host_to_device_memcpy_ce": ("0", "1", ["host:0 -> x:1 by ce"], "first"),
    "device_to_host_memcpy_sm": ("0", "1", ["x:1 -> host:0 by sm"], "first"),
    "host_to_device_bidirectional_memcpy_ce": (
        "0", "1", ["host:0 -> x:1 by ce", "x:1 -> host:0 by ce x2"], "first"),
    "device_to_host_bidirectional_memcpy_ce": (
        "0", "1", ["x:1 -> host:0 by ce", "host:0 -> x:1 by ce x2"], "first"),
    "host_to_device_bidirectional_memcpy_sm": ("0", "1", ["host:0 <-> x:1 by sm"], "first"),
    "device_to_host_bidirectional_memcpy_sm": ("0", "1", ["x:1 <-> host:0 by sm"], "first"),
    "device_to_device_memcpy_read_ce": ("0", "1", ["x:1 -> x:0 by x:0.ce"], "first"),
    "device_to_device_memcpy_write_sm": ("0", "1", ["x:0 -> x:1 by sm"], "first"),
    "device_to_device_bidirectional_memcpy_read_ce": (
        "0", "1", ["x:1 -> x:0 by x:0.ce", "x:0 -> x:1 by x:1.ce"], "sum"),
    "device_to_device_bidirectional_memcpy_write_sm": (
        "0", "1", ["x:1 -> x:0 by sm", "x:0 -> x:1 by sm"], "sum"),
    "all_to_host_memcpy_ce": (
        "0", "1", ["x:1 -> host:0 by ce", "x:0 -> host:0 by ce x2", "x:2 -> host:0 by ce x2"],
        "first"),
    "all_to_host_bidirectional_memcpy_ce": (
        "0", "1", ["x:1 -> host:0 by ce", "host:0 -> x:1 by ce x2", "x:0 -> host:0 by ce x2",
                   "x:2 -> host:0 by ce x2", "host:0 -> x:0 by ce x2", "host:0 -> x:2 by ce x2"],
        "first"),
    "all_to_host_bidirectional_memcpy_sm": (
        "0", "1", ["x:1 <-> host:0 by sm", "x:0 <-> host:0 by sm", "x:2 <-> host:0 by sm"],
        "first"),
    "host_to_all_memcpy_sm": (
        "0", "1", ["host:0 -> x:1 by sm", "host:0 -> x:0 by sm x2", "host:0 -> x:2 by sm x2"],
        "first"),
    "host_to_all_bidirectional_memcpy_ce": (
        "0", "1", ["host:0 -> x:1 by ce", "x:1 -> host:0 by ce x2", "host:0 -> x:0 by ce x2",
                   "host:0 -> x:2 by ce x2", "x:0 -> host:0 by ce x2", "x:2 -> host:0 by ce x2"],
        "first"),
    "all_to_one_write_ce": ("0", "1", ["x:0 -> x:1 by ce", "x:2 -> x:1 by ce"], "total"),
    "all_to_one_read_ce": ("0", "1", ["x:1 -> x:0 by x:0.ce", "x:1 -> x:2 by x:2.ce"], "total"),
    "all_to_one_read_sm": ("0", "1", ["x:1 -> x:0 by sm", "x:1 -> x:2 by sm"], "total"),
    "one_to_all_write_ce": ("0", "1", ["x:1 -> x:0 by ce", "x:1 -> x:2 by ce"], "total"),
    "one_to_all_read_ce": ("0", "1", ["x:0 -> x:1 by x:1.ce", "x:2 -> x:1 by x:1.ce"], "total"),
    "one_to_all_read_sm": ("0", "1", ["x:0 -> x:1 by sm", "x:2 -> x:1 by sm"], "total"),
    "host_device_latency_sm": ("0", "1", ["host:0 -> null by x:1.sm"], "latency"),
    "device_to_device_latency_sm": ("0", "1", ["x:1 -> null by x:0.sm"], "latency"),
    "device_local_copy": ("0", "1", ["x:1 -> x:1 by ce"], "first"),
}  # fmt: skip


def fabric(devices: int, nodes: int = 1) -> DeviceSet:
    some = tuple(device(n, "x") for n in range(devices))
    return DeviceSet("x", machine(some, nodes).host.nodes, some)


def test_all_35_tests_are_there_in_nvbandwidths_order():
    assert [row.name for row in NVBANDWIDTH] == ORDER


@pytest.mark.parametrize("name", CELLS)
def test_each_cell_is_made_of_the_defined_transfers(name):
    row, column, transfers, report = CELLS[name]
    benchmark = CATALOG[name].lay_out(fabric(3))
    (cell,) = [c for c in benchmark.cells if (c.row, c.column) == (row, column)]
    expected = transfers if "host_device_latency" not in name else ["host:0 -> null by x:1.sm"]
    assert [str(transfer) for transfer in cell.transfers] == expected
    assert cell.report == Report(report)


@pytest.mark.parametrize("name", ORDER)
def test_matrices_have_a_row_a_host_or_all_pairs_without_the_diagonal(name):
    benchmark = CATALOG[name].lay_out(fabric(3))
    places = {(cell.row, cell.column) for cell in benchmark.cells}
    if name.startswith("device_to_device"):
        assert places == {(str(r), str(c)) for r in range(3) for c in range(3) if r != c}
    else:
        assert places == {("0", str(c)) for c in range(3)}


@pytest.mark.parametrize("name", ORDER)
def test_devices_of_different_spaces_have_places_of_their_own(name):
    spaces = [("torch:cuda", 0), ("torch:xpu", 0), ("torch:xpu", 1)]
    some = tuple(device(index, space) for space, index in spaces)
    cells = CATALOG[name].lay_out(DeviceSet("torch", machine(some).host.nodes, some)).cells
    places = [(cell.row, cell.column) for cell in cells]
    assert len(set(places)) == len(places)
    labels = ["cuda:0", "xpu:0", "xpu:1"]
    assert {column for _, column in places} == set(labels)
    if name.startswith("device_to_device"):
        assert set(places) == {(r, c) for r in labels for c in labels if r != c}


@pytest.mark.parametrize("name", ORDER)
def test_with_one_device_only_those_that_need_two_are_left_out(name):
    benchmark = CATALOG[name].lay_out(fabric(1))
    needs_two = name.startswith(("device_to_device", "all_to_one", "one_to_all"))
    assert bool(benchmark.cells) != needs_two
    assert (benchmark.reason is not None) == needs_two


def test_columns_keep_the_backends_own_indices():
    some = (device(3, "x"), device(5, "x"))
    benchmark = CATALOG["device_to_device_memcpy_read_ce"].lay_out(
        DeviceSet("x", machine(some).host.nodes, some)
    )
    assert [(cell.row, cell.column) for cell in benchmark.cells] == [("3", "5"), ("5", "3")]


def test_host_buffers_lie_on_the_node_near_the_device_they_serve():
    some = (device(0, "x", near=0), device(1, "x", near=1))
    cells = (
        CATALOG["all_to_host_memcpy_ce"]
        .lay_out(DeviceSet("x", machine(some, 2).host.nodes, some))
        .cells
    )
    assert [str(cell) for cell in cells] == [
        "x:0 -> host:0 by ce & x:1 -> host:1 by ce x2",
        "x:1 -> host:1 by ce & x:0 -> host:0 by ce x2",
    ]


def test_the_hosts_own_matrices_are_node_by_node():
    read, write, copy = (
        CATALOG[f"host_to_host_memcpy_{kind}_cpu"].lay_out(fabric(0, nodes=2)).cells
        for kind in ("read", "write", "copy")
    )
    assert [str(cell) for cell in read][:2] == [
        "host:0 -> null by cpu",
        "host:1 -> null by host:0.cpu",
    ]
    assert str(write[2]) == "null -> host:0 by host:1.cpu"
    assert str(copy[1]) == "host:0 -> host:1 by cpu"
    assert [(cell.row, cell.column) for cell in copy] == [
        ("0", "0"), ("0", "1"), ("1", "0"), ("1", "1"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("cpus", "counts"), [(1, (1,)), (2, (1, 2)), (6, (1, 2, 4, 6)), (8, (1, 2, 4, 8)), (0, ())]
)
def test_threads_double_up_to_all_cpus(cpus, counts):
    assert thread_counts(cpus) == counts


CORES = (*range(56), *range(112, 168))
BIG = tuple(Node(n, tuple(range(112 * n, 112 * (n + 1))), cores=tuple(range(112 * n, 112 * n + 56)))
            for n in (0, 1))  # fmt: skip


@pytest.mark.parametrize(
    ("nodes", "much", "chosen"),
    [
        (BIG, "quick", (0, 14, 28, 42, 112, 126, 140, 154)),
        (BIG, "full", tuple(range(224))),
        (
            BIG,
            "standard",
            tuple(CORES[at * 112 // 64] for at in range(64)),
        ),
        ((Node(0, (3, 5, 9, 11), cores=(3, 5)),), "quick", (3, 5)),
        ((Node(0, (3, 5, 9, 11), cores=(3, 5)),), "standard", (3, 5, 9, 11)),
        ((Node(0, (0, 1), cores=(0,)),), "quick", (0, 1)),  # two threads of the only core
        ((Node(0, (2, 4, 6)),), "quick", (2, 4, 6)),  # nothing says what they share
        ((Node(0, (7,), cores=(7,)),), "full", (7,)),
        ((Node(0, tuple(range(2048))),), "full", tuple(range(0, 2048, 4))),  # a rack
        ((Node(0, ()),), "standard", ()),
    ],
)
def test_cache_lines_go_between_all_cpus_or_a_stated_sample(nodes, much, chosen):
    over = DeviceSet("host", nodes, profile=much)
    assert chosen_cpus(over) == chosen
    there = sum(len(node.cpus) for node in nodes)
    stated = f", {len(chosen)} of {there} CPUs"
    title = CATALOG["core_to_core_latency"].lay_out(over).title if there <= 224 else stated
    assert title.endswith(stated) is (len(chosen) < there)


def test_a_line_bounces_between_every_two_cpus_in_both_orders():
    row = CATALOG["core_to_core_latency"]
    laid_out = row.lay_out(DeviceSet("host", (Node(0, (3, 5, 9)),)))
    assert (laid_out.size, laid_out.unit.symbol, laid_out.reason) == (64, "s", None)
    assert [(c.row, c.column, str(c)) for c in laid_out.cells] == [
        (str(a), str(b), f"cpu:{a} -> cpu:{b} by cpu") for a, b in permutations((3, 5, 9), 2)
    ]
    assert {(cell.report, cell.operation) for cell in laid_out.cells} == {("latency", "ping-pong")}
    alone = row.lay_out(DeviceSet("host", (Node(0, (3,)),)))
    assert (alone.cells, alone.reason) == ((), "needs two CPUs")


def test_a_diagonal_adds_each_device_with_itself():
    row = msgspec.structs.replace(CATALOG["device_to_device_memcpy_read_ce"], diagonal=True)
    alone, pair = (
        row.lay_out(DeviceSet("x", (), tuple(device(n, "x") for n in range(count))))
        for count in (1, 2)
    )
    assert [str(cell) for cell in alone.cells] == ["x:0 -> x:0 by ce"]
    assert [(cell.row, cell.column) for cell in pair.cells] == [
        ("0", "0"), ("0", "1"), ("1", "0"), ("1", "1"),
    ]  # fmt: skip


def test_benchmarks_are_selected_by_name_and_prefix_in_the_catalogs_order():
    names = [row.name for row in select(["device_local_copy"], ["host_to_host"])]
    assert names == ["device_local_copy", *(n for n in CATALOG if n.startswith("host_to_host"))]
    assert len(select((), ())) == len(CATALOG)


@pytest.mark.parametrize(
    ("names", "prefixes", "hint"),
    [
        (["host_to_device_memcpy"], [], "did you mean"),
        (["zzz"], [], "linkgauge list"),
        ([], ["zzz"], "no benchmark begins"),
    ],
)
def test_an_unknown_benchmark_is_refused_with_a_way_out(names, prefixes, hint):
    with pytest.raises(InputError, match=hint):
        select(names, prefixes)
