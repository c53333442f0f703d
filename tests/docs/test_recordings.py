"""The page of recorded runs has the figures of the recorded runs, and the recorder records."""

import subprocess
import sys
from pathlib import Path

import pytest

from recorded_kit import recordings_tool

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def recordings():
    return recordings_tool()


def test_the_page_has_the_figures_of_the_recorded_runs(recordings):
    page = recordings.PAGE.read_text("utf-8")
    assert recordings.renewed(page) == page, "make screens renews it"


def test_what_varies_is_told_apart(recordings):
    figure = recordings.Figure(value=0.6, repetitions=((0.0, 0.2, 0.1), (1.0, 1.2, 1.1)))
    other = recordings.Figure(value=3.6, repetitions=((3.0, 3.2, 3.1), (4.0, 4.2, 4.1)))
    cell = [figure, other]
    assert recordings.within(cell) == pytest.approx(0.01)
    assert recordings.between(cell) == pytest.approx(0.5)
    assert recordings.of_runs(cell) == pytest.approx(4.5)
    assert recordings.deviations(cell) == pytest.approx([-1.5, 1.5])


def test_every_benchmark_of_the_recorded_runs_has_a_kind(recordings):
    sets = [folder for pattern in recordings.SETS for folder in recordings.DATA.glob(pattern)]
    runs = [run for folder in sets if folder.is_dir() for run in recordings.runs_in(folder)]
    keys = recordings.figures_of(runs)
    assert sum(len(some) for _, some in recordings.kinds_of(keys)) == len(keys) > 100


def test_a_recorded_run_is_read_and_names_nobody(recordings, tmp_path):
    words = "--runs 1 --beside 0 -- --backend host cpu_primes_single --samples 3".split()
    subprocess.run([sys.executable, ROOT / "tools" / "record", tmp_path, *words], check=True)
    [run] = recordings.runs_in(tmp_path)
    [[cell]] = [[*result.cells] for result in run.results]
    assert (cell.status, len(cell.samples)) == ("pass", 3)
    assert run.machine.host.hostname == "host-1"
    assert not run.machine.inventory.interfaces
    assert run.machine.inventory.host.command_line is None
    assert "`01`: exit 0" in (tmp_path / "README.md").read_text("utf-8")
