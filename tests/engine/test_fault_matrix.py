"""Each fault in each phase that it can strike: the run ends, the cells that are struck say so and
why, all others are measured, and the journal is the run."""

import os
from contextlib import closing
from itertools import product

import pytest
from msgspec.structs import replace

from linkgauge.engine.controller import execute
from linkgauge.engine.kept.journal import Journal, assemble, read_records
from linkgauge.engine.kept.runs import JOURNAL_FILE, read_run
from linkgauge.engine.workers.supervisor import Supervisor
from linkgauge.model.documents.result import exit_code
from linkgauge.report.files import write_run
from sim_kit import SIZE, Silent, opened, planned, settings

PHASES = {
    "allocate": "while allocating",
    "warm-up": "while warming up",
    "fill": "while filling the buffers",
    "measure": "while measuring",
    "verify": "while verifying",
}
SHAPES = {
    "one device": ("sim:0 -> sim:0 by ce",),
    "host and device": ("host:0 -> sim:0 by ce",),
    "a pair": ("sim:0 -> sim:1 by sm",),
    "both ways": ("sim:0 <-> sim:1 by sm",),
    "a group": ("sim:1 -> sim:2 by ce", "sim:2 -> sim:0 by ce", "sim:0 -> sim:1 by ce"),
}
"""Cells that touch sim:0."""
ELSEWHERE = ("sim:3 -> sim:3 by sm",)
PATIENT = 60.0
"""Seconds for a cell that does not hang: a loaded machine is slow, not wrong."""
STRUCK = 1
"""The fault's cell; the first and the last touch the same devices, the third does not."""


def run_with(folder, fault, shape, **more):
    """Runs four cells with a fault of the second. Checks what holds whatever the fault."""
    how = settings(fault, **{"timeout": PATIENT, **more})
    cells = [
        planned(*transfers, number=number)
        for number, transfers in enumerate([SHAPES[shape], SHAPES[shape], ELSEWHERE, SHAPES[shape]])
    ]
    with closing(Supervisor(how)) as worker:
        first = opened(cells, how, worker.survey(["sim"]))
        with closing(Journal.begin(folder / JOURNAL_FILE, first)) as journal:
            run = execute((first,), worker, journal.append, Silent())
    assert run.finished is not None
    write_run(folder, run)
    assert read_run(folder) == run
    assert assemble(read_records((folder / JOURNAL_FILE).read_bytes())) == run
    (result,) = run.results
    assert [cell.row for cell in result.cells] == ["0", "1", "2", "3"]
    return run, result.cells


def check_measured(*cells):
    for cell in cells:
        assert (cell.status, cell.reason, cell.verified) == ("pass", None, True)
        assert cell.summary.n == 6


def check_lost(cell, status, *words):
    assert (cell.status, cell.summary, cell.samples) == (status, None, ())
    for word in words:
        assert word in cell.reason


FULL = os.environ.get("LINKGAUGE_CAMPAIGN") == "full"
EACH = [*zip(PHASES, SHAPES, strict=True)]
"""Each phase and each shape once; all of them together in the campaign."""
if FULL:
    EACH = [*product(PHASES, SHAPES)]


@pytest.mark.parametrize("signal", ["SEGV", "KILL"] if FULL else ["KILL"])
@pytest.mark.parametrize(("phase", "shape"), EACH)
def test_a_crash_costs_its_cell(tmp_path, signal, phase, shape):
    fault = f"crash sim:0 signal={signal} phase={phase} cells={STRUCK}"
    run, (before, struck, *after) = run_with(tmp_path, fault, shape)
    check_lost(struck, "error", PHASES[phase], "sim:0", f"SIG{signal}")
    assert ("memory runs out" in struck.reason) == (signal == "KILL")
    assert struck.kind == "crash"
    check_measured(before, *after)
    assert exit_code(run) == 3


@pytest.mark.parametrize(("phase", "shape"), EACH if FULL else EACH[::3])
def test_a_hang_costs_its_cell_and_its_deadline(tmp_path, phase, shape):
    fault = f"hang sim:0 phase={phase} cells={STRUCK}"
    run, (before, struck, *after) = run_with(tmp_path, fault, shape, timeout=2.0)
    check_lost(struck, "timeout", PHASES[phase], "sim:0", "still running after 2")
    check_measured(before, *after)
    assert exit_code(run) == 3


@pytest.mark.parametrize(("phase", "shape"), EACH)
def test_a_failed_allocation_costs_its_cell(tmp_path, phase, shape):
    fault = f"nomem sim:0 phase={phase} cells={STRUCK}"
    run, (before, struck, *after) = run_with(tmp_path, fault, shape)
    check_lost(struck, "error", PHASES[phase], "out of memory", "SIMULATED: nomem sim:0")
    check_measured(before, *after)
    assert exit_code(run) == 3


@pytest.mark.parametrize(("phase", "shape"), EACH)
def test_a_lost_device_costs_its_cell_and_those_after_it(tmp_path, phase, shape):
    fault = f"lost sim:0 phase={phase} cells={STRUCK}"
    run, (before, struck, elsewhere, after) = run_with(tmp_path, fault, shape)
    check_lost(struck, "error", PHASES[phase], "device lost", "SIMULATED: lost sim:0")
    check_lost(after, "error", PHASES["allocate"], "device lost", "SIMULATED: lost sim:0")
    check_measured(before, elsewhere)
    assert exit_code(run) == 3


@pytest.mark.parametrize("shape", SHAPES if FULL else ["both ways", "a group"])
def test_a_flipped_bit_fails_its_cell(tmp_path, shape):
    fault = f"flip sim:0 offset=54321 bit=3 cells={STRUCK}"
    run, (before, struck, *after) = run_with(tmp_path, fault, shape)
    assert (struck.status, struck.verified, struck.summary.n) == ("fail", False, 6)
    assert f"is wrong at byte 54321 of {SIZE}" in struck.reason
    check_measured(before, *after)
    assert exit_code(run) == 1


def test_every_cell_of_a_round_but_the_struck_one_is_measured(tmp_path):
    how = settings("crash sim:0 cells=0", "nomem sim:3 cells=3", timeout=PATIENT)
    pairs = [("sim:0 -> sim:1 by sm",), ("sim:2 -> sim:3 by sm",)]
    cells = [
        replace(planned(*pairs[number % 2], number=number), round=number // 2)
        for number in range(4)
    ]
    with closing(Supervisor(how)) as worker:
        first = opened(cells, how, worker.survey(["sim"]))
        run = execute((first,), worker, lambda record: None, Silent())
    (result,) = run.results
    check_lost(result.cells[0], "error", "SIGSEGV")
    check_lost(result.cells[3], "error", "out of memory")
    check_measured(*result.cells[1:3])
