"""Patterns of matrices and curves, told in words; none at plausible noise."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from linkgauge.judge import shape, slow_parts, steadiness
from linkgauge.judge.findings import Evidence
from linkgauge.model.inventory import Accelerator, FabricLink, Inventory
from linkgauge.model.machine import Device, Host, Machine, Node
from linkgauge.model.notation import parse_transfers
from linkgauge.model.result import CellResult, Expected, Result
from linkgauge.model.statistics import summarize
from linkgauge.model.transfer import Report

SIZE = 256 << 20


def machine(count=4, mesh=None):
    """Devices; `mesh` tells how many links join a pair (a switch joins all without it)."""
    host = Host(
        hostname="h", system="s", kernel="k", architecture="x86_64", cpu_model=None, cpus=8,
        nodes=(Node(0, tuple(range(8))),), memory_total=None, memory_available=None,
        memlock_limit=None, transparent_huge_pages=None,
    )  # fmt: skip
    names = [f"sim:{number}" for number in range(count)]

    def links(one):
        if mesh is None:
            return (FabricLink(0, "lane", True, rate=50e9, remote="switch"),)
        ends = [other for other in names if other != one for _ in range(mesh(one, other))]
        return tuple(FabricLink(n, "lane", True, rate=50e9, remote=e) for n, e in enumerate(ends))

    inventory = Inventory(
        accelerators=tuple(Accelerator(memory=n, model="X", links=links(n)) for n in names)
    )
    devices = tuple(Device(name, "X", 1 << 34, 1 << 34) for name in names)
    return Machine(host=host, devices={"sim": devices}, inventory=inventory)


def cell(row, column, transfer, samples):
    """A sample lasts 20 ms or more, as the engine sees to."""
    loops = max(1, round(0.02 * max(samples) / SIZE))
    return CellResult(
        row, column, parse_transfers(transfer), Report.FIRST, "pass", bytes=SIZE, loops=loops,
        verified=True, samples=tuple(samples), summary=summarize(samples),
    )  # fmt: skip


def result(name, cells, *, size=SIZE, sweep=False):
    return Result(
        benchmark=name, title=name, backend="sim", size=size, unit="B/s", better="higher",
        sweep=sweep, status="pass", cells=tuple(cells),
    )  # fmt: skip


def noisy(figure, noise=0.005, seed=0, count=9):
    draw = random.Random(seed)
    return [figure * draw.gauss(1, noise) for _ in range(count)]


def pairs(figure, count=4, name="device_to_device_memcpy_write_ce", noise=0.005):
    return result(
        name,
        [
            cell(str(r), str(c), f"sim:{r} -> sim:{c} by ce",
                 noisy(figure(r, c), noise, seed=100 * r + c))
            for r in range(count) for c in range(count) if r != c
        ],
    )  # fmt: skip


def to_host(figure, count=4, noise=0.005):
    return result(
        "device_to_host_memcpy_ce",
        [cell("0", str(d), f"sim:{d} -> host:0 by ce", noisy(figure(d), noise, seed=d))
         for d in range(count)],
    )  # fmt: skip


def local(figure, count=4):
    return result(
        "device_local_copy",
        [cell("0", str(d), f"sim:{d} -> sim:{d} by ce", noisy(figure(d), seed=7 * d))
         for d in range(count)],
    )  # fmt: skip


def found(checks, *results, on=None):
    evidence = Evidence(on or machine(), None, results)
    return [finding for check in checks for finding in check(evidence)]


def test_one_slow_device_is_told_by_its_row_and_column():
    slow = [
        pairs(lambda r, c: 200e9 if 2 in (r, c) else 400e9),
        to_host(lambda d: 25e9 if d == 2 else 50e9),
        local(lambda d: 1000e9 if d == 2 else 2000e9),
    ]
    (finding,) = found(slow_parts.CHECKS, *slow)
    assert (finding.check, finding.severity, finding.subject) == ("slow", "fail", "sim:2")
    assert "50%" in finding.found
    assert finding.cells


def test_a_slow_link_to_the_switch_is_not_its_device():
    results = [
        pairs(lambda r, c: 200e9 if 2 in (r, c) else 400e9),
        to_host(lambda d: 50e9),
        local(lambda d: 2000e9),
    ]
    (finding,) = found(slow_parts.CHECKS, *results)
    assert finding.subject == "sim:2-switch"


def test_two_slow_links_are_two_findings_and_no_drift():
    def figure(row, column):
        return 400e9 * (0.8 if 0 in (row, column) else 1) * (0.6 if 3 in (row, column) else 1)

    findings = found(slow_parts.CHECKS, pairs(figure), to_host(lambda d: 50e9),
                     local(lambda d: 2000e9))  # fmt: skip
    assert {(f.check, f.subject) for f in findings} == {
        ("slow", "sim:0-switch"), ("slow", "sim:3-switch")}  # fmt: skip


@pytest.mark.parametrize(("strongest", "said"), [(1.0, "fail"), (0.5, "warn")])
def test_beside_a_stronger_cause_one_cell_at_74_percent_is_a_warning(strongest, said):
    findings = found(slow_parts.CHECKS,
                     pairs(lambda r, c: 400e9 * (strongest if 0 in (r, c) else 1)),
                     to_host(lambda d: 50e9 * (0.74 if d == 3 else 1), noise=0.0005))  # fmt: skip
    assert {f.severity for f in findings if len(f.cells) == 1} == {said}
    assert {f.severity for f in findings if len(f.cells) > 1} <= {"fail"}


def test_it_was_well_before_only_if_an_equal_cell_touched_it_before():
    slow_later = [
        pairs(lambda r, c: 400e9),
        to_host(lambda d: 25e9 if d == 2 else 50e9),
        local(lambda d: 2000e9),
    ]
    (finding,) = found(slow_parts.CHECKS, *slow_later)
    assert "it was well" not in finding.found
    once_more = [*[to_host(lambda d: 50e9)] * 4, *slow_later[1:]]
    (finding,) = found(slow_parts.CHECKS, *once_more)
    assert "it was fine" in finding.found


def test_one_slow_pair_is_told_by_its_cells():
    mesh = machine(mesh=lambda one, other: 1)
    results = [pairs(lambda r, c: 20e9 if {r, c} == {1, 3} else 45e9), to_host(lambda d: 50e9)]
    (finding,) = found(slow_parts.CHECKS, *results, on=mesh)
    assert finding.subject == "sim:1-sim:3"
    assert len(finding.cells) == 2


def test_topology_is_no_slow_device():
    """Pairs with two links are twice as fast as those with one: nothing is slow."""
    mesh = machine(mesh=lambda one, other: 2 if {one, other} in TWICE else 1)
    results = [pairs(lambda r, c: 96e9 if {f"sim:{r}", f"sim:{c}"} in TWICE else 48e9)]
    assert found(slow_parts.CHECKS, *results, on=mesh) == []
    (finding,) = found((shape.check_classes,), *results, on=mesh)
    assert "two classes of pairs: 8 cells at 47" in finding.found or "at 48" in finding.found
    assert "2 × 4" in finding.found
    assert "2 times as many links" in finding.found


TWICE = ({"sim:0", "sim:1"}, {"sim:2", "sim:3"})


def test_a_rate_that_falls_from_cell_to_cell_is_a_drift():
    number = iter(range(1000))
    results = [pairs(lambda r, c: 400e9 * (0.98 ** next(number)), name=f"b{n}") for n in range(1)]
    number = iter(range(12, 1000))
    results += [pairs(lambda r, c: 400e9 * (0.98 ** next(number)))]
    findings = found(slow_parts.CHECKS, *results)
    assert [finding.check for finding in findings] == ["drift"]
    assert (
        "-2.00%" in findings[0].found or "-1.9" in findings[0].found or "-2.0" in findings[0].found
    )


@given(seed=st.integers(0, 10**6), noise=st.sampled_from([0.001, 0.005, 0.02]))
def test_noise_is_no_pattern(seed, noise):
    draw = random.Random(seed)

    def figure(*_):
        return 400e9 * draw.gauss(1, noise / 2)

    results = [pairs(figure, noise=noise), to_host(lambda d: 50e9 * draw.gauss(1, noise / 2))]
    checks = (*slow_parts.CHECKS, *steadiness.CHECKS, *shape.CHECKS)
    assert found(checks, *results) == []


def test_stalls_are_told_from_scatter():
    stalled = [100.0, 100.1, 60.0, 99.9, 100.0, 60.0, 100.1, 100.0, 60.0]
    results = [
        to_host(lambda d: 50e9),
        result("device_to_device_memcpy_write_ce", [
            cell(str(r), str(c), f"sim:{r} -> sim:{c} by ce",
                 [4e9 * s for s in stalled] if 1 in (r, c) else noisy(400e9, seed=r * 7 + c))
            for r in range(4) for c in range(4) if r != c
        ]),
    ]  # fmt: skip
    (finding,) = found(steadiness.CHECKS, *results)
    assert (finding.check, finding.subject) == ("stall", "sim:1-switch")
    assert "every 3 samples" in finding.found
    assert "1.67 times" in finding.found


def test_scatter_names_the_part():
    results = [
        to_host(lambda d: 50e9),
        result("device_to_device_memcpy_write_ce", [
            cell(str(r), str(c), f"sim:{r} -> sim:{c} by ce",
                 noisy(400e9, 0.08 if 1 in (r, c) else 0.005, seed=r * 7 + c))
            for r in range(4) for c in range(4) if r != c
        ]),
    ]  # fmt: skip
    (finding,) = found(steadiness.CHECKS, *results)
    assert (finding.check, finding.subject) == ("scatter", "sim:1-switch")


def test_an_unlucky_median_of_samples_that_scatter_is_not_slow():
    """Nine samples that vary by 30 % tell a median to 15 %."""
    unlucky = [240e9, 255e9, 270e9, 290e9, 300e9, 400e9, 430e9, 450e9, 500e9]
    results = [pairs(lambda r, c: 400e9)]
    cells = (cell("0", "1", "sim:0 -> sim:1 by ce", unlucky), *results[0].cells[1:])
    assert found(slow_parts.CHECKS, replace(results[0], cells=cells)) == []


def test_samples_a_thousandfold_apart_are_no_figure_to_compare():
    results = [pairs(lambda r, c: 400e9)]
    cells = (cell("0", "1", "sim:0 -> sim:1 by ce", [1e9, 1e9, 1e13]), *results[0].cells[1:])
    assert "slow" not in {
        f.check for f in found(slow_parts.CHECKS, replace(results[0], cells=cells))
    }


def test_a_stall_that_a_long_sample_hides_is_still_its_devices():
    """10 ms in a sample of 20 ms stand out, in one of 400 ms they do not."""
    copies = {d: [2e12] * 9 for d in range(4)}
    copies[1] = [2e12, 2e12, 1.33e12] * 3
    within = result("device_local_copy", [
        cell("0", str(d), f"sim:{d} -> sim:{d} by ce", samples) for d, samples in copies.items()
    ])  # fmt: skip
    far = to_host(lambda d: SIZE / 0.4)
    (finding,) = found(steadiness.CHECKS, within, within, far, far, far)
    assert (finding.check, finding.subject) == ("stall", "sim:1")


def test_a_third_of_the_samples_a_tenth_longer_is_a_stall():
    steady = [50e9, 50.4e9, 49.6e9, 50.2e9, 49.8e9, 50e9]
    stalled = [*steady, 44.8e9, 45e9, 44.6e9]
    results = [to_host(lambda d: 50e9), to_host(lambda d: 50e9)]
    cells = (*results[0].cells[:2], cell("0", "2", "sim:2 -> host:0 by ce", stalled))
    again = replace(results[0], cells=(*cells, results[0].cells[3]))
    assert [f.check for f in found(steadiness.CHECKS, again, again)] == ["stall"]


def test_how_quiet_the_others_are_does_not_say_who_scatters():
    """Links of one kind have 0.8 % of noise, those of another 0.1 %: both are quiet."""
    results = [
        to_host(lambda d: 50e9, noise=0.008),
        result("device_to_device_memcpy_write_ce", [
            cell(str(r), str(c), f"sim:{r} -> sim:{c} by ce",
                 noisy(400e9, 0.08 if (r, c) in ((0, 1), (1, 0)) else 0.001, seed=r * 7 + c))
            for r in range(4) for c in range(4) if r != c
        ]),
    ]  # fmt: skip
    (finding,) = found(steadiness.CHECKS, *results, on=machine(mesh=lambda one, other: 1))
    assert (finding.check, finding.subject) == ("scatter", "sim:0-sim:1")


def test_of_parts_that_explain_as_well_the_link_that_counted_errors_is_named():
    """Two devices and their link: both cells touch all three."""
    two = machine(2, mesh=lambda one, other: 1)
    low = pairs(lambda r, c: 20e9, count=2)
    cells = tuple(replace(c, verdict="low", expected=Expected(achievable=50e9)) for c in low.cells)

    def counted(errors):
        return replace(two.inventory, accelerators=tuple(
            replace(a, links=tuple(replace(link, errors=errors) for link in a.links))
            for a in two.inventory.accelerators))  # fmt: skip

    def named(after):
        evidence = Evidence(replace(two, inventory=counted(0)), after, (replace(low, cells=cells),))
        (finding,) = (finding for check in slow_parts.CHECKS for finding in check(evidence))
        return finding.subject

    assert named(counted(0)) == "sim:0"
    assert named(counted(5)) == "sim:0-sim:1"


def test_asymmetric_directions_are_named():
    results = [pairs(lambda r, c: 300e9 if (r, c) == (0, 3) else 400e9)]
    (finding,) = found((shape.check_directions,), *results)
    assert "1 of 6 pairs" in finding.found
    assert finding.cells == ("device_to_device_memcpy_write_ce (0, 3)",)


def sizes(figures):
    return [
        result("device_to_host_memcpy_ce",
               [cell("0", "0", "sim:0 -> host:0 by ce", noisy(figure, 0.002))],
               size=(1 << 20) << (2 * place))
        for place, figure in enumerate(figures)
    ]  # fmt: skip


def test_a_plateau_below_the_peak_is_told():
    (finding,) = found((shape.check_plateau,), *sizes([20e9, 60e9, 90e9, 50e9, 50e9]))
    assert "56%" in finding.found or "55%" in finding.found
    assert found((shape.check_plateau,), *sizes([20e9, 60e9, 90e9, 91e9, 92e9])) == []


def test_a_knee_of_a_curve_over_threads_is_told():
    def swept(figures):
        cells = [
            cell("0", str(1 << place), f"host:0 -> null by cpu*{1 << place}", noisy(figure, 0.002))
            for place, figure in enumerate(figures)
        ]
        return result("threads", cells, sweep=True)

    (finding,) = found((shape.check_knee,), swept([10e9, 20e9, 40e9, 44e9, 45e9]))
    assert "up to 4 " in finding.found
    assert found((shape.check_knee,), swept([10e9, 20e9, 40e9, 80e9, 160e9])) == []


def many_sizes(figures, count=3):
    """The same curve of so many devices."""
    return [
        result(
            "device_to_host_memcpy_ce",
            [
                cell(
                    "0", str(device), f"sim:{device} -> host:0 by ce", noisy(figure, 0.002, device)
                )
                for device in range(count)
            ],
            size=(1 << 20) << (2 * place),
        )
        for place, figure in enumerate(figures)
    ]


@pytest.mark.parametrize(
    ("check", "figures", "words"),
    [
        (shape.check_knee, [10e9, 40e9, 44e9, 45e9], "the figures of 3 curves grow up to 4 MiB"),
        (shape.check_plateau, [20e9, 60e9, 90e9, 50e9, 50e9], "3 curves settle at"),
    ],
)
def test_alike_curves_share_one_note_which_counts_them(check, figures, words):
    (finding,) = found((check,), *many_sizes(figures))
    assert words in finding.found
    assert finding.subject == "device_to_host_memcpy_ce"
    named = {cell.partition(" at ")[0] for cell in finding.cells}
    assert named == {f"device_to_host_memcpy_ce (0, {device})" for device in range(3)}


def test_curves_that_bend_elsewhere_have_a_note_of_their_own():
    early, late = many_sizes([10e9, 40e9, 44e9, 45e9], 2), many_sizes([10e9, 20e9, 75e9, 76e9], 3)
    mixed = [
        replace(one, cells=(*one.cells, *other.cells[2:]))
        for one, other in zip(early, late, strict=True)
    ]
    two, one = found((shape.check_knee,), *mixed)
    assert "2 curves" in two.found
    assert one.subject == "device_to_host_memcpy_ce (0, 2)"


@given(st.lists(st.floats(1e-3, 1e15), max_size=20))
def test_levels_lie_among_the_figures(figures):
    levels = shape.split_levels(sorted(figures))
    if levels is not None:
        assert min(figures) <= levels[0] < levels[1] <= max(figures)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_few_points_have_no_knee(count):
    assert shape.knee([(float(n + 1), 1.0) for n in range(count)]) is None


def test_a_sweep_from_zero_has_no_knee():
    assert shape.knee([(0, 1.0), (1, 2.0), (2, 4.0), (3, 4.0), (4, 4.0)]) is None
