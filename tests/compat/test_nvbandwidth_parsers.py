"""Readers of nvbandwidth's output in public use read ours, and what nvbandwidth printed as control.

What they do is taken over as facts of
- SuperBench: microsoft/superbenchmark, superbench/benchmarks/micro_benchmarks/nvbandwidth.py (a
  state machine over lines, whose state ends with SUM);
- Azure's cluster-health-monitor: pkg/nodecheckerrunner/checkers/gpu/bandwidth.go (the least figure
  above 0 of each test that is `Passed` in JSON; any other status is a failure of the tool);
- Azure's health checks: Azure/azurehpc-health-checks, customTests/azure_gpu_bandwidth.nhc (rows
  between `Running` and the next one, without the first line and lines with `memcpy`). They end
  with the tool's exit code before they read a figure, unless it is 0."""

import json
import re
from pathlib import Path

import pytest

from compat_kit import MadeUp, document, rated, spoken
from linkgauge.model.documents.result import CellResult

DATA = Path(__file__).parents[1] / "data"
LOGS = [
    (DATA / "judge/logs" / name).read_text()
    for name in ("nvbandwidth-0.8-laptop.txt", "nvbandwidth-0.10-b300.txt")
]
TESTS = ("host_to_device_memcpy_ce", "device_to_host_memcpy_ce", "device_to_device_memcpy_read_ce")
WORDS = f"-t {' '.join(TESTS)}"


def plainly(text):
    """The figures of each test's matrix by row and column, as they stand in the lines below the
    matrix's heading."""
    found = {}
    for block in re.split(r"(?m)^Running ", text)[1:]:
        name = block.partition(".\n")[0]
        match = re.search(r"(?m)^mem.*\n +([\d ]+)\n((?: *\d+ .*\n)+)", block)
        for row in match[2].splitlines() if match else ():
            number, *figures = row.split()
            for column, figure in zip(match[1].split(), figures, strict=True):
                if figure != "N/A":
                    found[name, number, column] = float(figure)
    return found


def by_superbench(text):
    found, heads, test, is_matrix = {}, [], "", False
    for line in map(str.strip, text.splitlines()):
        if match := re.match(r"^Running\s+(.+)$", line):
            test = match[1].lower()[:-1]
        elif test and re.match(r"^(memcpy|memory latency)", line):
            is_matrix = True
        elif test and is_matrix and not heads and re.match(r"^\s*\d", line):
            heads = line.split()
        elif test and is_matrix and re.match(r"^\s*\d", line):
            row, *figures = line.split()
            for number, figure in enumerate(figures):
                if figure != "N/A":
                    found[test, row, heads[number]] = float(figure)
        elif match := re.match(r"SUM (\S+) (\d+\.\d+)", line):
            found[test, "sum", ""] = float(match[2])
            test, is_matrix, heads = "", False, []
    return found


def by_azures_shell(text):
    found, test, lines = {}, "", []
    for line in [*(one for one in text.splitlines() if one), "Running ."]:
        if line.startswith("Running"):
            for row in lines[1:]:
                for column, figure in enumerate(row.split()[1:]):
                    if "N/A" not in figure:
                        found[test, row.split()[0], str(column)] = figure
            test, lines = line.removeprefix("Running").replace(".", "").strip(), []
        if "memcpy" not in line and not line.startswith("Running"):
            lines.append(line)
    return found


def by_azures_monitor(root):
    found = {}
    for test in root["testcases"]:
        figures = []
        for figure in (one for row in test.get("bandwidth_matrix", ()) for one in row):
            assert isinstance(figure, str)
            if figure != "N/A" and float(figure) > 0:
                figures.append(float(figure))
        found[test["name"]] = min(figures) if test["status"] == "Passed" and figures else None
    return found


@pytest.fixture
def ours(monkeypatch):
    """nvbandwidth's output on eight devices, of which one cell of the first test is `status`."""

    def result(status):
        passed = rated(lambda name, cell, _: 40.0 + len(name) + int(cell.column))

        def of(cell, settings, table):
            if status == "pass" or (table.benchmark, cell.column) != (TESTS[0], "3"):
                return passed(cell, settings, table)
            return CellResult(
                cell.row, cell.column, cell.transfers, cell.report, status, "lost: rank 3 ended"
            )

        return of

    def run(status, words=""):
        MadeUp(result(status)).install(monkeypatch)
        return spoken("nvbandwidth", f"{WORDS} {words}", on="dgx-h200-8")

    return run


@pytest.mark.parametrize("text", [*LOGS, None], ids=["0.8", "0.10", "ours"])
def test_superbench_reads_every_figure(ours, text):
    text = text or ours("pass").stdout
    read = by_superbench(text)
    assert {at: figure for at, figure in read.items() if at[1] != "sum"} == plainly(text)
    assert [at[0] for at in read if at[1] == "sum"] == re.findall(r"(?m)^SUM (\S+) \d", text)
    assert len(plainly(text)) >= 4


@pytest.mark.parametrize(("status", "code"), [("fail", 1), ("error", 3), ("skip", 0)])
def test_superbench_reads_all_but_what_was_not_measured(ours, status, code):
    """A skipped cell is N/A and no failure, as there of pairs without peer access."""
    done, whole = ours(status), plainly(ours("pass").stdout)
    del whole[TESTS[0], "0", "3"]
    assert done.returncode == code
    read = by_superbench(done.stdout)
    assert {at: figure for at, figure in read.items() if at[1] != "sum"} == whole


@pytest.mark.parametrize("text", [LOGS[1], None], ids=["0.10", "ours"])
def test_azures_shell_reads_its_three_tests(ours, text):
    text = (text or ours("pass").stdout).partition("\nNOTE: The")[0]
    read = by_azures_shell(text)
    expected = {at: figure for at, figure in plainly(text).items() if at[0] in TESTS}
    assert len(expected) >= 14
    assert {at: float(figure) for at, figure in read.items() if at[0] in TESTS} == expected


@pytest.mark.parametrize("text", [(DATA / "nvbandwidth-2xH200.json").read_text(), None],
                         ids=["theirs", "ours"])  # fmt: skip
def test_azures_monitor_reads_the_least_of_each(ours, text):
    root = json.loads(text)["nvbandwidth"] if text else document(ours("pass", "-j"))
    read = by_azures_monitor(root)
    assert all(read[name] > 1 for name in TESTS)


@pytest.mark.parametrize(("status", "code"), [("fail", 1), ("error", 3)])
def test_azures_monitor_takes_no_figure_of_a_test_with_a_lost_cell(ours, status, code):
    done = ours(status, "-j")
    read = by_azures_monitor(document(done))
    assert (done.returncode, read[TESTS[0]]) == (code, None)
    assert all(read[name] for name in TESTS[1:])


@pytest.mark.parametrize("status", ["fail", "error", "skip"])
def test_azures_shell_reads_right_figures_beside_a_lost_one(ours, status):
    """It would not come to that: the exit code ends it."""
    text = ours(status).stdout.partition("\nNOTE: The")[0]
    read = {at: float(one) for at, one in by_azures_shell(text).items() if at[1].isdecimal()}
    assert read == plainly(text)
    assert len(read) == 8 + 8 + 56 - 1


def test_azures_monitor_asks_in_its_own_words(ours):
    """Its options: -i 10 and --format json."""
    assert by_azures_monitor(document(ours("pass", "-i 10 --format json")))[TESTS[0]] > 1
