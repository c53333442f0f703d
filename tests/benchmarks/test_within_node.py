"""All devices at once: who copies to whom, by which engine, and in which order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes import device, machine
from linkgauge.benchmarks.catalog import CATALOG, select
from linkgauge.benchmarks.table import EVERY_PROFILE, DeviceSet
from linkgauge.benchmarks.within_node import WITHIN_NODE

NAMES = [row.name for row in WITHIN_NODE]
KINDS = ("ce", "sm")


def laid_out(name, devices):
    some = tuple(device(n, "x") for n in range(devices))
    return CATALOG[name].lay_out(DeviceSet("x", machine(some).host.nodes, some))


def ends(name, devices):
    """Source and destination of each copy, in order."""
    (cell,) = laid_out(name, devices).cells
    return [(one.source.index, one.destination.index) for one in cell.transfers]


def test_each_is_there_by_copy_engines_and_by_kernels():
    patterns = ("all_to_all_write", "all_to_all_read", "disjoint_pairs_write", "bisect_write")
    assert [f"{name}_{kind}" for kind in KINDS for name in patterns] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_figure_is_the_total_of_one_cell(name):
    benchmark = laid_out(name, 3)
    (cell,) = benchmark.cells
    assert (cell.row, cell.column, cell.report, cell.operation) == ("0", "0", "total", "copy")
    assert (benchmark.pairs, bool(benchmark.rounds), benchmark.sweep) == (False, False, False)


@pytest.mark.parametrize("kind", KINDS)
@given(devices=st.integers(2, 20))
def test_all_to_all_is_every_ordered_pair_once(kind, devices):
    every = {(a, b) for a in range(devices) for b in range(devices) if a != b}
    for name in ("all_to_all_write", "all_to_all_read"):
        found = ends(f"{name}_{kind}", devices)
        assert len(found) == len(every)
        assert set(found) == every


@given(devices=st.integers(2, 20))
def test_copies_of_different_devices_do_not_meet_in_the_order_they_start(devices):
    """The nth copies of all devices, which run at once where a device's run one after another, have
    different sources and different destinations."""
    for name in ("all_to_all_write_sm", "all_to_all_read_sm"):
        found = ends(name, devices)
        for number in range(devices - 1):
            sources, destinations = zip(*found[number :: devices - 1], strict=True)
            assert len(set(sources)) == len(set(destinations)) == devices


@given(devices=st.integers(2, 20))
def test_disjoint_pairs_copy_both_ways_and_an_odd_device_rests(devices):
    found = ends("disjoint_pairs_write_ce", devices)
    assert found == [(n, n ^ 1) for n in range(devices // 2 * 2)]


@given(devices=st.integers(2, 20))
def test_bisection_has_each_device_write_and_be_written_to_once(devices):
    found = ends("bisect_write_ce", devices)
    assert found == [(n, (n + devices // 2) % devices) for n in range(devices)]
    assert {destination for _, destination in found} == set(range(devices))


@given(half=st.integers(1, 10))
def test_every_copy_of_a_bisection_crosses_the_middle(half):
    for source, destination in ends("bisect_write_sm", 2 * half):
        assert (source < half) != (destination < half)


@pytest.mark.parametrize("name", NAMES)
def test_the_source_pushes_a_write_and_the_destination_pulls_a_read(name):
    (cell,) = laid_out(name, 4).cells
    for one in cell.transfers:
        assert one.engine.owner == (one.destination if "_read_" in name else one.source)
        assert one.engine.kind == name[-2:]


@pytest.mark.parametrize("name", NAMES)
def test_one_device_is_not_enough(name):
    alone = laid_out(name, 1)
    assert (alone.cells, alone.reason) == ((), "needs two devices, x has 1 selected")


def test_they_take_long_and_so_are_in_the_full_profile_alone():
    for profile in EVERY_PROFILE:
        names = {row.name for row in select((), (), profile=profile)}
        assert (set(NAMES) & names) == (set(NAMES) if profile == "full" else set())


def test_they_are_between_devices():
    chosen = {row.name for row in select((), (), only_d2d=True, profile="full")}
    assert set(NAMES) <= chosen
