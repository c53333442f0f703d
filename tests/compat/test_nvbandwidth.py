"""`linkgauge as nvbandwidth` is what scripts around nvbandwidth 0.8 expect."""

import json
import re
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat_kit import ONE_DEVICE, document, speak, where
from linkgauge.compat.base import UsageError
from linkgauge.compat.nvbandwidth_cases import CASES
from linkgauge.compat.nvbandwidth_json import styled
from linkgauge.compat.nvbandwidth_options import nvbandwidth_options
from nvbandwidth_reader import read_tests

MEASURED = (Path(__file__).parents[1] / "data" / "nvbandwidth-2xH200.json").read_text()
REAL = json.loads(MEASURED)["nvbandwidth"]
QUICK = ("-b", "1", "-i", "2")
BOTH_WAYS = "device_to_device_bidirectional_memcpy_read_ce"


@pytest.fixture
def nvbandwidth(capfd):
    def run(*arguments, on=None):
        return speak(capfd, "nvbandwidth", *map(str, arguments), on=on)

    return run


class TestText:
    def test_stands_as_the_tool_prints_it(self, nvbandwidth):
        done = nvbandwidth("-t", "host_to_device_memcpy_ce", on=where(ONE_DEVICE))
        assert done.code == 0
        head, _, rest = done.out.partition("Built from Git version: ")
        assert head == "nvbandwidth Version: v0.8\n"
        _, _, rest = rest.partition("\n")
        assert rest == (
            "\n"
            "CUDA Runtime Version: 0\n"
            "CUDA Driver Version: 0\n"
            "Driver Version: simulated\n"
            "\n"
            "simulated\n"
            "Device 0: Test Card (00000000:10:00)\n"
            "\n"
            "Running host_to_device_memcpy_ce.\n"
            "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n"
            "           0\n"
            " 0     20.00\n"
            "\n"
            "SUM host_to_device_memcpy_ce 20.00\n"
            "\n"
            "NOTE: The reported results may not reflect the full capabilities of the platform.\n"
            "Performance can vary with software drivers, hardware clocks, and system topology.\n"
            "\n"
        )

    def test_a_reader_of_lines_finds_every_test_with_its_matrix_and_sum(self, nvbandwidth):
        done = nvbandwidth(*QUICK)
        assert done.code == 0
        tests = read_tests(done.out)
        assert [test.name for test in tests] == [test["name"] for test in REAL["testcases"]]
        indices = [str(n) for n in range(8)]
        for test, real in zip(tests, REAL["testcases"], strict=True):
            assert test.tables[-1].heading == real["bandwidth_description"]
            square = len(real["bandwidth_matrix"]) > 1
            parts = 3 if "bidirectional" in test.name and square else 1
            assert len(test.tables) == len(test.summed) == parts
            for table, total in zip(test.tables, test.summed.values(), strict=True):
                assert table.columns == indices
                assert list(table.rows) == (indices if square else ["0"])
                figures = table.figures()
                assert len(figures) == (56 if square else 8)
                assert all(row != column for row, column in figures if square)
                assert sum(figures.values()) == pytest.approx(total, abs=0.005 * 57)

    def test_both_ways_between_devices_are_three_matrices_that_add_up(self, nvbandwidth):
        for name, parts in ((BOTH_WAYS, "Read"), (BOTH_WAYS.replace("read", "write"), "Write")):
            (test,) = read_tests(nvbandwidth(*QUICK, "-t", name).out)
            assert [table.heading.split()[-3] for table in test.tables] == [
                f"{parts}1", f"{parts}2", "Total",
            ]  # fmt: skip
            low = parts.lower()
            assert list(test.summed) == [f"{name}_{low}1", f"{name}_{low}2", f"{name}_total"]
            one, other, total = (table.figures() for table in test.tables)
            for place, figure in total.items():
                assert figure == pytest.approx(one[place] + other[place], abs=0.0151)

    def test_verbose_adds_each_sample_and_least_most_and_mean(self, nvbandwidth):
        quiet, done = (
            nvbandwidth("-b", "1", "-i", "3", "-t", "host_to_device_memcpy_ce", *more)
            for more in ((), ("-v",))
        )
        (test,) = read_tests(quiet.out)
        assert (test.samples, test.lines) == ([], {})
        (test,) = read_tests(done.out)
        by_device = {}
        for line in test.samples:
            match = re.fullmatch(r"Sample (\d): Host -> Device (\d): ([0-9]+\.[0-9]{2}) GB/s", line)
            by_device.setdefault(match[2], []).append(float(match[3]))
        figures = test.tables[0].figures()
        assert {column: sorted(found)[1] for column, found in by_device.items()} == {
            column: figure for (_, column), figure in figures.items()
        }
        key = "host_to_device_memcpy_ce"
        assert test.lines == {
            f"MIN {key}": min(figures.values()),
            f"MAX {key}": max(figures.values()),
            f"AVG {key}": pytest.approx(fmean(figures.values()), abs=0.0101),
        }

    def test_verbose_tells_of_every_transfer_that_counts(self, nvbandwidth):
        arguments = ("-v", "-b", "1", "-i", "1", "-t")
        (test,) = read_tests(nvbandwidth(*arguments, "all_to_one_write_ce").out)
        to_first = [line for line in test.samples if "-> Device 0" in line]
        assert len(to_first) == 7
        assert sum("Total Bandwidth" in line for line in test.samples) == 8
        (test,) = read_tests(nvbandwidth(*arguments, "all_to_host_memcpy_ce").out)
        assert len(test.samples) == 8
        assert all(re.match(r"Sample 0: Device \d -> Host: ", line) for line in test.samples)
        (test,) = read_tests(nvbandwidth(*arguments, "host_device_latency_sm").out)
        assert all(line.endswith(" ns") for line in test.samples)

    def test_performance_lines_stand_in_for_sums(self, nvbandwidth):
        out = nvbandwidth(*QUICK, "--perfFormatter", "-t", "0", "32").out
        assert re.search(r"^&&&& PERF host_to_device_memcpy_ce [0-9.]+ \+GB/s$", out, re.MULTILINE)
        assert re.search(r"^&&&& PERF host_device_latency_sm [0-9.]+ -ns$", out, re.MULTILINE)
        assert "SUM" not in out

    def test_a_small_buffer_is_remarked_on(self, nvbandwidth):
        assert "NOTE: You have chosen a buffer size" in nvbandwidth(*QUICK, "-t", "0").out
        whole = nvbandwidth("-i", "1", "-t", "0", on=where(ONE_DEVICE))
        assert "NOTE: You have chosen a buffer size" not in whole.out


class TestJson:
    def test_has_the_keys_of_the_real_one_and_their_types(self, nvbandwidth):
        done = nvbandwidth("-j", "-i", "1", on=where("dgx-h200-8"))
        assert done.code == 0
        ours = document(done)
        assert list(json.loads(done.out)) == ["nvbandwidth"]
        assert {key: type(value) for key, value in ours.items()} == {
            key: type(value) for key, value in REAL.items()
        }
        for test, real in zip(ours["testcases"], REAL["testcases"], strict=True):
            assert {key: type(value) for key, value in test.items()} == {
                key: type(value) for key, value in real.items()
            }
            for key in ("name", "status", "bandwidth_description"):
                assert test[key] == real[key]
            rows = len(real["bandwidth_matrix"])
            assert len(test["bandwidth_matrix"]) == (rows if rows == 1 else rows // 2 * 8)
            assert all(len(row) == 8 for row in test["bandwidth_matrix"])

    def test_figures_are_texts_of_six_digits_whose_sum_has_all(self, nvbandwidth):
        arguments = (*QUICK, "-j", "-v", "-t", "4", "6", "32")
        single, both, latency = document(nvbandwidth(*arguments))["testcases"]
        for test, last in ((single, 8), (both, 8), (latency, 1)):
            texts = [text for row in test["bandwidth_matrix"] for text in row if text != "N/A"]
            assert all(re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) for text in texts)
            assert all(len(text.replace(".", "").lstrip("0")) <= 6 for text in texts)
            figures = [
                float(text)
                for row in test["bandwidth_matrix"][-last:]
                for text in row
                if text != "N/A"
            ]
            assert sum(figures) == pytest.approx(test["sum"], rel=1e-4)
            assert test["min"] == pytest.approx(min(figures), rel=1e-5)
            assert test["max"] == pytest.approx(max(figures), rel=1e-5)
            assert test["average"] == pytest.approx(fmean(figures), rel=1e-4)
        assert len(both["bandwidth_matrix"]) == 24
        assert [row.index("N/A") for row in both["bandwidth_matrix"]] == [*range(8)] * 3

    def test_is_laid_out_as_the_real_one_to_the_byte(self):
        assert styled(json.loads(MEASURED)) + "\n\n" == MEASURED

    values = st.recursive(
        st.text() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner) | st.dictionaries(st.text('abc"\\é\n'), inner),
    )

    @given(values)
    def test_any_value_reads_back(self, value):
        assert json.loads(styled(value)) == value

    def test_a_small_buffer_is_a_warning(self, nvbandwidth):
        found = document(nvbandwidth("-j", *QUICK, "-t", "0"))
        assert found["warning"].startswith("NOTE: You have chosen a buffer size")

    def test_what_ends_the_run_is_its_error(self, nvbandwidth):
        done = nvbandwidth("-j", "-b", "4096", "-t", "0", on=where(ONE_DEVICE))
        assert done.code == 2
        assert "does not fit" in document(done)["error"]
        assert "testcases" not in document(done)


class TestList:
    def test_indices_and_names_are_the_tools(self, nvbandwidth):
        out = nvbandwidth("-l").out
        listed = re.findall(r"^(\d+), (\w+):$", out, re.MULTILINE)
        assert listed == [
            (str(index), test["name"]) for index, test in enumerate(REAL["testcases"])
        ]
        assert "Index, Name:\n\tDescription\n" in out
        assert len(re.findall(r"^\d+, \w+:\n(?:\t\S.*\n)+\n", out, re.MULTILINE)) == 35

    def test_measures_nothing(self, nvbandwidth):
        done = nvbandwidth("--list")
        assert (done.code, done.err) == (0, "")

    def test_help_shows_every_flag(self, nvbandwidth):
        done = nvbandwidth("--help")
        assert (done.code, done.err) == (0, "")
        flags = re.findall(r"^  (-\w) \[ (--\w+) \]", done.out, re.MULTILINE)
        assert [short for short, _ in flags] == "-h -b -l -t -p -v -s -d -i -m -j".split()
        assert ("-b", "--bufferSize") in flags


class TestChoice:
    def names(self, done):
        return [test.name for test in read_tests(done.out)]

    def test_by_name_or_index_in_the_order_given(self, nvbandwidth):
        done = nvbandwidth(*QUICK, "-t", "34", "host_to_device_memcpy_ce", "-t", "1")
        assert self.names(done) == [
            "device_local_copy", "host_to_device_memcpy_ce", "device_to_host_memcpy_ce",
        ]  # fmt: skip

    def test_by_prefix(self, nvbandwidth):
        done = nvbandwidth(*QUICK, "-p", "host_to_device", "device_local")
        assert self.names(done) == [
            "host_to_device_memcpy_ce", "host_to_device_bidirectional_memcpy_ce",
            "host_to_device_memcpy_sm", "host_to_device_bidirectional_memcpy_sm",
            "device_local_copy",
        ]  # fmt: skip

    def test_settings_are_the_tools_never_the_tuned_ones(self):
        settings = nvbandwidth_options(()).settings
        assert settings.sizes == (512 << 20,)
        assert (settings.samples, settings.loops, settings.verify) == (3, 16, True)
        engines = settings.engines
        assert (engines.tuned, engines.streams, engines.affinity) == (False, 1, True)
        assert (engines.kernel, engines.blocks, engines.threads) == (None, None, None)

    def test_flags_change_them(self):
        for arguments in (
            "-b 64 -i 5 -s -d --loopCount 4",
            "--bufferSize=64 --testSamples 5 -s true --disableAffinity true --loopCount=4",
            "--buf 64 -i5 -sd --loop 4",
        ):
            settings = nvbandwidth_options(arguments.split()).settings
            assert settings.sizes == (64 << 20,)
            assert (settings.samples, settings.loops, settings.verify) == (5, 4, False)
            assert not settings.engines.affinity

    def test_the_mean_stands_in_for_the_median(self, nvbandwidth):
        arguments = ("-v", "-b", "1", "-i", "4", "-m", "-t", "0")
        (test,) = read_tests(nvbandwidth(*arguments).out)
        samples = [float(s.split()[-2]) for s in test.samples if "Device 3:" in s]
        assert len(samples) == 4
        figure = test.tables[0].figures()["0", "3"]
        assert figure == pytest.approx(fmean(samples), abs=0.0101)


class TestTrouble:
    @pytest.mark.parametrize(
        ("arguments", "why"),
        [
            ("--bogus", "--bogus"),
            ("-x", "-x"),
            ("-b", "expected one argument"),
            ("-b 64M", "'64M'"),
            ("-b 0", "'0'"),
            ("-b -5", "-b"),
            ("-b 1 -b 2", "more than once"),
            ("-i 0", "'0'"),
            ("-i 99999999999999999999999999999999999999999", "is not a number"),
            ("-t", "expected at least one argument"),
            ("-t 0 -i", "expected one argument"),
            ("--test 0", "could match"),
            ("-s false", "'false'"),
            ("device_local_copy", "'device_local_copy'"),
            ("-v=1", "ignored explicit argument"),
        ],
    )
    def test_wrong_arguments_are_shown_with_the_help(self, nvbandwidth, arguments, why):
        done = nvbandwidth(*arguments.split())
        assert done.code == 1
        assert f"ERROR: Invalid Arguments \nnvbandwidth {arguments} :\n" in done.out
        assert "nvbandwidth CLI:" in done.out
        assert why in done.err
        assert "SIMULATED" not in done.err

    @given(
        st.lists(st.text(max_size=8) | st.sampled_from("-b -t -p -s -j -i true 1 --json".split()))
    )
    def test_any_arguments_are_read_or_refused(self, arguments):
        try:
            options = nvbandwidth_options(arguments)
        except UsageError as error:
            assert str(error)
        else:
            assert options.buffer_size >= 1
            assert set(options.testcase) | set(options.testcase_prefixes) <= set(arguments)

    def test_tests_and_prefixes_contradict_each_other(self, nvbandwidth):
        said = "You cannot specify both testcase and testcasePrefix options at the same time"
        done = nvbandwidth("-t", "0", "-p", "host")
        assert (done.code, done.err) == (1, said + "\n")
        done = nvbandwidth("-j", "-t", "0", "-p", "host")
        assert (done.code, document(done)["error"]) == (1, said)

    def test_a_prefix_of_nothing_is_refused(self, nvbandwidth):
        done = nvbandwidth("-p", "bogus")
        assert done.code == 1
        assert "prefixes did not match any testcases" in done.err

    def test_an_unknown_test_is_told_of_and_the_others_run(self, nvbandwidth):
        asked = ("-t", "35", "host_to_device_memcpy_ce", "bogus", *QUICK)
        done = nvbandwidth(*asked)
        assert done.code == 1
        assert [test.name for test in read_tests(done.out)] == ["host_to_device_memcpy_ce"]
        before, _, after = done.out.partition("Running")
        assert "ERROR: Testcase index 35 out of bound!\n" in before
        assert "ERROR: Testcase bogus not found!\n" in after
        done = nvbandwidth("-j", *asked)
        assert done.code == 1
        found = [(t["name"], t["status"]) for t in document(done)["testcases"]]
        assert found == [
            ("35", "Not Found"), ("host_to_device_memcpy_ce", "Passed"), ("bogus", "Not Found"),
        ]  # fmt: skip

    def test_nothing_known_is_nothing_measured(self, nvbandwidth):
        assert nvbandwidth("-t", "bogus").code == 1

    def test_what_needs_two_devices_is_waived_with_one(self, nvbandwidth):
        done = nvbandwidth(*QUICK, on=where(ONE_DEVICE))
        assert done.code == 0
        waived = re.findall(r"^Waived: (\w+): needs two devices", done.out, re.MULTILINE)
        ran = [test.name for test in read_tests(done.out)]
        assert {*waived, *ran} == {case.name for case in CASES}
        assert not re.search(r"^Waived: .*\n\n", done.out, re.MULTILINE)
        assert all("device_to_device" in name or "_one_" in name or "one_to" in name
                   for name in waived)  # fmt: skip
        done = nvbandwidth("-j", *QUICK, "-t", "4", on=where(ONE_DEVICE))
        assert done.code == 4  # nothing measured is never success
        (test,) = document(done)["testcases"]
        assert (test["status"], "bandwidth_matrix" in test) == ("Waived", False)

    def test_wrong_bytes_are_an_error_and_cost_their_cell_only(self, nvbandwidth):
        on = where("ppu-8", "flip sim:3 offset=54321")
        arguments = (*QUICK, "-t", "host_to_device_memcpy_ce", "device_to_host_memcpy_ce")
        done = nvbandwidth(*arguments, on=on)
        assert done.code == 1
        first, _ = read_tests(done.out)
        assert first.tables[0].rows["0"][3] == "N/A"
        assert len(first.tables[0].figures()) == 7
        assert "wrong at byte 54321" in done.out
        assert nvbandwidth(*arguments, "-s", on=on).code == 0
        test, _ = document(nvbandwidth("-j", *arguments, on=on))["testcases"]
        assert test["status"] == "Error"
        assert "wrong at byte 54321" in test["error"]
        assert test["bandwidth_matrix"][0][3] == "N/A"

    def test_a_crash_ends_with_a_code_of_its_own(self, nvbandwidth):
        on = where("ppu-8", "crash sim:0 cells=0")
        done = nvbandwidth(*QUICK, "-t", "0", "1", on=on)
        assert done.code == 3
        assert "Error: (0, 0): " in done.out
        assert len(read_tests(done.out)[1].tables[0].figures()) == 8

    def test_a_test_without_any_figure_has_no_matrix(self, nvbandwidth):
        on = where(ONE_DEVICE, "lost sim:0 cells=0")
        done = nvbandwidth(*QUICK, "-t", "0", on=on)
        assert done.code == 3
        assert "SUM" not in done.out
        assert "Running host_to_device_memcpy_ce.\nError: (0, 0): " in done.out
