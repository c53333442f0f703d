"""Readers of nccl-tests' output in public use read ours, and what nccl-tests printed as a control.

The expressions are those of
- SuperBench: microsoft/superbenchmark, superbench/benchmarks/micro_benchmarks/
  cuda_nccl_bw_performance.py (columns counted from the line's end, by the heads);
- Azure's health checks: Azure/azurehpc-health-checks, customTests/azure_nccl_allreduce.nhc (the
  first line with `bandwidth`, its sixth word; a line with `FAILED`);
- FlagPerf: FlagOpen/FlagPerf, base/toolkits/interconnect-MPI_intraserver/dcu/BW/main.sh (awk);
- PerfKit Benchmarker: GoogleCloudPlatform/PerfKitBenchmarker, perfkitbenchmarker/
  linux_benchmarks/nccl_benchmark.py;
- AWS: awslabs/awsome-distributed-ai, the health check 5-nccl-allreduce.sh (awk);
- Azure's cluster-health-monitor: pkg/nodecheckerrunner/checkers/gpu/nccl.go (JSON of -J).
"""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from collected_kit import collected, unmeasured
from compat_kit import MadeUp, spoken

TESTS = Path(__file__).parents[1]
BEGIN = "# nccl-tests version"


def texts():
    """Outputs by name: that of this in its transcript, and those that nccl-tests printed."""
    _, first, *_ = (TESTS / "transcripts/as/nccl-tests.txt").read_text().split("\n$ ")
    lines = [line[2:] for line in first.splitlines() if line.startswith("  ")]
    yield pytest.param("\n".join(lines), id="all_reduce_perf")
    for path in sorted((TESTS / "data").glob("nccl-tests-*.txt")):
        for block in path.read_text().split(BEGIN)[1:]:
            name = re.search(r"starting: (\w+)", block)[1]
            yield pytest.param(BEGIN + block, id=f"{path.stem}-{name}")


EACH = pytest.mark.parametrize("text", [*texts()])


def plainly(text):
    """What stands in the columns, by their places: size and both sides' time, algbw and busbw."""
    found = []
    for line in text.splitlines():
        if line and not line.startswith("#"):
            places = [(0, 12), (52, 61), (61, 69), (69, 77), (85, 94), (94, 102), (102, 110)]
            found.append(tuple(float(line[start:end]) for start, end in places))
    return found


def by_superbench(text, *, in_place):
    lines = text.splitlines()
    (head,) = (at for at, line in enumerate(lines) if "out-of-place" in line)
    (end,) = (at for at, line in enumerate(lines) if "Out of bounds values" in line)
    names = None
    found = []
    for line in lines[head + 1 : end]:
        if "time" in line and "busbw" in line:
            names = re.sub(r" +", " ", line[1:].strip(" ")).split(" ")
            break
    first = names.index("size")

    def place(name):
        if in_place:
            return -1 - names[::-1].index(name)
        return names.index(name) - len(names)

    for line in lines[head + 1 : end]:
        words = re.sub(r" +", " ", line.strip(" ")).split(" ")
        if re.match(r"\d+", words[0]) and int(words[first]) != 0:
            figures = (float(words[place(name)]) for name in ("time", "algbw", "busbw"))
            found.append((int(words[first]), *figures))
    return found


@EACH
@pytest.mark.parametrize("in_place", [False, True])
def test_superbench_reads_every_size_of_both_sides(text, in_place):
    side = slice(4, 7) if in_place else slice(1, 4)
    expected = [(line[0], *line[side]) for line in plainly(text) if line[0]]
    assert by_superbench(text, in_place=in_place) == expected
    assert len(expected) >= 4


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@EACH
def test_azures_health_check_as_its_shell_does_it(text):
    script = r"""
IFS=$'\n'; lines=( $(cat) ); IFS=$' \t\n'
for ((i=0; i<${#lines[*]}; i++)); do
    if [[ "${lines[$i]//bandwidth}" != "${lines[$i]}" ]]; then words=( ${lines[$i]} ); break; fi
done
echo "${words[5]}"
"""
    assert shell(script, text) == re.search(r"Avg bus bandwidth +: (\S+)", text)[1]


@pytest.mark.skipif(shutil.which("awk") is None, reason="needs awk")
@EACH
def test_flagperf_reads_the_average(text):
    script = """grep "# Avg bus bandwidth" | awk '{print $NF}'"""
    assert shell(script, text) == re.search(r"Avg bus bandwidth +: (\S+)", text)[1]


def shell(script, text):
    done = subprocess.run(
        ["bash", "-c", script], input=text, capture_output=True, text=True, check=True, timeout=20
    )
    return done.stdout.strip()


PERFKIT_SAMPLE = re.compile(
    r"# nThread (?P<nThread>\d+) nGpus (?P<nGpus>\d+) minBytes (?P<minBytes>\d+) "
    r"maxBytes (?P<maxBytes>\d+) step: (?P<step>\S+) warmup iters: (?P<warmup_iters>\d+) "
    r"iters: (?P<iters>\d+) agg iters: (?P<agg_iters>\d+) validation: (?P<validation>\d+) "
    r"graph: (?P<graph>\d+)\s*"
)
PERFKIT_ROW = re.compile(
    r"^\s*(\d+)\s+(\d+)\s+(\w+)\s+[^1-9]+-?\d+\s+"
    + r"\s+".join([r"(\d+(?:\.\d+)?)"] * 3 + [r"(\S+)"] + [r"(\d+(?:\.\d+)?)"] * 3 + [r"(\S+)"]),
    re.MULTILINE,
)
PERFKIT_MEAN = re.compile(r"Avg bus bandwidth\s+: ([0-9\.]+)")
AWS_CHECK = r"""awk -v expected=8 -v end=%d '
    $1 ~ /^[0-9]+$/ {
        if (NF != 13 || $1 != expected) bad++
        if ($9 !~ /^[0-9]+$/ || $13 !~ /^[0-9]+$/ || $9 != 0 || $13 != 0) bad++
        expected *= %d
    }
    END {print (expected == end && bad == 0) ? "whole" : "not"}'"""
AWS_BEST = (
    r"""awk '$1 ~ /^[0-9]+$/ && NF == 13 {if ($8 > m) m=$8; if ($12 > m) m=$12} END {print m+0}'"""
)


@EACH
def test_perfkit_reads_every_size_of_both_sides(text):
    assert PERFKIT_SAMPLE.search(text)
    read = [
        (int(row[0]), *map(float, row[3:6]), *map(float, row[7:10]))
        for row in PERFKIT_ROW.findall(text)
    ]
    assert read == plainly(text)
    assert len(PERFKIT_MEAN.findall(text)) == 1


@pytest.mark.skipif(shutil.which("awk") is None, reason="needs awk")
@EACH
def test_aws_reads_the_best_of_both_sides(text):
    if "N/A" not in text:  # where elements are checked on both sides
        best = max(max(line[3], line[6]) for line in plainly(text))
        assert float(shell(AWS_BEST, text)) == pytest.approx(best, rel=1e-5)  # awk's own digits


@pytest.fixture
def printed(monkeypatch, tmp_path):
    """What all_reduce_perf prints of sizes 8 to 2048 where one cell comes to a status, and its
    JSON."""

    def run(status):
        def change(cell, result):
            if status == "pass" or (cell.column, cell.operation.in_place) != ("128 B", False):
                return result
            if status == "fail":
                return replace(result, status="fail", reason="wrong elements", wrong=3)
            return unmeasured(cell, status, "lost")

        MadeUp(collected(change=change)).install(monkeypatch)
        file = tmp_path / f"{status}.json"
        words = f"-b 8 -e 2K -f 4 -g 8 -J {file}"
        done = spoken("all_reduce_perf", words, on="dgx-h200-8")
        return done, json.loads(file.read_text())

    return run


def monitored(report):
    """The verdict of Azure's monitor without a limit: what it says before the exit code counts."""
    if not report.get("results"):
        return "no report"
    if report.get("out_of_bounds", {}).get("count", 0) > 0:
        return "wrong"
    return float(report.get("average_bus_bandwidth", {}).get("bandwidth", 0.0))


@pytest.mark.skipif(shutil.which("awk") is None, reason="needs awk")
@pytest.mark.parametrize(
    ("status", "code", "aws", "monitor"),
    [("pass", 0, "whole", None), ("fail", 1, "not", "wrong"), ("error", 3, "not", 0.0),
     ("skip", 3, "not", 0.0)],
)  # fmt: skip
def test_with_one_cell_lost_none_takes_the_rest_for_the_whole(printed, status, code, aws, monitor):
    done, report = printed(status)
    assert done.returncode == code
    assert shell(AWS_CHECK % (8192, 4), done.stdout) == aws
    assert len(PERFKIT_ROW.findall(done.stdout)) == (5 if status in ("pass", "fail") else 4)
    assert len(PERFKIT_MEAN.findall(done.stdout)) == (status in ("pass", "fail"))
    assert ("FAILED" in done.stdout) == (status == "fail")
    if monitor is not None:
        assert monitored(report) == monitor
    else:
        assert monitored(report) == pytest.approx(float(PERFKIT_MEAN.search(done.stdout)[1]), 1e-4)
