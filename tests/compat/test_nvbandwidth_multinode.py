"""`linkgauge as nvbandwidth` and `as sailbandwidth` as mpirun starts them: the multinode tests."""

import re
from pathlib import Path

import pytest

from compat_kit import MadeUp, as_rank, document, of_processes, rated, spoken
from nvbandwidth_reader import read_examples, read_tests

EXAMPLES = read_examples(
    (Path(__file__).parents[1] / "data" / "sailbandwidth-multinode.txt").read_text()
)
BETWEEN = "multinode_device_to_device_"
OLD = "--emulate 0.8"


@pytest.fixture
def start(monkeypatch):
    """The tool, on so many processes whose transfers have these rates."""

    def run(count, tool, words, figure=lambda *_: 100.0, rank=0):
        as_rank(monkeypatch, rank, count)
        MadeUp(rated(figure)).install(monkeypatch, of_processes(count))
        return spoken(tool, words, on=None)

    return run


def text_of(out):
    """The text between the header and the note at the end."""
    return out[out.index("Running ") : out.index("\nNOTE: The reported")]


TABLES = {test.name: test.tables for _, printed in EXAMPLES for test in read_tests(printed)}


def printed_figure(name, cell, number):
    if "bidirectional" in name:
        return TABLES[name][number].figures()[cell.row, cell.column]
    return TABLES[name][0].figures()[cell.row, cell.column] / (
        len(cell.transfers) if cell.report == "sum" else 1
    )


@pytest.mark.parametrize(
    ("command", "printed"), EXAMPLES, ids=[command.split()[-1] for command, _ in EXAMPLES]
)
def test_is_printed_to_the_column_as_on_the_page(start, command, printed):
    _, arguments = command.split(" ./sailbandwidth ")
    done = start(4, "sailbandwidth", arguments, printed_figure)
    assert done.returncode == 0
    ours = text_of(done.stdout)
    assert re.sub(r"\d", "9", ours).strip() == re.sub(r"\d", "9", printed).strip()
    for test, on_page in zip(read_tests(ours), read_tests(printed), strict=True):
        for table, expected in zip(test.tables, on_page.tables, strict=True):
            assert table.figures() == pytest.approx(expected.figures(), abs=0.011)
        assert test.summed == pytest.approx(on_page.summed, rel=1e-4)


def test_the_system_is_a_line_for_each_process(start):
    out = start(12, "nvbandwidth", f"{OLD} -t 47").stdout
    assert "Driver Version: 580.1\n\nProcess  0 (first.example): device 0: Fake Card X1 (0" in out
    assert "\nProcess 10 (second.example): device 4: Fake Card X1 (00000000:14:00)\n" in out
    assert "\n 3-> 9    100.00\n 4->10    100.00\n" in out
    found = document(start(4, "nvbandwidth", f"{OLD} -j -t 47"))
    assert found["GPU Device list"][2] == "2: Fake Card X1 (00000000:10:00): (second.example)"


def test_each_shape_has_its_rows_in_text_and_json(start):
    out = start(3, "nvbandwidth", f"{OLD} -t 45 46", lambda *_: 10.0).stdout
    assert read_tests(out)[0].tables[0].rows == {"0": ["10.00"] * 3}
    assert "total bandwidth (GB/s)\n           0\n 0     60.00\n" in out
    cases = document(start(2, "nvbandwidth", "-j -p multinode", lambda *_: 10.0))["testcases"]
    matrices = {case["name"].removeprefix(BETWEEN): case["bandwidth_matrix"] for case in cases}
    one_way = [["N/A", "10"], ["10", "N/A"]]
    assert matrices["memcpy_read_ce"] == one_way
    total = [["N/A", "20"], ["20", "N/A"]]
    assert matrices["bidirectional_memcpy_write_sm"] == one_way + one_way + total
    assert matrices["all_to_one_write_sm"] == [["10", "10"]]
    assert matrices["broadcast_all_to_all_sm"] == [["20"]]
    assert matrices["multinode_bisect_write_ce"] == [["10"], ["10"]]


def test_wrong_headings_of_the_tool_are_kept_and_said(start):
    done = start(2, "nvbandwidth", "-p multinode")
    tests = {test.name.removeprefix(BETWEEN): test.tables for test in read_tests(done.stdout)}
    assert (
        tests["memcpy_read_sm"][0].heading == "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)"
    )
    said = [line.split(": its headings say ") for line in done.stderr.splitlines()]
    assert {(name.removeprefix(BETWEEN), what.partition(",")[0]) for name, what in said} == {
        ("memcpy_read_sm", "memcpy CE"),
        ("bidirectional_memcpy_read_ce", "CPU(row)"),
        ("bidirectional_memcpy_write_ce", "CPU(row)"),
        ("bidirectional_memcpy_write_ce", "Read"),
        ("bidirectional_memcpy_read_sm", "CPU(row)"),
        ("bidirectional_memcpy_write_sm", "CPU(row)"),
    }


@pytest.mark.parametrize(("words", "alone"), [(OLD, 35), ("", 44)])
def test_they_follow_those_of_one_process_which_are_waived(start, words, alone):
    listed = re.findall(
        r"^(\d+), (\w+):$", start(2, "nvbandwidth", f"{words} -l").stdout, re.MULTILINE
    )
    assert [int(number) for number, _ in listed] == list(range(alone + 13))
    done = start(2, "nvbandwidth", words)
    assert done.returncode == 0
    waived = re.findall(r"^Waived: \w+: (.*)$", done.stdout, re.MULTILINE)
    assert waived == ["needs one process: run it without mpirun"] * alone
    ran = [test.name for test in read_tests(done.stdout)]
    assert ran == [name for _, name in listed[alone:]]


@pytest.mark.parametrize("words", ["-l", "-h", "-t 47"])
def test_other_processes_print_nothing_of_what_the_first_prints(start, words):
    first, other = (start(2, "nvbandwidth", words, rank=rank) for rank in (0, 1))
    assert first.stdout
    assert (other.returncode, other.stdout) == (first.returncode, "")


def test_what_failed_has_no_figure_but_its_row(start):
    done = start(
        4, "nvbandwidth", f"{OLD} -t 47", lambda _, cell, __: None if cell.row[0] == "1" else 1e2
    )
    assert done.returncode == 3
    assert "Error: (1->3, 0): process 1 ended\n" in done.stdout
    assert "\n0->2    100.00\n1->3       N/A\n2->0    100.00\n" in done.stdout


def test_local_copies_and_utilization_are_of_one_process(start):
    done = start(2, "sailbandwidth", f"--testLocalCopy --displayUR -t {BETWEEN}memcpy_read_ce")
    (test,) = read_tests(done.stdout)
    assert [table.rows["0"] for table in test.tables] == [["N/A", "100.00"]]
