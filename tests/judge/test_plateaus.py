"""The levels of memory hierarchies that are known, found in curves as chases measure them."""

import math
import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fakes import machine
from linkgauge.judge.verdict import judge
from linkgauge.model.documents.result import CellResult, Result, Run
from linkgauge.model.notation import parse_transfers
from linkgauge.model.settings import Settings
from linkgauge.model.stats.summary import summarize
from linkgauge.model.transfer import Report

KI, MI = 1 << 10, 1 << 20
UNIT = 2 * KI
SIZES = tuple(size for n in range(18) for size in ((4 * KI) << n, (6 * KI) << n))[:-1]
"""Half octaves, as chases have them."""


def misses(size, capacity, sharpness):
    """Share of a cyclic chase that misses a cache: all with perfect least-recently-used replacement
    (infinite sharpness), what does not fit with random replacement (1)."""
    return 0.0 if size <= capacity else 1 - (capacity / size) ** sharpness


def curve(caches, memory, *, sharpness=4.0, tlb=(), noise=0.0, outliers=0.0, seed=1, sizes=SIZES):
    """Points of a machine: `caches` are (bytes, ns) and what `tlb` misses add is (bytes, ns)."""
    rng = random.Random(seed)
    points = []
    for size in sizes:
        ns = caches[0][1] if caches else memory
        beyond = [*(own for _, own in caches[1:]), memory]
        for (capacity, own), slower in zip(caches, beyond, strict=bool(caches)):
            ns += misses(size, capacity, sharpness) * (slower - own)
        ns += sum(misses(size, reach, sharpness) * walk for reach, walk in tlb)
        ns *= math.exp(rng.gauss(0, noise))
        if rng.random() < outliers:
            ns *= rng.uniform(1.2, 1.8)
        points.append((size, ns * 1e-9))
    return points


DESKTOP = [(32 * KI, 1.1), (512 * KI, 3.4), (32 * MI, 14.0)]
SERVER = [(48 * KI, 1.6), (2 * MI, 5.0), (96 * MI, 25.0)]
TLB = ((256 * KI, 1.6), (8 * MI, 7.0))
MACHINES = {
    # caches, ns of memory, how the curve deviates from steps
    "steps": (DESKTOP, 90.0, {"sharpness": math.inf}),
    "noise": (DESKTOP, 90.0, {"noise": 0.04}),
    "outliers": (DESKTOP, 90.0, {"noise": 0.02, "outliers": 0.08}),
    "TLB shoulders of 4 KiB pages": (DESKTOP, 95.0, {"tlb": TLB, "noise": 0.02}),
    "TLB shoulders of a server": (SERVER, 110.0, {"tlb": ((384 * KI, 2.0), (8 * MI, 9.0))}),
    "victim L3": ([(32 * KI, 1.2), (1 * MI, 3.6), (33 * MI, 13.0)], 85.0, {"sharpness": 2.0}),
    "VM with a part of its L3": (
        [(48 * KI, 1.6), (2 * MI, 5.5), (12 * MI, 28.0)], 125.0, {"sharpness": 2.5, "noise": 0.02}),
    "no L3": ([(32 * KI, 2.0), (1 * MI, 9.0)], 130.0, {"noise": 0.03}),
    "an octave": ([(32 * KI, 1.2), (128 * KI, 4.0), (8 * MI, 16.0)], 95.0, {"noise": 0.02}),
    "four caches": (
        [(32 * KI, 1.0), (256 * KI, 3.2), (6 * MI, 11.0), (128 * MI, 40.0)], 110.0, {}),
    "no cache": ([], 100.0, {"noise": 0.05}),
}  # fmt: skip


def levels(*rows, sweep=True, pages=()):
    """Of rows of points, each row's."""
    cells = []
    for number, points in enumerate(rows):
        row = pages[number] if pages else str(number)
        for size, seconds in points:
            place = f"host:0/{row}" if pages else "host:0"
            transfers = parse_transfers(f"{place} -> null by cpu*1 x{size // UNIT}")
            cell = CellResult(row, str(size), transfers, Report.LATENCY, "pass", operation="chase")
            cells.append(replace(cell, summary=summarize([seconds] * 3, "lower")))
    result = Result(
        benchmark="memory_latency", title="", backend="host", size=UNIT, unit="s", better="lower",
        sweep=sweep, status="pass", cells=tuple(cells),
    )  # fmt: skip
    run = Run(
        id="1", label="l", command=(), started="s", finished="f", machine=machine(),
        settings=Settings((UNIT,)), results=(result,),
    )  # fmt: skip
    found = [one.levels for one in judge(run).results[0].levels]
    return found or [()] * len(rows)


def levels_of(points):
    (found,) = levels(points)
    return found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", MACHINES)
def test_every_level_is_found_and_none_invented(name, seed):
    caches, memory, how = MACHINES[name]
    found = levels_of(curve(caches, memory, **how, seed=seed))
    known = [(ns, size) for size, ns in caches] + [(memory, None)]
    assert [level.number for level in found] == list(range(1, len(known) + 1))
    for level, (ns, size) in zip(found, known, strict=True):
        assert level.seconds == pytest.approx(ns * 1e-9, rel=0.45 if "tlb" in how else 0.2)
        if size is None:
            assert level.most is None
        else:  # within half an octave, that is to the point
            assert 2 / 3 * size <= level.most <= 1.5 * size


@pytest.mark.parametrize(
    "points", [[], [(4096, 1e-9)], [(4096, 1e-9), (6144, 1e-9)],
               [(size, size * 1e-12) for size in SIZES]],
)  # fmt: skip
def test_few_points_and_a_ramp_have_no_levels(points):
    assert levels_of(points) == ()


points = st.lists(st.tuples(st.sampled_from(SIZES), st.floats(1e-10, 1e-6)), max_size=35)


@settings(max_examples=25)
@given(points, st.randoms(use_true_random=False))
def test_levels_rise_do_not_overlap_and_do_not_depend_on_the_order(given, shuffler):
    one_each = list(dict(given).items())
    found = levels_of(one_each)
    assert all(a.seconds < b.seconds and a.most < b.least for a, b in pairwise(found))
    assert all(level.most is not None for level in found[:-1])
    assert not found or found[-1].most is None
    shuffler.shuffle(one_each)
    assert levels_of(one_each) == found


def test_a_level_of_small_pages_alone_is_their_translation():
    walks = curve([*DESKTOP[:2], (4 * MI, 7.0), *DESKTOP[2:]], 90.0)
    assert len(levels_of(walks)) == 5
    base, huge = levels(walks, curve(DESKTOP, 70.0), pages=("base", "huge"))
    assert [one.number for one in base] == [one.number for one in huge] == [1, 2, 3, 4]
    assert base[2].seconds == pytest.approx(14e-9, rel=0.1)
