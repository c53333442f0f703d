"""A kept run is read with today's rule, and ranges hold what other recorded runs found."""

from collections import defaultdict
from itertools import permutations
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from linkgauge.engine.kept.ranges import with_todays_ranges
from linkgauge.engine.kept.runs import run_of
from linkgauge.model.notation import encode_hook
from linkgauge.model.recorded import path_kind
from linkgauge.report.words.run_notes import note_lines
from recorded_kit import (
    HEALTHY,
    OF_ANOTHER,
    OF_CPUS,
    OF_ONE,
    OF_TWO,
    recorded_of_one,
    recorded_run,
)

SETS = {
    "2 × H100": (HEALTHY, recorded_run),
    "1 × H200": (OF_ONE, recorded_of_one),
    "another H200": (OF_ANOTHER, recorded_of_one),
    "2 × H200": (OF_TWO, recorded_of_one),
    "16 CPUs": (OF_CPUS[16], recorded_of_one),
    "2 CPUs": (OF_CPUS[2], recorded_of_one),
}


def figures(run):
    return {
        (result.benchmark, cell.row, cell.column, cell.bytes): cell.summary
        for result in run.results
        for cell in result.cells
        if cell.status == "pass" and cell.summary is not None
    }


@pytest.mark.parametrize("name", SETS)
def test_ranges_hold_the_figures_of_other_recorded_runs(name):
    """No kind of path less than nine of ten."""
    names, read = SETS[name]
    runs = [read(one) for one in names]
    kinds = {
        (result.benchmark, cell.row, cell.column, cell.bytes): path_kind(cell, cell.bytes)
        for run in runs for result in run.results for cell in result.cells
    }  # fmt: skip
    tables = list(map(figures, runs))
    held: defaultdict[str, list[bool]] = defaultdict(list)
    for one, other in permutations(tables, 2):
        for key in one.keys() & other.keys():
            if (ends := one[key].ci95) is not None:
                held[kinds[key]].append(ends[0] <= other[key].median <= ends[1])
    every = [is_held for own in held.values() for is_held in own]
    assert len(every) > 200
    assert 0.93 <= sum(every) / len(every) <= 0.98
    assert not {kind for kind, own in held.items() if len(own) >= 40 and sum(own) < 0.9 * len(own)}


def changed(run, ci95):
    result = run.results[0]
    cells = tuple(replace(cell, summary=replace(cell.summary, ci95=ci95)) for cell in result.cells)
    return replace(run, results=(replace(result, cells=cells), *run.results[1:]))


def said(run):
    return [str(line) for line in note_lines(run) if "computed anew" in str(line)]


def test_a_kept_run_has_todays_ranges_whatever_its_file_says():
    run = recorded_run("01")
    assert run.ranges == "anew"
    old = msgspec.json.encode(
        replace(changed(run, (1.0, 2.0)), ranges=msgspec.UNSET), enc_hook=encode_hook
    )
    read = run_of(old, Path("run.json"))
    assert figures(read) == figures(run)
    assert read.ranges == "anew"
    assert len(said(read)) == 1


def test_a_file_with_todays_ranges_is_read_as_it_is():
    run = replace(recorded_run("01"), ranges=msgspec.UNSET)
    assert with_todays_ranges(run) == run
    assert not said(run)
