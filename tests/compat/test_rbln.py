"""`linkgauge as rblnBandwidthLatencyTest` prints what the tool's manual page shows."""

import re

import pytest

from compat_kit import spoken

QUIET = "--skip_test_env_info"
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


def rbln(words="", on="rbln-32", **more):
    return spoken("rblnBandwidthLatencyTest", words, on=on, **more)


class Read:
    """What a script finds in the tool's output, by its definition on the manual page."""

    def __init__(self, done):
        text = done.stdout
        self.banners = re.findall(r"^\[ +(\w+) \] : (\w+)$", text, re.MULTILINE)
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
        self.matrix = {}
        lines = text.splitlines()
        for head in (n for n, line in enumerate(lines) if re.match(r"S \\+ D ", line)):
            columns = lines[head].split()[3:]
            for line in lines[head + 1 :]:
                if not re.match(r"HOST|rbln\d+ +\d+\.\d\d", line):
                    break
                row, *figures = line.split()
                for column, figure in zip(columns, figures, strict=True):
                    self.matrix[row, column] = float(figure)


def test_which_npus_are_paired():
    read = Read(rbln(f"--tc 3 --test_size 4M {QUIET}"))
    assert [path for tag, path in read.paths if tag == "D2D"] == [
        f"rbln0 -> rbln{other}" for other in range(1, 32)
    ]
    read = Read(rbln(f"--tc 4 --npu_id_list 0,1 -n 5 {QUIET}"))
    assert list(read.latencies) == [("rbln5", "rbln0"), ("rbln5", "rbln1")]
    read = Read(rbln(f"--only_d2d --tc 1 --npu_id_list 0,1 --test_size 4M {QUIET}"))
    assert {name for path in read.matrix for name in path} == {"rbln0", "rbln1"}
    read = Read(rbln(f"--only_d2d --tc 6 --npu_id_list 0,1 --test_size 4M {QUIET}"))
    assert {tag for tag, _ in read.paths} == {"D2D"}


@pytest.mark.parametrize(
    ("fault", "options", "code", "there"),
    [
        ("flip sim:1", "", 1, ("D2D", "rbln0 -> rbln1")),
        ("hang sim:1 cells=1", "-t 1", 3, ("D2H", "rbln1 -> HOST")),
    ],
)
def test_what_goes_wrong_fails_the_test_and_the_rest_is_shown(fault, options, code, there):
    done = rbln(f"--tc 3 --npu_id_list 0,1 {options} {QUIET}", faults=[fault])
    assert done.returncode == code
    assert Read(done).banners[-1] == ("FAIL", NAMES[3])
    assert there in Read(done).paths
