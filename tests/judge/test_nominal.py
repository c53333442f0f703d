"""What links carry at their best: a degraded one shows in figures that are as expected."""

import pytest
from msgspec.structs import replace

from doctor_kit import FULL, GOOD, card, gpu, inventory, machine, measured, reading
from doctor_kit import root as root_port
from judge_kit import run_of
from linkgauge.backends.sim.description import load
from linkgauge.judge.dram import Ceilings
from linkgauge.judge.expect import Expectations
from linkgauge.judge.nominal import Nominal, at_best
from linkgauge.judge.verdict import judge
from linkgauge.model.inventory import FabricLink, PciLink
from linkgauge.model.pcie import link_rate

SLOW = replace(FULL, speed=2.5)


def nominal(of, *readings):
    """The nominal figure of a copy to the card, and what is expected of it."""
    result = measured(*readings)
    (cell,) = result.cells
    expected = Expectations(of).of(cell, result.size, result.unit).expected
    return Nominal(of, Ceilings()).of(cell, expected, result.size, result.unit), expected


def with_pci(*functions, cards=None, **host):
    return machine(inventory(pci=functions, cards=cards, host=replace(GOOD, **host)))


def test_a_slow_link_at_its_best_is_as_fast_as_its_ends():
    best, expected = nominal(with_pci(root_port(link=SLOW), gpu(link=SLOW)))
    _, well = nominal(with_pci(root_port(), gpu()))
    assert best == pytest.approx(well.figure)
    assert expected.theoretical == pytest.approx(link_rate(2.5, 16))


def test_where_nothing_is_degraded_nothing_is_nominal():
    of = with_pci(root_port(), gpu())
    assert at_best(of) is of
    assert nominal(of)[0] is None


def test_no_link_is_better_than_its_worse_end():
    old = PciLink(speed=16.0, width=16, max_speed=16.0, max_width=16)
    of = with_pci(root_port(link=old), gpu(link=replace(FULL, speed=16.0)))
    assert at_best(of) is of


def test_without_its_other_end_a_link_is_as_it_is():
    of = with_pci(gpu(link=SLOW, parent=None), cards=())
    assert at_best(of) is of


def test_in_a_guest_the_library_says_what_both_ends_can_do():
    emulated = root_port(link=PciLink(speed=2.5, width=1, max_speed=2.5, max_width=1))
    link = replace(SLOW, max_speed=16.0)
    of = with_pci(emulated, gpu(link=SLOW), cards=(card(link=link),), hypervisor="QEMU")
    best = at_best(of).inventory
    assert next(f for f in best.pci if f.port == "endpoint").link.speed == 16.0


def test_a_link_that_sleeps_is_not_degraded_if_it_was_awake_under_load():
    of = with_pci(root_port(link=SLOW), gpu(link=SLOW))
    assert nominal(of, reading(link_speed=32.0, link_width=16))[0] is None


def test_a_link_that_slowed_down_under_load_is():
    of = with_pci(root_port(), gpu(), cards=(card(link=FULL),))
    assert nominal(of, reading(link_speed=8.0, link_width=16))[0] > 0


def links(*active, remotes=("nvswitch",)):
    return tuple(
        FabricLink(n, "NVLink", on, rate=26562e6 if on else None,
                   remote=remotes[n % len(remotes)] if on else None)
        for n, on in enumerate(active)
    )  # fmt: skip


def test_a_link_that_is_down_leads_where_all_others_do():
    of = machine(inventory(cards=(card(links=links(True, False)),)))
    (best,) = at_best(of).inventory.accelerators
    assert best.links == tuple(replace(each, index=n) for n, each in enumerate(links(True) * 2))


def test_where_a_link_that_is_down_may_have_led_to_several_it_stays_down():
    of = machine(inventory(cards=(card(links=links(True, True, False, remotes=("a", "b"))),)))
    assert at_best(of) is of


NAME = "device_to_device_memcpy_read_ce"


def test_only_cells_that_cross_a_degraded_link_have_a_nominal_figure():
    name, text = load("dgx-h200-8")
    run = run_of(name, text, NAME, faults=("slow sim:2-nvswitch rate=50%",))
    cells = judge(run).results[0].cells
    assert {cell.verdict for cell in cells} == {"ok"}
    held = {cell.place for cell in cells if cell.expected.nominal is not None}
    assert held == {cell.place for cell in cells if "2" in cell.place}
    for cell in cells:
        if cell.place in held:
            assert cell.expected.nominal == pytest.approx(2 * cell.expected.achievable)
