"""What benchmarks of devices measure: the cells of each, over any number of devices."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fakes import device, machine
from linkgauge.benchmarks.catalog import CATALOG
from linkgauge.benchmarks.table import DeviceSet
from linkgauge.engine.plan import fabrics, lay_out, make_plan
from linkgauge.model.settings import Settings

PATTERNS = ("all_to_all_write", "all_to_all_read", "disjoint_pairs_write", "bisect_write")
ALL_AT_ONCE = [f"{name}_{kind}" for kind in ("ce", "sm") for name in PATTERNS]
CONCURRENT = ["concurrency_host_to_device", "concurrency_device_to_host",
              "concurrency_device_to_device", "concurrency_streams_device_to_host"]  # fmt: skip


def laid_out(name, devices, nodes=2, **how):
    some = tuple(device(n, "x", near=n % nodes) for n in range(devices))
    return CATALOG[name].lay_out(DeviceSet("x", machine(some, nodes).host.nodes, some, **how))


def cells(name, devices, **how):
    return {(c.row, c.column): str(c) for c in laid_out(name, devices, **how).cells}


@pytest.mark.parametrize(
    ("name", "devices", "place", "text"),
    [
        # Devices join in their order, each with the node near it; streams are copies of their own.
        ("concurrency_host_to_device", 3, ("0", "3"),
         "host:0 -> x:0 by ce & host:1 -> x:1 by ce & host:0 -> x:2 by ce"),
        ("concurrency_device_to_host", 3, ("0", "2"), "x:0 -> host:0 by ce & x:1 -> host:1 by ce"),
        ("concurrency_streams_device_to_host", 2, ("1", "2"),
         "x:1 -> host:1 by ce & x:1 -> host:1 by ce"),
        ("copy_compute_overlap", 2, ("H2D", "1"), "null -> null by x:1.sm & host:1 -> x:1 by ce"),
        ("copy_compute_overlap", 2, ("D2H", "1"), "null -> null by x:1.sm & x:1 -> host:1 by ce"),
        ("copy_compute_overlap", 2, ("both", "1"),
         "null -> null by x:1.sm & host:1 -> x:1 by ce & x:1 -> host:1 by ce"),
        ("gpu_bandwidth_best_of", 2, ("H2D pinned", "1"), "host:1 -> x:1 by ce"),
        ("gpu_bandwidth_best_of", 2, ("D2H pageable", "1"), "x:1 -> host:1/pageable by ce"),
        ("gpu_bandwidth_best_of", 2, ("within", "1"), "x:1 -> x:1 by ce"),
        ("device_memory_read", 2, ("0", "1"), "x:1 -> null by sm"),
        ("device_memory_write", 2, ("0", "1"), "null -> x:1 by sm"),
        ("device_memory_triad", 2, ("0", "1"), "x:1 -> x:1 by sm"),
        ("latency_copy_pingpong", 2, ("host:1-1", "64 B"), "host:1 -> x:1 by ce x64"),
        ("bisect_write_sm", 4, ("0", "0"),
         "x:0 -> x:2 by sm & x:1 -> x:3 by sm & x:2 -> x:0 by sm & x:3 -> x:1 by sm"),
        ("disjoint_pairs_write_ce", 3, ("0", "0"), "x:0 -> x:1 by ce & x:1 -> x:0 by ce"),
        ("all_to_all_read_ce", 2, ("0", "0"), "x:1 -> x:0 by x:0.ce & x:0 -> x:1 by x:1.ce"),
    ],
)  # fmt: skip
def test_each_cell_is_made_of_these_transfers(name, devices, place, text):
    assert cells(name, devices)[place] == text


@pytest.mark.parametrize(
    ("name", "report", "operation"),
    [
        *((name, "total", "copy") for name in (*ALL_AT_ONCE, *CONCURRENT)),
        ("copy_compute_overlap", "hidden", "overlap"),
        ("gpu_bandwidth_best_of", "best", "copy"),
        ("latency_copy_pingpong", "latency", "copy-ping-pong"),
    ],
)
def test_the_figure_and_how_many_devices_it_takes(name, report, operation):
    assert {(c.report, c.operation) for c in laid_out(name, 3).cells} == {(report, operation)}
    assert laid_out(name, 0).cells == ()
    needs_two = name in (*ALL_AT_ONCE, "concurrency_device_to_device")
    assert bool(laid_out(name, 1).cells) is not needs_two


@pytest.mark.parametrize(
    ("name", "devices", "columns"),
    [
        *(("concurrency_host_to_device", *each)
          for each in ((1, "1"), (2, "12"), (6, "1246"), (8, "1248"), (9, "12489"))),
        *(("concurrency_device_to_device", *each)
          for each in ((2, "1"), (5, "12"), (6, "123"), (8, "124"))),
    ],
)  # fmt: skip
def test_numbers_double_up_to_all_and_pairs_share_no_device(name, devices, columns):
    found = cells(name, devices)
    assert [column for _, column in found] == list(columns)
    ends = [end for one in found["0", columns[-1]].split(" & ")
            for end in one.split(" by ")[0].split(" -> ") if end.startswith("x")]  # fmt: skip
    assert len(set(ends)) == len(ends)


def ends(name, devices):
    """Source and destination of each copy, in order."""
    (cell,) = laid_out(name, devices).cells
    return [(one.source.index, one.destination.index) for one in cell.transfers]


@given(devices=st.integers(2, 20))
def test_all_to_all_is_every_pair_once_and_copies_that_start_together_do_not_meet(devices):
    """The nth copies of all devices, which run at once where a device's run one after another, have
    different sources and different destinations."""
    for name in ("all_to_all_write_sm", "all_to_all_read_sm"):
        found = ends(name, devices)
        assert len(found) == len(set(found)) == devices * (devices - 1)
        assert all(a != b for a, b in found)
        for number in range(devices - 1):
            sources, destinations = zip(*found[number :: devices - 1], strict=True)
            assert len(set(sources)) == len(set(destinations)) == devices


@given(devices=st.integers(2, 20))
def test_pairs_are_disjoint_and_each_half_writes_to_the_other(devices):
    assert ends("disjoint_pairs_write_ce", devices) == [
        (n, n ^ 1) for n in range(devices // 2 * 2)
    ]  # fmt: skip
    assert ends("bisect_write_ce", devices) == [
        (n, (n + devices // 2) % devices) for n in range(devices)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("how", "scales", "pairs"),
    [
        ({"profile": "standard"}, None, ["0-1", "0-2"]),
        ({"profile": "full"}, None, ["0-1", "0-2", "1-0", "1-2", "2-0", "2-1"]),
        ({"sizes": (64, 100)}, [64, 100], None),
        ({"sizes": (64, 1 << 29)}, [64], None),  # as far as latency counts
    ],
)
def test_latencies_are_of_each_device_with_its_node_and_of_pairs_by_size(how, scales, pairs):
    found = laid_out("latency_copy_pingpong", 3, **how)
    rows = list(dict.fromkeys(cell.row for cell in found.cells))
    assert rows[:3] == ["host:0-0", "host:1-1", "host:0-2"]
    assert pairs is None or rows[3:] == pairs
    of_first = [cell.transfers[0].scale for cell in found.cells if cell.row == rows[0]]
    assert of_first == (scales or sorted(of_first))
    assert scales or (of_first[0], of_first[-1]) == (1, 1 << 20)


@pytest.mark.parametrize(("name", "times"), [("read", 1), ("write", 1), ("copy", 2), ("triad", 3)])
def test_a_device_s_memory_is_counted_as_stream_counts(name, times):
    table = laid_out(f"device_memory_{name}", 1)
    (cell,) = table.cells
    assert (cell.bytes_reported(1000), table.unit.symbol) == (1000 * times, "B/s (STREAM)")
    assert sum(size for _, size in cell.buffers(1000)) == 1000 * times


def products(*devices, nodes=2, host=True):
    here = machine(devices, nodes=nodes)
    (table,) = lay_out([CATALOG["gpu_matmul"]], fabrics(here, ()), here.host.nodes if host else ())
    return table


@pytest.mark.parametrize(
    ("devices", "backend", "text", "order"),
    [
        ([device(0, "cuda"), device(0, "opencl")], "cuda", "null -> null by cuda:0.sm", 8192),
        ([device(0, "torch:xpu"), device(0, "torch:cpu", is_cpu=True)], "torch",
         "null -> null by torch:xpu:0.sm", 8192),
        # Without a GPU, which neither OpenCL's devices nor CPUs are, the host multiplies.
        *((devices, "host", "null -> null by host:0.cpu*2 & null -> null by host:1.cpu*2", 2048)
          for devices in ([], [device(0, "opencl")], [device(0, "torch:cpu", is_cpu=True)])),
    ],
)  # fmt: skip
def test_who_multiplies_matrices(devices, backend, text, order):
    table = products(*devices)
    assert (table.backend, table.size, {*map(str, table.cells)}) == (backend, order**2 * 4, {text})
    rows = [cell.row for cell in table.cells]
    assert rows == (["FP32"] if backend == "host" else ["FP32", "TF32", "BF16", "FP16"])


def test_where_nothing_multiplies_the_benchmark_says_why():
    assert "no GPU" in products(device(0, "opencl"), host=False).reason
    nothing = replace(machine().host.nodes[0], cpus=())
    (table,) = lay_out([CATALOG["gpu_matmul"]], (), (nothing,))
    assert "no CPU" in table.reason


def test_the_plan_counts_three_matrices_on_the_device():
    small = machine([device(0, "cuda", memory=3 * 8192 * 8192 * 4 - 1)])
    tables = lay_out([CATALOG["gpu_matmul"]], fabrics(small, ()), small.host.nodes)
    (table,) = make_plan(tables, small, (64 << 20,))
    assert {cell.reason for cell in table.cells} == {"needs 768.0 MiB, cuda:0 has 768.0 MiB"}


def test_how_many_samples_belong_to_each():
    samples = {
        name: {Settings((1,)).of(cell).samples for cell in laid_out(name, 1).cells}
        for name in ("gpu_bandwidth_best_of", "copy_compute_overlap")
    }
    assert samples == {"gpu_bandwidth_best_of": {5}, "copy_compute_overlap": {11}}
