"""Readers of nccl-tests' output in public use read ours, and what nccl-tests printed as a control.

The expressions are those of
- SuperBench: microsoft/superbenchmark, superbench/benchmarks/micro_benchmarks/
  cuda_nccl_bw_performance.py (columns counted from the line's end, by the heads);
- Azure's health checks: Azure/azurehpc-health-checks, customTests/azure_nccl_allreduce.nhc (the
  first line with `bandwidth`, its sixth word; a line with `FAILED`);
- FlagPerf: FlagOpen/FlagPerf, base/toolkits/interconnect-MPI_intraserver/dcu/BW/main.sh (awk).
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

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
