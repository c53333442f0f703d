"""Patterns of matrices and curves, told in words; none at plausible noise."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import fakes
from linkgauge.judge.doctor import diagnose
from linkgauge.judge.findings import Evidence
from linkgauge.model.documents.result import CellResult, Expected, Result
from linkgauge.model.hardware.inventory import Accelerator, FabricLink, Inventory
from linkgauge.model.notation import parse_transfers
from linkgauge.model.stats.summary import summarize
from linkgauge.model.transfer import Report

SIZE = 256 << 20


def machine(count=4, mesh=None):
    """Devices; `mesh` tells how many links join a pair (a switch joins all without it)."""
    names = [f"sim:{number}" for number in range(count)]

    def links(one):
        if mesh is None:
            return (FabricLink(0, "lane", True, rate=50e9, remote="switch"),)
        ends = [other for other in names if other != one for _ in range(mesh(one, other))]
        return tuple(FabricLink(n, "lane", True, rate=50e9, remote=e) for n, e in enumerate(ends))

    inventory = Inventory(
        accelerators=tuple(Accelerator(memory=n, model="X", links=links(n)) for n in names)
    )
    of = fakes.machine([fakes.device(number, "sim") for number in range(count)])
    return replace(of, inventory=inventory)


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


SLOW, UNSTEADY, CURVES = ("slow", "drift"), ("stall", "scatter"), ("plateau", "knee")
OF_MATRICES = ("classes", "directions")


def found(checks, *results, on=None, after=None):
    """What is found of these kinds."""
    findings = diagnose(Evidence(on or machine(), after, results))
    return [finding for finding in findings if finding.check in checks]


def named(findings):
    return [(finding.check, finding.subject) for finding in findings]


def halved(*parts):
    """Figures, of which those that touch one of these devices are half of what they would be."""
    return lambda of: lambda *ends: of / 2 if set(parts) & set(ends) else of


@pytest.mark.parametrize(
    ("fabric", "host", "within", "subject"),
    [((2,), (2,), (2,), "sim:2"), ((2,), (), (), "sim:2-switch"), ((), (2,), (2,), "sim:2")],
)
def test_the_part_is_named_that_all_slow_cells_touch(fabric, host, within, subject):
    results = [pairs(halved(*fabric)(4e11)), to_host(halved(*host)(5e10)),
               local(halved(*within)(2e12))]  # fmt: skip
    (finding,) = found(SLOW, *results)
    assert (finding.check, finding.severity, finding.subject) == ("slow", "fail", subject)
    assert "50%" in finding.found
    assert finding.cells


@pytest.mark.parametrize(("strongest", "said"), [(1.0, "fail"), (0.5, "warn")])
def test_beside_a_stronger_cause_one_cell_at_74_percent_is_a_warning(strongest, said):
    findings = found(SLOW, pairs(lambda r, c: 400e9 * (strongest if 0 in (r, c) else 1)),
                     to_host(lambda d: 50e9 * (0.74 if d == 3 else 1), noise=0.0005))  # fmt: skip
    assert {f.severity for f in findings if len(f.cells) == 1} == {said}
    assert {f.severity for f in findings if len(f.cells) > 1} <= {"fail"}


def test_topology_is_no_slow_device():
    """Pairs with two links are twice as fast as those with one: nothing is slow."""
    mesh = machine(mesh=lambda one, other: 2 if {one, other} in TWICE else 1)
    results = [pairs(lambda r, c: 96e9 if {f"sim:{r}", f"sim:{c}"} in TWICE else 48e9)]
    assert found(SLOW, *results, on=mesh) == []
    (finding,) = found(OF_MATRICES, *results, on=mesh)
    assert (finding.check, finding.severity) == ("classes", "note")


TWICE = ({"sim:0", "sim:1"}, {"sim:2", "sim:3"})


@given(seed=st.integers(0, 10**6), noise=st.sampled_from([0.001, 0.005, 0.02]))
def test_noise_is_no_pattern(seed, noise):
    draw = random.Random(seed)

    def figure(*_):
        return 400e9 * draw.gauss(1, noise / 2)

    results = [pairs(figure, noise=noise), to_host(lambda d: 50e9 * draw.gauss(1, noise / 2))]
    checks = (*SLOW, *UNSTEADY, *CURVES, *OF_MATRICES)
    assert found(checks, *results) == []


@pytest.mark.parametrize(
    "samples",
    [
        # Nine samples that vary by 30 % tell a median to 15 %.
        [240e9, 255e9, 270e9, 290e9, 300e9, 400e9, 430e9, 450e9, 500e9],
        # Samples a thousandfold apart are no figure to compare.
        [1e9, 1e9, 1e13],
    ],
)
def test_an_unlucky_median_of_samples_that_scatter_is_not_slow(samples):
    results = pairs(lambda r, c: 400e9)
    cells = (cell("0", "1", "sim:0 -> sim:1 by ce", samples), *results.cells[1:])
    assert found(("slow",), replace(results, cells=cells)) == []


def test_a_stall_that_a_long_sample_hides_is_still_its_devices():
    """10 ms in a sample of 20 ms stand out, in one of 400 ms they do not."""
    copies = {d: [2e12] * 9 for d in range(4)}
    copies[1] = [2e12, 2e12, 1.33e12] * 3
    within = result("device_local_copy", [
        cell("0", str(d), f"sim:{d} -> sim:{d} by ce", samples) for d, samples in copies.items()
    ])  # fmt: skip
    far = to_host(lambda d: SIZE / 0.4)
    (finding,) = found(UNSTEADY, within, within, far, far, far)
    assert (finding.check, finding.subject) == ("stall", "sim:1")


def test_of_a_device_and_its_link_that_explain_as_well_the_link_is_named():
    """Two devices and their link: both cells touch all three, and no copy is within a device."""
    two = machine(2, mesh=lambda one, other: 1)
    low = pairs(lambda r, c: 20e9, count=2)
    cells = tuple(replace(c, verdict="low", expected=Expected(achievable=50e9)) for c in low.cells)

    def counted(errors):
        return replace(two.inventory, accelerators=tuple(
            replace(a, links=tuple(replace(link, errors=errors) for link in a.links))
            for a in two.inventory.accelerators))  # fmt: skip

    for errors in (0, 5):
        on, after = replace(two, inventory=counted(0)), counted(errors)
        (finding,) = found(SLOW, replace(low, cells=cells), on=on, after=after)
        assert finding.subject == "sim:0-sim:1"
        assert "the cause may be sim:0" in finding.found
        assert errors or "`device_local_copy`, which crosses no link" in finding.why


def test_asymmetric_directions_are_named():
    results = [pairs(lambda r, c: 300e9 if (r, c) == (0, 3) else 400e9)]
    (finding,) = found(OF_MATRICES, *results)
    assert (finding.check, finding.cells) == (
        "directions", ("device_to_device_memcpy_write_ce sim:0 -> sim:3",),
    )  # fmt: skip


def by_size(figures, devices=1):
    """The same curve of so many devices."""
    return [
        result("device_to_host_memcpy_ce",
               [cell("0", str(n), f"sim:{n} -> host:0 by ce", noisy(figure, 0.002, n))
                for n in range(devices)],
               size=(1 << 20) << (2 * place))
        for place, figure in enumerate(figures)
    ]  # fmt: skip


def by_threads(figures):
    cells = [
        cell("0", str(1 << place), f"host:0 -> null by cpu*{1 << place}", noisy(figure, 0.002))
        for place, figure in enumerate(figures)
    ]
    return [result("threads", cells, sweep=True)]


PLATEAU, KNEE = [20e9, 60e9, 90e9, 50e9, 50e9], [10e9, 40e9, 44e9, 45e9]


@pytest.mark.parametrize(
    ("results", "check", "at"),
    [
        (by_size(PLATEAU), "plateau", None),
        (by_size([20e9, 60e9, 90e9, 91e9, 92e9]), "plateau", ""),
        (by_size(KNEE), "knee", "up to 4 MiB"),
        (by_threads([10e9, 20e9, 40e9, 44e9, 45e9]), "knee", "up to 4 "),
        (by_threads([10e9, 20e9, 40e9, 80e9, 160e9]), "knee", ""),
        (by_threads([10e9, 10e9, 10e9]), "knee", ""),
    ],
)  # fmt: skip
def test_where_a_curve_bends_is_told(results, check, at):
    findings = found((check,), *results)
    assert len(findings) == (at != "")
    assert not at or at in findings[0].found


def equal_cells(figures, size=SIZE):
    """Of as many devices as there are samples."""
    return result("device_to_host_memcpy_ce", [
        replace(cell("0", str(n), f"sim:{n % 4} -> host:0 by ce", samples), verdict="not judged",
                bytes=1 << 32)
        for n, samples in enumerate(figures)
    ], size=size)  # fmt: skip


@pytest.mark.parametrize(("samples", "sigma"), [(3, 0.05), (5, 0.02), (9, 0.1)])
def test_none_of_a_thousand_healthy_cells_is_slow(samples, sigma):
    draw = random.Random(f"{samples} {sigma} 2")
    figures = [[50e9 * draw.lognormvariate(0, sigma) for _ in range(samples)] for _ in range(1000)]
    assert found(SLOW, equal_cells(figures)) == []


def test_copies_that_take_no_longer_than_a_start_are_equal_at_one_size_only():
    """Their figures grow with the size, whatever links do."""
    for seconds, slow in ((3e-6, False), (3e-3, True)):
        results = [
            result("device_to_host_memcpy_ce", [
                replace(cell("0", "0", "sim:0 -> host:0 by ce", (size / seconds,) * 6), bytes=size)
            ], size=size)
            for size in (1 << 28, 1 << 29)
        ]  # fmt: skip
        assert bool(found(("slow",), *results)) is slow


def test_cells_that_end_in_different_phases_have_different_causes():
    whole, phases = pairs(lambda r, c: 400e9), {"0": "fill", "3": "verify"}

    def ended(one):
        phase = phases.get(one.row) or phases.get(one.column)
        broken = {
            "status": "error",
            "kind": "crash",
            "phase": phase,
            "samples": (),
            "summary": None,
        }
        return replace(one, **broken) if phase else one

    broken = replace(whole, cells=tuple(map(ended, whole.cells)))
    findings = found(("crash",), broken, to_host(lambda d: 50e9))
    assert set(named(findings)) == {("crash", "sim:0-switch"), ("crash", "sim:3-switch")}
