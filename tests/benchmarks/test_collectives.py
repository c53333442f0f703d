"""Collectives are laid out over devices or ranks: a row a type, a column a size."""

import pytest
from msgspec.structs import replace

from linkgauge.benchmarks.catalog import CATALOG
from linkgauge.benchmarks.table import DeviceSet
from linkgauge.model.hardware.machine import Device
from linkgauge.model.operations.collective import CollectiveChoice


def devices(backend, count, rank=""):
    return tuple(
        Device(f"{backend}:{n}{rank and f'@{n}'}", "a GPU", 1 << 40, 1 << 40, "1")
        for n in range(count)
    )


FOUR = DeviceSet("cuda", (), devices("cuda", 4), sizes=(1 << 20,))


def laid_out(name, fabric=FOUR, **choice):
    return CATALOG[name].lay_out(replace(fabric, collectives=CollectiveChoice(**choice)))


def test_columns_are_the_sizes_asked_for_or_the_profiles():
    every = replace(FOUR, sizes=(), profile="full")
    columns = dict.fromkeys(cell.column for cell in CATALOG["all_reduce"].lay_out(every).cells)
    assert (next(iter(columns)), len(columns)) == ("8 B", 16)
    assert [*columns][-1] == "8 GiB"


def test_between_hosts_sizes_end_where_they_show_nothing_new():
    ranks = tuple(Device(f"host:{n}@{n}", "host memory", 1 << 40, 1 << 40, "1") for n in range(4))
    every = CATALOG["all_reduce"].lay_out(DeviceSet("mpi", (), ranks, profile="full"))
    sizes = {cell.transfers[0].scale for cell in every.cells}
    assert max(sizes) < 8 << 30


@pytest.mark.parametrize(
    ("name", "fabric", "choice", "why"),
    [
        ("all_reduce", DeviceSet("host", ()), {}, "needs two GPUs of one machine"),
        ("all_reduce", replace(FOUR, devices=FOUR.devices[:1]), {}, "mpiexec -n 4 linkgauge run"),
        ("all_reduce", replace(FOUR, backend="opencl"), {}, "needs two GPUs"),
        ("hypercube", replace(FOUR, devices=FOUR.devices[:3]), {}, "a power of two of ranks"),
        ("gather", FOUR, {"roots": (4,)}, "no rank 4: the ranks are 0 to 3"),
    ],
)
def test_what_cannot_be_measured_is_skipped_with_the_reason(name, fabric, choice, why):
    benchmark = laid_out(name, fabric, **choice)
    assert benchmark.cells == ()
    assert why in benchmark.reason
