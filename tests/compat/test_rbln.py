"""`linkgauge as rblnBandwidthLatencyTest` prints what the tool's manual page shows."""

import re
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat_kit import ONE_DEVICE, speak, where
from linkgauge.compat.base import UsageError
from linkgauge.compat.rbln import parse

QUIET = ("--skip_test_env_info",)
NAMES = (
    "RBLN_PERF_TEST_ALL",
    "RBLN_PERF_BANDWIDTH_TEST_ALL",
    "RBLN_PERF_LATENCY_TEST_ALL",
    "RBLN_PERF_BANDWIDTH_TEST",
    "RBLN_PERF_LATENCY_TEST",
    "RBLN_PERF_BIDIR_BANDWIDTH_TEST",
    "RBLN_PERF_PARALLEL_BANDWIDTH_TEST",
)
MOST = r"MAX (\d+\.\d\d), MIN (\d+\.\d\d), AVG (\d+\.\d\d)"


@pytest.fixture
def rbln(capfd):
    def run(line, on=None):
        return speak(
            capfd, "rblnBandwidthLatencyTest", *shlex.split(line), on=on or where("rbln-32")
        )

    return run


class Read:
    """What a script finds in the tool's output, by its definition on the manual page."""

    def __init__(self, text):
        lines = text.splitlines()
        self.banners = re.findall(r"^\[ +(\w+) \] : (\w+)$", text, re.MULTILINE)
        self.count, self.size = (
            re.findall(rf"^\[Measure {what} : (\w+)\]$", text, re.MULTILINE)
            for what in ("Iteration cnt", "Buffer Size")
        )
        self.paths = {
            (tag, path): tuple(map(float, figures))
            for tag, path, *figures in re.findall(
                rf"^\[([\w/]+)\] (.+?) : {MOST}$", text, re.MULTILINE
            )
        }
        self.latencies = {
            (one, other): float(time)
            for one, other, time in re.findall(
                r"^(rbln\d+) -> (rbln\d+) (\d+\.\d\d) \(us\)$", text, re.MULTILINE
            )
        }
        self.distances = self._table(lines, "P2P Connectivity Distance")
        self.matrix = {}
        heads = [n for n, line in enumerate(lines) if re.match(r"S \\+ D ", line)]
        for head in heads:
            columns = lines[head].split()[3:]
            for line in lines[head + 1 :]:
                if not re.match(r"HOST|rbln\d+ +\d+\.\d\d", line):
                    break
                row, *figures = line.split()
                assert len(figures) == len(columns)
                for column, figure in zip(columns, figures, strict=True):
                    self.matrix[row, column] = float(figure)

    @staticmethod
    def _table(lines, title):
        rows = {}
        for line in lines[lines.index(title) + 1 :] if title in lines else ():
            match = re.fullmatch(r"(rbln\d+)((?: +\d+)+)", line)
            if not match:
                break
            rows[match[1]] = [int(hops) for hops in match[2].split()]
        return rows


class TestPage:
    """Each command of the page as it stands there; its figures where a link is the limit."""

    def test_default(self, rbln):
        done = rbln("")
        assert done.code == 0
        assert done.err == "SIMULATED rbln-32\n"
        lines = done.out.splitlines()
        device = (
            "0000:05:00.0 NODE 0, rbln0, RBLN-CA25(rev-03), pciDevID: 0x1250, NUMA: 0, IOMMU: 3"
        )
        assert lines[:4] == [
            "CPU : AMD EPYC 9254 24-Core Processor, Vendor ID : AuthenticAMD",
            "Device :",
            "0000:00:01.1/03:00.0 PCI bridge: Broadcom / LSI PEX890xx PCIe Gen 5 Switch (rev b0)",
            f"    {device}",
        ]
        assert "Device Write bandwidth (GB/s)" in lines
        assert "Device P2P sync latency (us)" in lines
        read = Read(done.out)
        assert read.distances["rbln0"][:5] == [0, 4, 4, 4, 8]
        assert read.distances["rbln1"][:5] == [4, 0, 4, 4, 8]
        assert len(read.matrix) == 33 * 33
        printed = {
            ("HOST", "rbln0"): 50.91,
            ("HOST", "rbln1"): 50.72,
            ("rbln0", "HOST"): 59.56,
            ("rbln0", "rbln1"): 59.31,
        }
        for path, figure in printed.items():
            assert read.matrix[path] == pytest.approx(figure, rel=0.03)
        assert {read.matrix[name, name] for name in ("HOST", "rbln0", "rbln31")} == {0.0}
        assert len(read.latencies) == 32 * 31
        assert read.latencies["rbln0", "rbln1"] == pytest.approx(2.07, rel=0.03)
        assert read.banners == [("Run", NAMES[0]), ("PASS", NAMES[0])]

    def test_list(self, rbln):
        done = rbln("--test_list")
        assert done == (0, "\n".join(("List of tests:", *NAMES)) + "\n", "")

    def test_environment(self, rbln):
        done = rbln("--test_env_info")
        assert done.code == 0
        lines = done.out.splitlines()
        bridges = [line for line in lines if line.startswith("0000:")]
        assert len(bridges) == 8
        at = next(n for n, line in enumerate(lines) if "rbln30," in line)
        indent = " " * 35
        device = (
            "0000:ce:00.0 NODE 30, rbln30, RBLN-CA25(rev-03), pciDevID: 0x1250, NUMA: 1, IOMMU: 77"
        )
        link = "PCIe full bandwidth 64.0 GB/s (MAX: 64.0), PCIe Gen 5 (MAX: 5), 16 lane (MAX: 16)"
        assert lines[at : at + 3] == [
            f"    {device}",
            f"{indent}{link}",
            f"{indent}MaxPayload 512 bytes, MaxReadReq 512 bytes",
        ]
        assert "Run" not in done.out

    def test_bandwidth_of_a_pair(self, rbln):
        done = rbln(
            "--tc 3 --npu_id_list 0,1 --iteration_cnt 1 --test_size 1M --skip_test_env_info"
        )
        assert done.code == 0
        bar, rule = "=" * 78, "-" * 33
        head = [
            "This test will run with size (0x100000)",
            bar,
            "[      Run ] : RBLN_PERF_BANDWIDTH_TEST",
            bar,
            "",
            "[Measure Iteration cnt : 1]",
            "[Measure Buffer Size : 0x100000]",
            "",
            "P2P Connectivity Distance",
        ]
        lines = done.out.splitlines()
        assert lines[: len(head)] == head
        assert lines[len(head)].startswith("rbln0       0   4   4   4   8")
        tail = lines[lines.index(rule) - 1 :]
        assert [re.sub(r"\d+\.\d\d", "#", line) for line in tail] == [
            "",
            rule,
            "Device bandwidth (GB/s) *Write",
            rule,
            "[H2D] HOST -> rbln0 : MAX #, MIN #, AVG #",
            "[D2D] rbln0 -> rbln1 : MAX #, MIN #, AVG #",
            "[D2H] rbln1 -> HOST : MAX #, MIN #, AVG #",
            "",
            bar,
            "[     PASS ] : RBLN_PERF_BANDWIDTH_TEST",
            bar,
        ]
        # The start of a copy is the limit.
        averages = [average for _, _, average in Read(done.out).paths.values()]
        assert averages == pytest.approx([14.71, 10.29, 19.41], rel=0.03)

    def test_latency_of_a_pair(self, rbln):
        done = rbln("--tc 4 --npu_id_list 0,1 --skip_test_env_info")
        assert done.code == 0
        read = Read(done.out)
        assert (read.count, read.size) == (["1"], ["0x20000000"])
        assert list(read.latencies) == [("rbln0", "rbln1")]
        assert read.latencies["rbln0", "rbln1"] == pytest.approx(2.07, rel=0.03)
        assert "This test will run with size" not in done.out


class TestCases:
    @pytest.mark.parametrize("case", range(7))
    def test_every_case_passes_and_names_itself(self, rbln, case):
        done = rbln(f"--tc {case} --npu_id_list 0,1,2 --test_size 4M {QUIET[0]}")
        read = Read(done.out)
        assert done.code == 0
        assert read.banners == [("Run", NAMES[case]), ("PASS", NAMES[case])]
        assert read.matrix or read.latencies or read.paths

    def test_the_first_npu_is_paired_with_each_other_one(self, rbln):
        read = Read(rbln(f"--tc 3 --test_size 4M {QUIET[0]}").out)
        assert [path for tag, path in read.paths if tag == "D2D"] == [
            f"rbln0 -> rbln{other}" for other in range(1, 32)
        ]

    def test_another_source_is_paired_with_the_npus_of_the_list(self, rbln):
        read = Read(rbln(f"--tc 4 --npu_id_list 0,1 -n 5 {QUIET[0]}").out)
        assert list(read.latencies) == [("rbln5", "rbln0"), ("rbln5", "rbln1")]

    def test_both_ways_share_what_carries_both(self, rbln):
        alone = Read(rbln(f"--tc 3 --npu_id_list 0,1 {QUIET[0]}").out).paths
        both = Read(rbln(f"--tc 5 --npu_id_list 0,1 {QUIET[0]}").out).paths
        there, back = both["D2D", "rbln0 -> rbln1"], both["D2D", "rbln1 -> rbln0"]
        assert there[2] < alone["D2D", "rbln0 -> rbln1"][2]
        assert both["D2D", "rbln0 <-> rbln1"][2] == pytest.approx(there[2] + back[2], rel=0.02)
        assert ("H2D/D2H", "HOST <-> rbln1") in both

    def test_parallel_copies_share_the_uplink(self, rbln):
        read = Read(rbln(f"--tc 6 --npu_id_list 0,1,4,5 {QUIET[0]}").out).paths
        # rbln0 and rbln1 hang from one switch, rbln4 and rbln5 from another.
        assert read["H2D", "HOST -> rbln0"][2] == pytest.approx(50.91 / 2, rel=0.05)
        assert read["D2D", "rbln0 -> rbln1"][2] == pytest.approx(59.31, rel=0.03)
        assert read["D2D", "rbln4 -> rbln5"][2] == pytest.approx(59.31, rel=0.03)
        assert read["D2D", "TOTAL"][2] == pytest.approx(2 * 59.31, rel=0.03)

    def test_only_npus(self, rbln):
        read = Read(rbln(f"--only_d2d --tc 1 --npu_id_list 0,1 --test_size 4M {QUIET[0]}").out)
        assert {name for path in read.matrix for name in path} == {"rbln0", "rbln1"}
        read = Read(rbln(f"--only_d2d --tc 6 --npu_id_list 0,1 --test_size 4M {QUIET[0]}").out)
        assert {tag for tag, _ in read.paths} == {"D2D"}


class TestOptions:
    def test_iterations_are_summed_up(self, rbln):
        done = rbln(f"--tc 3 --npu_id_list 0,1 -i 5 --get_perf 2 {QUIET[0]}")
        read = Read(done.out)
        assert read.count == ["5"]
        most, least, mean = read.paths["D2D", "rbln0 -> rbln1"]
        assert least < mean < most
        line = r"^\[PERF\] \[D2D\] rbln0 -> rbln1 #(\d) : (\S+) \(us\)$"
        each = re.findall(line, done.out, re.MULTILINE)
        assert [number for number, _ in each] == list("01234")
        rates = [(512 << 20) / float(time) / 1e3 for _, time in each]
        assert max(rates) == pytest.approx(most, abs=0.006)
        assert sum(rates) / 5 == pytest.approx(mean, abs=0.006)

    def test_performance_of_all_iterations(self, rbln):
        done = rbln(f"--tc 4 --npu_id_list 0,1 --get_perf 1 {QUIET[0]}")
        assert "[PERF] [D2D] rbln0 -> rbln1 : average 2.0" in done.out

    def test_reads_are_pulled(self, rbln):
        done = rbln(f"--tc 3 --npu_id_list 0,1 -r 1 {QUIET[0]}")
        assert "Device bandwidth (GB/s) *Read" in done.out
        # The destination carries it out, and a read over this link is slower.
        figure = Read(done.out).paths["D2D", "rbln0 -> rbln1"][2]
        assert figure == pytest.approx(50.91, rel=0.03)

    @pytest.mark.parametrize(
        "options",
        ["--warmup", "--priority 4", "-f 1 -g 2", "--numa_node 1", "-t 20", "--data_pattern 0xA5"],
    )
    def test_others_are_taken(self, rbln, options):
        done = rbln(f"--tc 3 --npu_id_list 0,1 --test_size 4M {QUIET[0]} {options}")
        assert (done.code, done.err) == (0, "SIMULATED rbln-32\n")

    @pytest.mark.parametrize(
        ("value", "word"),
        [("0xA5", 0xA5A5A5A5A5A5A5A5), ("4096", 0x0000100000001000), ("0", 0)],
    )
    def test_the_data_pattern_is_repeated(self, value, word):
        assert parse(["--data_pattern", value]).pattern == word

    def test_help(self, rbln):
        for line in ("-h", "--tc 3 --help"):
            done = rbln(line)
            assert done.code == 0
            assert "--npu_id_list <list>" in done.out


class TestTrouble:
    @pytest.mark.parametrize(
        ("line", "says"),
        [
            ("--foo", "unrecognized arguments: --foo"),
            ("tc", "unrecognized arguments: tc"),
            ("--tc", "argument --tc: expected one argument"),
            ("--tc three", "argument --tc: 'three' is not a whole number"),
            ("--tc 7", "unknown test case 7: --test_list shows 0 to 6"),
            ("--tc -1", "unknown test case -1"),
            ("--test_size 4X", "--test_size: size '4X' is not understood"),
            ("--npu_id_list 0,,1", "--npu_id_list '0,,1': give numbers"),
            ("--npu_id_list ''", "--npu_id_list '': give numbers"),
            ("--npu_id_list 1,1", "NPU listed twice"),
            ("--npu_id_list 0,32", "no NPU 32"),
            ("--tc 3 -n 40", "no NPU 40"),
            ("--tc 4 --npu_id_list 3", "needs two"),
            ("--only_d2d --npu_id_list 3", "needs two"),
            ("-i 0", "--iteration_cnt 0: give 1 to"),
            ("-t 0", "--timeout 0: give 1 or more"),
            ("--get_perf 3", "--get_perf 3: give 0 to 2"),
            ("-r 2", "--hdma_read 2: give 0 to 1"),
            ("--priority 5", "--priority 5: give 0 to 4"),
            ("--data_pattern -1", "--data_pattern -1: give 0 to"),
            ("--test_env_info --skip_test_env_info", "contradict"),
            ("--test_env_info --tc 1", "leave out --tc"),
        ],
    )
    def test_what_is_wrong_is_said_and_fails(self, rbln, line, says):
        done = rbln(line)
        assert done.code == 1
        assert done.out == ""
        assert "rblnBandwidthLatencyTest: " in done.err
        assert says in done.err

    def test_a_wrong_byte_fails_the_test(self, rbln):
        done = rbln(f"--tc 3 --npu_id_list 0,1 {QUIET[0]}", on=where("rbln-32", "flip sim:1"))
        assert done.code == 1
        assert Read(done.out).banners[-1] == ("FAIL", NAMES[3])
        assert "sim:1 is wrong at byte 0" in done.err
        # What was measured is shown all the same.
        assert ("D2D", "rbln0 -> rbln1") in Read(done.out).paths

    def test_a_copy_that_never_ends_is_given_up(self, rbln):
        done = rbln(
            f"--tc 3 --npu_id_list 0,1 -t 1 {QUIET[0]}",
            on=where("rbln-32", "hang sim:1 cells=1"),
        )
        assert done.code == 3
        assert "[D2D] rbln0 -> rbln1 : N/A" in done.out
        assert Read(done.out).banners[-1] == ("FAIL", NAMES[3])
        assert ("D2H", "rbln1 -> HOST") in Read(done.out).paths

    def test_one_device_alone_is_measured_with_the_host(self, rbln):
        done = rbln(QUIET[0] + " --test_size 1M", on=where(ONE_DEVICE))
        read = Read(done.out)
        assert read.matrix["HOST", "rbln0"] > 0
        assert read.matrix["rbln0", "HOST"] > 0
        assert done.code == 0


@given(st.lists(st.text(max_size=8) | st.sampled_from(["--tc", "3", "-i", "--npu_id_list", "0,1"])))
def test_any_command_line_is_read_or_refused(arguments):
    try:
        options = parse(arguments)
    except UsageError as error:
        assert str(error)
    else:
        assert 0 <= options.case < len(NAMES)
        assert options.iterations > 0
