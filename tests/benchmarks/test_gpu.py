"""gpu_matmul, gpu_bandwidth_best_of and device_memory_*: which cells they have, and where."""

import pytest
from msgspec.structs import replace

from fakes import device, machine
from linkgauge.benchmarks.catalog import CATALOG, select
from linkgauge.benchmarks.table import DeviceSet
from linkgauge.engine.plan import fabrics, lay_out, make_plan
from linkgauge.model.settings import Settings

HERE = machine([device(n, "cuda") for n in range(2)])


def sheets(name, here=HERE, host=True, devices=()):
    nodes = here.host.nodes if host else ()
    return lay_out([CATALOG[name]], fabrics(here, devices), nodes)


def places(benchmark):
    return {(cell.row, cell.column): cell for cell in benchmark.cells}


def test_products_have_a_row_for_each_type_and_a_column_for_each_device():
    (sheet,) = sheets("gpu_matmul")
    found = places(sheet)
    assert list(found) == [
        (name, number) for name in ("FP32", "TF32", "BF16", "FP16") for number in ("0", "1")
    ]
    assert str(found["TF32", "1"]) == "null -> null by cuda:1.sm"
    assert found["TF32", "1"].operation == "matmul-tf32"
    assert (sheet.backend, sheet.size, sheet.unit.symbol) == ("cuda", 8192 * 8192 * 4, "FLOP/s")
    assert sheet.title.startswith("8192 × 8192 matrix product")


def test_torch_multiplies_on_accelerators_only():
    here = machine([device(0, "torch:xpu"), device(0, "torch:cpu", is_cpu=True)])
    (sheet,) = sheets("gpu_matmul", here)
    assert sheet.backend == "torch"
    assert {str(cell) for cell in sheet.cells} == {"null -> null by torch:xpu:0.sm"}


@pytest.mark.parametrize(
    "devices", [[], [device(0, "opencl")], [device(0, "torch:cpu", is_cpu=True)]]
)
def test_without_a_gpu_the_host_multiplies_smaller_matrices(devices):
    here = machine(devices, nodes=2)
    (sheet,) = sheets("gpu_matmul", here)
    (cell,) = sheet.cells
    assert str(cell) == "null -> null by host:0.cpu*2 & null -> null by host:1.cpu*2"
    assert (cell.row, cell.column, cell.operation) == ("FP32", "4", "matmul-fp32")
    assert (sheet.backend, sheet.size) == ("host", 2048 * 2048 * 4)
    assert sheet.title.startswith("2048 × 2048 matrix product")


def test_beside_a_gpu_neither_the_host_nor_opencl_multiplies():
    here = machine([device(0, "cuda"), device(0, "opencl")])
    assert [sheet.backend for sheet in sheets("gpu_matmul", here)] == ["cuda"]


def test_where_nothing_multiplies_the_benchmark_says_why():
    (sheet,) = sheets("gpu_matmul", machine([device(0, "opencl")]), host=False)
    assert not sheet.cells
    assert "no GPU that multiplies" in sheet.reason
    nothing = replace(HERE.host.nodes[0], cpus=())
    (sheet,) = lay_out([CATALOG["gpu_matmul"]], (), (nothing,))
    assert "no CPU may be used" in sheet.reason


def test_the_plan_counts_three_matrices_on_the_device():
    small = machine([device(0, "cuda", memory=3 * 8192 * 8192 * 4 - 1)])
    (sheet,) = make_plan(sheets("gpu_matmul", small), small, (64 << 20,))
    assert {cell.reason for cell in sheet.cells} == {"needs 768.0 MiB, cuda:0 has 768.0 MiB"}


def test_copies_are_pinned_and_pageable_both_ways_and_within_the_device():
    (sheet,) = sheets("gpu_bandwidth_best_of")
    found = {place: str(cell) for place, cell in places(sheet).items() if place[1] == "1"}
    assert list(found.values()) == [
        "host:0 -> cuda:1 by ce",
        "cuda:1 -> host:0 by ce",
        "host:0/pageable -> cuda:1 by ce",
        "cuda:1 -> host:0/pageable by ce",
        "cuda:1 -> cuda:1 by ce",
    ]
    assert [row for row, _ in found] == [
        "H2D pinned", "D2H pinned", "H2D pageable", "D2H pageable", "within",
    ]  # fmt: skip
    assert {cell.report for cell in sheet.cells} == {"best"}
    assert {Settings((1,)).of(cell).samples for cell in sheet.cells} == {5}


def test_without_devices_there_are_no_copies_for_a_reason():
    (sheet,) = sheets("gpu_bandwidth_best_of", machine())
    assert (sheet.cells, sheet.reason) == ((), "no accelerator (none selected)")


def test_copies_come_right_after_the_products_that_warm_the_device():
    names = [row.name for row in select((), ("gpu_",), profile="standard")]
    assert names == ["gpu_matmul", "gpu_bandwidth_best_of"]
    order = list(CATALOG)
    assert order.index("gpu_bandwidth_best_of") == order.index("gpu_matmul") + 1


@pytest.mark.parametrize(
    ("kind", "text", "times"),
    [
        ("read", "cuda:1 -> null by sm", 1),
        ("write", "null -> cuda:1 by sm", 1),
        ("copy", "cuda:1 -> cuda:1 by sm", 2),
        ("triad", "cuda:1 -> cuda:1 by sm", 3),
    ],
)
def test_memory_is_counted_as_stream_counts(kind, text, times):
    fabric = DeviceSet("cuda", HERE.host.nodes, HERE.devices["cuda"])
    sheet = CATALOG[f"device_memory_{kind}"].lay_out(fabric)
    cell = places(sheet)["0", "1"]
    assert str(cell) == text
    assert cell.bytes_reported(1000) == 1000 * times
    assert sum(size for _, size in cell.buffers(1000)) == 1000 * times
    assert sheet.unit.symbol == "B/s (STREAM)"


def test_none_is_measured_by_the_quick_profile():
    quick = {row.name for row in select((), (), profile="quick")}
    assert not any(name.startswith(("gpu_", "device_memory_")) for name in quick)
