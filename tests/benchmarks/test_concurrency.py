"""concurrency_*: more and more copies at once, each of which is measured by itself, too."""

import pytest

from fakes import device, machine
from linkgauge.benchmarks.catalog import CATALOG, select
from linkgauge.benchmarks.concurrency import CONCURRENCY
from linkgauge.benchmarks.table import DeviceSet

NAMES = [row.name for row in CONCURRENCY]


def laid_out(name, devices, nodes=2):
    some = tuple(device(n, "x", near=n % nodes) for n in range(devices))
    return CATALOG[name].lay_out(DeviceSet("x", machine(some, nodes).host.nodes, some))


def cells(name, devices):
    return {(c.row, c.column): str(c).split(" & ") for c in laid_out(name, devices).cells}


@pytest.mark.parametrize("name", NAMES)
def test_the_figure_is_the_rate_of_all_while_all_of_them_run(name):
    assert {cell.report for cell in laid_out(name, 3).cells} == {"total"}


def test_devices_join_in_their_order_each_with_the_node_near_it():
    found = cells("concurrency_host_to_device", 3)
    assert list(found) == [("0", "1"), ("0", "2"), ("0", "3")]
    assert found["0", "3"] == [
        "host:0 -> x:0 by ce", "host:1 -> x:1 by ce", "host:0 -> x:2 by ce",
    ]  # fmt: skip
    assert found["0", "2"] == found["0", "3"][:2]
    back = cells("concurrency_device_to_host", 3)
    assert back["0", "2"] == ["x:0 -> host:0 by ce", "x:1 -> host:1 by ce"]


@pytest.mark.parametrize(
    ("devices", "counts"), [(1, "1"), (2, "12"), (6, "1246"), (8, "1248"), (9, "1248 9")]
)
def test_numbers_double_up_to_all_devices(devices, counts):
    columns = [column for _, column in cells("concurrency_host_to_device", devices)]
    assert columns == list(counts.replace(" ", ""))


@pytest.mark.parametrize(("devices", "columns"), [(2, "1"), (5, "12"), (6, "123"), (8, "124")])
def test_pairs_share_no_device(devices, columns):
    found = cells("concurrency_device_to_device", devices)
    assert [column for _, column in found] == list(columns)
    ends = [end for one in found["0", columns[-1]] for end in one.split(" by ")[0].split(" -> ")]
    assert len(set(ends)) == len(ends) == devices // 2 * 2


def test_streams_of_a_device_are_as_many_copies_of_their_own():
    found = cells("concurrency_streams_device_to_host", 2)
    assert list(found) == [(row, str(n)) for row in "01" for n in (1, 2, 4, 8, 16)]
    assert found["1", "4"] == ["x:1 -> host:1 by ce"] * 4


@pytest.mark.parametrize("name", NAMES)
def test_without_enough_devices_there_are_none_for_a_reason(name):
    least = 2 if name == "concurrency_device_to_device" else 1
    assert laid_out(name, least).cells
    none = laid_out(name, least - 1)
    assert (none.cells, none.reason) == (
        (),
        "needs two devices" if least == 2 else "needs a device",
    )


def test_they_take_long_and_so_are_in_the_full_profile_alone():
    for profile, is_in in (("quick", False), ("standard", False), ("vm", False), ("full", True)):
        names = {row.name for row in select((), (), profile=profile)}
        assert (set(NAMES) & names) == (set(NAMES) if is_in else set())
