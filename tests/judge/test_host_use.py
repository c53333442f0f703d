"""Which figures depend on the host, and that recorded runs bear it out."""

import math
import random
from itertools import combinations
from statistics import fmean

import pytest
from msgspec.structs import replace

from linkgauge.judge.run_figures import figures_of
from linkgauge.model.notation import parse_transfers
from linkgauge.model.transfer import Report
from recorded_kit import HEALTHY, recorded_run

PINNED = {"locked": True}


@pytest.mark.parametrize(
    ("text", "more", "use"),
    [
        # What devices do between themselves depends on nothing of the host.
        ("cuda:0 -> cuda:1 by ce", {}, "none"),
        ("cuda:0 -> cuda:0 by ce", {}, "none"),
        ("cuda:1 -> cuda:0 by sm", {}, "none"),
        ("cuda:0 -> cuda:1 by ce & cuda:1 -> cuda:0 by ce", {}, "none"),
        # Copies to and from locked memory depend on the host's memory, and others on its CPUs, as
        # do host threads and what they time.
        ("host:0 -> cuda:1 by ce", PINNED, "memory"),
        ("cuda:0 -> cuda:1 by ce & cuda:0 -> host:0 by sm", PINNED, "memory"),
        ("host:0/pageable -> cuda:1 by ce", {"locked": False}, "cpus"),
        ("host:0 -> cuda:1 by ce", {}, "cpus"),
        ("host:0 -> host:0 by cpu", PINNED, "cpus"),
        *(("cuda:0 -> cuda:1 by ce", {"operation": work}, "cpus")
          for work in ("launch", "sync", "enqueue", "copy-ping-pong")),
    ],
)  # fmt: skip
def test_what_a_figure_depends_on(text, more, use):
    run = recorded_run("01")
    transfers = parse_transfers(text)
    cell = replace(run.results[0].cells[0], transfers=transfers, report=Report.FIRST,
                   **{"locked": None, "operation": "copy"} | more)  # fmt: skip
    (found,) = figures_of(replace(run, results=(replace(run.results[0], cells=(cell,)),))).cells
    assert found.host == use


MOVED, DIFFERENT = 1.5, 0.2
"""What the gate takes for CPUs that were moved, and for another load."""


def pairs():
    """Each cell in each two of ten runs: what its figures depend on, whether the load, or the
    distance of CPUs, was another one, and how much its figures differ."""
    runs = [figures_of(recorded_run(name)) for name in HEALTHY]
    for first, second in combinations(runs, 2):
        others = {cell.key: cell for cell in second.cells}
        for one in first.cells:
            other = others[one.key]
            loads = one.load, other.load
            other_host = has_moved(*loads) or is_loaded_otherwise(*loads)
            yield one.host, other_host, abs(math.log(other.figure / one.figure))


def test_ten_runs_agree_in_what_depends_on_nothing_of_the_host_whatever_it_did():
    found = [(other_host, apart) for use, other_host, apart in pairs() if use == "none"]
    disturbed = [apart for was, apart in found if was]
    assert len(disturbed) > 500
    assert max(disturbed) < 0.005
    assert fmean(disturbed) < 1.1 * fmean(apart for was, apart in found if not was)


def has_moved(first, second):
    apart = zip(first.apart, second.apart, strict=True)
    return any(max(pair) > MOVED * min(pair) for pair in apart)


def is_loaded_otherwise(first, second):
    return abs(first.cpus - second.cpus) > DIFFERENT


@pytest.mark.parametrize("differs", [has_moved, is_loaded_otherwise])
def test_ten_runs_do_not_show_that_copies_from_locked_memory_depend_on_the_hosts_cpus(differs):
    """By permutation: what runs differ in says no more of figures than figures in another order."""
    cells = {}
    for name in HEALTHY:
        for cell in figures_of(recorded_run(name)).cells:
            if cell.host == "memory":
                cells.setdefault(cell.key, []).append((math.log(cell.figure), cell.load))
    differing = [
        [[differs(one, other) for _, other in own] for _, one in own] for own in cells.values()
    ]
    figures = [[log for log, _ in own] for own in cells.values()]
    draw = random.Random(1)
    orders = [[draw.sample(own, len(own)) for own in figures] for _ in range(100)]
    chance = [apart(order, differing) for order in orders]
    assert sum(one >= apart(figures, differing) for one in chance) > 5


def apart(figures, differing):
    """How much farther figures are apart whose runs differ than those whose runs do not."""
    found = {True: [], False: []}
    for own, grid in zip(figures, differing, strict=True):
        for one, other in combinations(range(len(own)), 2):
            found[grid[one][other]].append(abs(own[one] - own[other]))
    return fmean(found[True]) / fmean(found[False])
