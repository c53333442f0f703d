"""`linkgauge as nvbandwidth` and `as sailbandwidth` as mpirun starts them: the multinode tests."""

import re
import shlex
from pathlib import Path

import pytest

from compat_kit import document, speak
from linkgauge.benchmarks.multinode import MULTINODE
from linkgauge.compat.base import Where
from nvbandwidth_reader import read_examples, read_tests
from processes_kit import as_rank, of_processes, start

EXAMPLES = read_examples(
    (Path(__file__).parents[1] / "data" / "sailbandwidth-multinode.txt").read_text()
)
NAMES = [row.name for row in MULTINODE]
BETWEEN = "multinode_device_to_device_"


@pytest.fixture
def nvbandwidth(capfd):
    def run(*arguments):
        return speak(capfd, "nvbandwidth", *map(str, arguments))

    return run


def text_of(out):
    """The text between the header and the note at the end."""
    return out[out.index("Running ") : out.index("\nNOTE: The reported")]


class TestPage:
    """Each multi-process command of sailbandwidth's page, where the page's figures are measured."""

    @pytest.fixture
    def printed_figure(self):
        tables = {test.name: test.tables for _, printed in EXAMPLES for test in read_tests(printed)}

        def figure(name, cell, number):
            if "bidirectional" in name:
                return tables[name][number].figures()[cell.row, cell.column]
            return tables[name][0].figures()[cell.row, cell.column] / (
                len(cell.transfers) if cell.report == "sum" else 1
            )

        return figure

    @pytest.mark.parametrize(
        ("command", "printed"), EXAMPLES, ids=[command.split()[-1] for command, _ in EXAMPLES]
    )
    def test_is_printed_to_the_column(self, capfd, monkeypatch, printed_figure, command, printed):
        start(monkeypatch, of_processes(4), printed_figure)
        _, arguments = command.split(" ./sailbandwidth ")
        done = speak(capfd, "sailbandwidth", *shlex.split(arguments))
        assert done.code == 0
        ours = text_of(done.out)
        assert re.sub(r"\d", "9", ours).strip() == re.sub(r"\d", "9", printed).strip()
        for test, on_page in zip(read_tests(ours), read_tests(printed), strict=True):
            for table, expected in zip(test.tables, on_page.tables, strict=True):
                assert table.figures() == pytest.approx(expected.figures(), abs=0.011)
            assert test.summed == pytest.approx(on_page.summed, rel=1e-4)

    def test_says_that_the_headings_of_writes_say_read(self, capfd, monkeypatch):
        start(monkeypatch, of_processes(4))
        for kind, said in (
            ("write_ce", "say Read, as those of sailbandwidth do, but mean Write\n"),
            ("write_sm", ""),
        ):
            name = f"{BETWEEN}bidirectional_memcpy_{kind}"
            done = speak(capfd, "sailbandwidth", "-t", name)
            assert done.err == (f"{name}: its headings {said}" if said else "")


class TestText:
    def test_the_system_is_a_line_for_each_process(self, nvbandwidth, monkeypatch):
        start(monkeypatch, of_processes(4))
        out = nvbandwidth("-t", "47").out
        assert out[out.index("CUDA Runtime") : out.index("Running")] == (
            "CUDA Runtime Version: 13000\n"
            "CUDA Driver Version: 13000\n"
            "Driver Version: 580.1\n"
            "\n"
            "Process 0 (first): device 0: Fake Card X1 (00000000:10:00)\n"
            "Process 1 (first): device 1: Fake Card X1 (00000000:11:00)\n"
            "Process 2 (second): device 0: Fake Card X1 (00000000:10:00)\n"
            "Process 3 (second): device 1: Fake Card X1 (00000000:11:00)\n"
            "\n"
        )

    def test_a_host_whose_name_is_unknown_is_left_out(self, nvbandwidth, monkeypatch):
        start(monkeypatch, of_processes(2, named=False))
        assert "\nProcess 0: device 0: Fake Card X1 (" in nvbandwidth("-t", "47").out

    def test_bisection_has_a_row_for_each_pair_and_one_column(self, nvbandwidth, monkeypatch):
        start(monkeypatch, of_processes(4), lambda name, cell, _: 100.0 + int(cell.row[0]))
        assert text_of(nvbandwidth("-t", "multinode_bisect_write_ce").out) == (
            "Running multinode_bisect_write_ce.\n"
            "Bisect benchmarking, simultaneous write CE BW\n"
            "             0\n"
            "0->2    100.00\n"
            "1->3    101.00\n"
            "2->0    102.00\n"
            "3->1    103.00\n"
            "\n"
            "SUM multinode_bisect_write_ce 406.00\n"
        )

    def test_numbers_of_processes_are_as_wide_as_the_longest(self, nvbandwidth, monkeypatch):
        start(monkeypatch, of_processes(12))
        out = nvbandwidth("-t", "47").out
        assert "\nProcess  9 (second): device 3: " in out
        assert "\nProcess 10 (second): device 4: " in out
        assert "\n 3-> 9    100.00\n 4->10    100.00\n" in out

    def test_all_at_once_is_one_figure(self, nvbandwidth, monkeypatch):
        start(monkeypatch, of_processes(3), lambda *_: 10.0)
        assert text_of(nvbandwidth("-t", 45, 46).out) == (
            f"Running {BETWEEN}broadcast_one_to_all_sm.\n"
            "multicast SM GPU(column) -> All Gpus total bandwidth (GB/s)\n"
            "           0         1         2\n"
            " 0     10.00     10.00     10.00\n"
            "\n"
            f"SUM {BETWEEN}broadcast_one_to_all_sm 30.00\n"
            "\n"
            f"Running {BETWEEN}broadcast_all_to_all_sm.\n"
            "multicast SM All -> All Gpus total bandwidth (GB/s)\n"
            "           0\n"
            " 0     60.00\n"
            "\n"
            f"SUM {BETWEEN}broadcast_all_to_all_sm 60.00\n"
        )

    def test_verbose_lines_name_processes(self, nvbandwidth, monkeypatch):
        start(monkeypatch, of_processes(2))
        one_way, both = read_tests(nvbandwidth("-v", "-t", 35, 38).out)
        assert one_way.samples == [
            "Sample 0: Multinode node 1 -> Multinode node 0: 100.00 GB/s",
            "Sample 0: Multinode node 0 -> Multinode node 1: 100.00 GB/s",
        ]
        assert len(both.samples) == 4

    def test_headings_are_those_of_the_tool_wrong_ones_too(self, nvbandwidth, monkeypatch):
        start(monkeypatch, of_processes(2))
        done = nvbandwidth("-p", "multinode")
        headings = {
            test.name.removeprefix(BETWEEN): [table.heading for table in test.tables]
            for test in read_tests(done.out)
        }
        assert headings["memcpy_read_sm"] == ["memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)"]
        assert headings["memcpy_write_sm"] == ["memcpy SM GPU(row) <- GPU(column) bandwidth (GB/s)"]
        for name in ("read", "write"):
            assert headings[f"bidirectional_memcpy_{name}_ce"] == [
                f"memcpy CE CPU(row) <-> GPU(column) {part} bandwidth (GB/s)"
                for part in ("Read1", "Read2", "Total")
            ]
        assert headings["bidirectional_memcpy_write_sm"][0] == (
            "memcpy SM CPU(row) <-> GPU(column) Write1 bandwidth (GB/s)"
        )
        said = [line.split(": its headings say ") for line in done.err.splitlines()]
        assert {(name.removeprefix(BETWEEN), what.partition(",")[0]) for name, what in said} == {
            ("memcpy_read_sm", "memcpy CE"),
            ("bidirectional_memcpy_read_ce", "CPU(row)"),
            ("bidirectional_memcpy_write_ce", "CPU(row)"),
            ("bidirectional_memcpy_write_ce", "Read"),
            ("bidirectional_memcpy_read_sm", "CPU(row)"),
            ("bidirectional_memcpy_write_sm", "CPU(row)"),
        }


class TestJson:
    def test_has_the_devices_of_all_processes(self, nvbandwidth, monkeypatch):
        start(monkeypatch, of_processes(4))
        assert document(nvbandwidth("-j", "-t", "47"))["GPU Device list"] == [
            "0: Fake Card X1 (00000000:10:00): (first)",
            "1: Fake Card X1 (00000000:11:00): (first)",
            "2: Fake Card X1 (00000000:10:00): (second)",
            "3: Fake Card X1 (00000000:11:00): (second)",
        ]

    def test_has_rows_as_the_text_has(self, nvbandwidth, monkeypatch):
        start(monkeypatch, of_processes(2), lambda *_: 10.0)
        cases = document(nvbandwidth("-j", "-p", "multinode"))["testcases"]
        matrices = {case["name"].removeprefix(BETWEEN): case["bandwidth_matrix"] for case in cases}
        one_way = [["N/A", "10"], ["10", "N/A"]]
        assert matrices["memcpy_read_ce"] == one_way
        total = [["N/A", "20"], ["20", "N/A"]]
        assert matrices["bidirectional_memcpy_write_sm"] == one_way + one_way + total
        assert matrices["all_to_one_write_sm"] == [["10", "10"]]
        assert matrices["broadcast_all_to_all_sm"] == [["20"]]
        assert matrices["multinode_bisect_write_ce"] == [["10"], ["10"]]
        sums = {case["name"]: case["sum"] for case in cases}
        assert sums[f"{BETWEEN}bidirectional_memcpy_read_ce"] == 40.0

    def test_the_description_is_the_heading_of_the_text(self, nvbandwidth, monkeypatch):
        start(monkeypatch, of_processes(2))
        (case,) = document(nvbandwidth("-j", "-t", 38))["testcases"]
        assert case["bandwidth_description"] == (
            "memcpy CE CPU(row) <-> GPU(column) Total bandwidth (GB/s)"
        )


class TestChoice:
    def test_they_are_listed_after_those_of_one_process(self, nvbandwidth, monkeypatch):
        start(monkeypatch, of_processes(2))
        out = nvbandwidth("-l").out
        listed = re.findall(r"^(\d+), (\w+):$", out, re.MULTILINE)
        assert listed[35:] == [(str(35 + n), name) for n, name in enumerate(NAMES)]
        assert len(re.findall(r"^\d+, \w+:\n(?:\t\S.*\n)+\n", out, re.MULTILINE)) == 48

    def test_by_prefix_all_thirteen_in_order(self, nvbandwidth, monkeypatch):
        start(monkeypatch, of_processes(2))
        done = nvbandwidth("-p", "multinode")
        assert done.code == 0
        assert [test.name for test in read_tests(done.out)] == NAMES

    def test_an_index_beyond_them_is_not_there(self, nvbandwidth, monkeypatch):
        start(monkeypatch, of_processes(2))
        done = nvbandwidth("-t", 48, f"{BETWEEN}memcpy", 47)
        assert done.code == 1
        assert "ERROR: Testcase index 48 out of bound!\n" in done.out
        assert f"ERROR: Testcase {BETWEEN}memcpy not found!\n" in done.out

    def test_those_of_one_process_are_waived(self, nvbandwidth, monkeypatch):
        start(monkeypatch, of_processes(2))
        done = nvbandwidth()
        assert done.code == 0
        waived = re.findall(r"^Waived: \w+: (.*)$", done.out, re.MULTILINE)
        assert waived == ["needs one process: run it without mpirun"] * 35
        assert [test.name for test in read_tests(done.out)] == NAMES


class TestOptions:
    def test_local_copies_and_utilization_are_of_one_process(self, capfd, monkeypatch):
        start(monkeypatch, of_processes(2))
        arguments = ("--testLocalCopy", "--displayUR", "-t", NAMES[0])
        (test,) = read_tests(speak(capfd, "sailbandwidth", *arguments).out)
        assert [table.rows["0"] for table in test.tables] == [["N/A", "100.00"]]


class TestOtherProcesses:
    """mpirun starts all processes alike."""

    @pytest.mark.parametrize("arguments", [("-l",), ("-h",), ("--bogus",), ("-t", "47")])
    def test_print_nothing_of_what_the_first_prints(self, nvbandwidth, monkeypatch, arguments):
        start(monkeypatch, of_processes(2))
        first = nvbandwidth(*arguments)
        as_rank(monkeypatch, 1, 2)
        other = nvbandwidth(*arguments)
        assert first.out
        assert (other.code, other.out) == (first.code, "")


class TestTrouble:
    def test_what_failed_has_no_figure_but_its_row(self, nvbandwidth, monkeypatch):
        start(
            monkeypatch,
            of_processes(4),
            lambda name, cell, _: None if cell.row.startswith("1") else 100.0,
        )
        done = nvbandwidth("-t", "47")
        assert done.code == 3
        assert "Error: (1->3, 0): process 1 ended\n" in done.out
        assert "\n0->2    100.00\n1->3       N/A\n2->0    100.00\n" in done.out


class TestOneProcess:
    HINT = (
        " (multinode tests need a process for each device: mpirun -n 2 linkgauge as nvbandwidth {})"
    )

    def test_is_refused_with_what_to_do(self, nvbandwidth):
        done = nvbandwidth("-t", "multinode_bisect_write_ce")
        assert done.code == 1
        hint = self.HINT.format("-t multinode_bisect_write_ce")
        assert f"ERROR: Testcase multinode_bisect_write_ce not found!{hint}\n" in done.out
        done = nvbandwidth("-p", "multinode")
        assert done.code == 1
        assert done.err.endswith("any testcases" + self.HINT.format("-p multinode") + "\n")
        (test,) = document(nvbandwidth("-j", "-t", "multinode_bisect_write_ce"))["testcases"]
        assert (test["status"], test["error"].endswith(hint)) == ("Not Found", True)

    def test_is_advised_of_too_where_there_is_no_device(self, capfd):
        on = Where(backend="host")
        done = speak(capfd, "nvbandwidth", "-p", "multinode", on=on)
        assert done.code == 2
        assert done.err.endswith(self.HINT.format("-p multinode") + "\n")
        done = speak(capfd, "nvbandwidth", "-t", "0", on=on)
        assert "mpirun" not in done.err

    def test_lists_those_of_one_process_only(self, nvbandwidth):
        assert "multinode" not in nvbandwidth("-l").out
        assert "ERROR: Testcase index 35 out of bound!\n" in nvbandwidth("-t", 35).out
