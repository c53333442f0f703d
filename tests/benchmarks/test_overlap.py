"""copy_compute_overlap: copies to a device, from it and both ways, beside a kernel of its own."""

import pytest

from fakes import device, machine
from linkgauge.benchmarks.catalog import CATALOG, select
from linkgauge.benchmarks.table import DeviceSet

NAME = "copy_compute_overlap"


def laid_out(devices):
    some = tuple(device(n, "x", near=n % 2) for n in range(devices))
    return CATALOG[NAME].lay_out(DeviceSet("x", machine(some, 2).host.nodes, some))


def test_each_device_copies_each_way_and_both_ways_with_the_node_near_it():
    found = {(cell.row, cell.column): str(cell) for cell in laid_out(2).cells}
    kernel, to, back = "null -> null by x:1.sm", "host:1 -> x:1 by ce", "x:1 -> host:1 by ce"
    assert [place for place in found if place[1] == "1"] == [
        ("H2D", "1"),
        ("D2H", "1"),
        ("both", "1"),
    ]
    assert found["H2D", "1"] == f"{kernel} & {to}"
    assert found["D2H", "1"] == f"{kernel} & {back}"
    assert found["both", "1"] == f"{kernel} & {to} & {back}"
    assert len(found) == 6


def test_the_figure_is_what_is_hidden_of_a_fixed_number_of_samples():
    sheet = laid_out(1)
    assert (sheet.unit.shown, sheet.unit.better) == ("%", "higher")
    for cell in sheet.cells:
        assert (cell.report, cell.operation) == ("hidden", "overlap")
        assert cell.runs == 11
        # The kernel moves nothing.
        assert cell.counted(1000) == [0] + [1000] * (len(cell.transfers) - 1)


def test_without_a_device_there_is_none_for_a_reason():
    assert (laid_out(0).cells, laid_out(0).reason) == ((), "needs a device")


@pytest.mark.parametrize("profile", ["quick", "standard", "vm", "full"])
def test_it_is_measured_by_name_or_in_full(profile):
    is_in = NAME in {row.name for row in select((), (), profile=profile)}
    assert is_in == (profile == "full")
    assert [row.name for row in select((NAME,), (), profile=profile)] == [NAME]
