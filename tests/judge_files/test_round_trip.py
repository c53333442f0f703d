"""What a tool prints is read back to what was measured, whatever stands around it."""

import math
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from command_kit import called
from linkgauge.model.operations.collective import COLLECTIVE_NAMES
from linkgauge.rooms.judge_files.judging import run_of_texts
from linkgauge.rooms.judge_files.readers import read_text
from reported_kit import compared, recorded

TOOLS = {
    "nvbandwidth": ("dgx-h200-8", "nvbandwidth", "-t", "0", "1", "2", "4", "7", "22", "34"),
    "nvbandwidth-json": ("dgx-h200-8", "nvbandwidth", "-j", "-t", "0", "6", "32", "33"),
    "sailbandwidth": ("ppu-2x2", "sailbandwidth", "-t", "0", "4", "20"),
    "nccl-tests": ("dgx-h200-8", "all_reduce_perf", "-b", "1M", "-e", "1G", "-f", "32", "-g", "8"),
    "sendrecv": ("dgx-h200-8", "sendrecv_perf", "-b", "1M", "-e", "64M", "-f", "8", "-g", "2"),
    "reduce": ("dgx-h200-8", "reduce_perf", "-b", "64M", "-e", "64M", "-g", "4"),
    "p2pBandwidthLatencyTest": ("islands-2x4", "p2pBandwidthLatencyTest", "--p2p_read"),
    "bandwidthTest": ("ppu-2x2", "bandwidthTest"),
    "bandwidthTest-csv": ("ppu-2x2", "bandwidthTest", "--csv"),
    "gc-hosttraffictest": ("ppu-2x2", "gc-hosttraffictest", "-d", "0", "-i", "1000"),
    "gc-hosttraffictest-json": (
        "ppu-2x2",
        "gc-hosttraffictest",
        "-d",
        "0",
        "-j",
        "--tile",
        "-i",
        "1000",
    ),
    "stream": (None, "stream", "-DSTREAM_ARRAY_SIZE=200000"),
    "sysbench": (None, "sysbench", "cpu", "--time=1", "run"),
}
"""By name, a machine (none: this one) and a command line."""
PRINTED = Path(__file__).parents[1] / "data/judge/printed"
MEASURED = yaml.safe_load((PRINTED / "measured.yml").read_text())
"""By kept text, the machine and what was measured."""


@pytest.fixture(scope="module", params=[*TOOLS, *MEASURED])
def printed(request):
    """What a tool printed, and the medians of the cells that it measured, by their transfers.
    STREAM prints the best of its runs."""
    if kept := MEASURED.get(request.param):
        text = (PRINTED / request.param).read_text()
        return kept["machine"], text, dict(map(_kept, kept["measured"].items()))
    machine, *words = TOOLS[request.param]
    done, known = recorded(machine, words)
    assert done.returncode == 0, done.stderr
    return machine, done.stdout, known


def _kept(measured):
    transfers, cells = measured
    figures = [{name.removeprefix("all"): rate * 1e9 for name, rate in cell.items()}
               for cell in cells]  # fmt: skip
    return (*transfers.split(" & "), ""), figures


def _figures(text, machine):
    run = run_of_texts(read_text("log", text), machine, "default")
    return run, [(result, cell) for result in run.results for cell in result.cells]


def test_figures_are_those_that_were_measured(printed):
    machine, text, known = printed
    assert compared(_figures(text, machine)[0], known)


PREFIXES = ("", "0: ", " 0: ", "node-17: ", "[1,0]<stdout>: ", "[pod/nccl-0/main] ", "> ",
            "2026-01-02T03:04:05.678Z ")  # fmt: skip
NOISE = (
    "node1:123:456 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via P2P/CUMEM",
    "warning: something else 12 13",
    "$ ls",
    "",
)


@pytest.fixture(scope="module")
def plain(printed):
    """The figures of the text alone."""
    machine, text, _ = printed
    return [cell.samples for _, cell in _figures(text, machine)[1]]


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.sampled_from(PREFIXES), st.booleans(), st.sampled_from(("\n", "\r\n")), st.lists(
    st.sampled_from(NOISE), max_size=3))  # fmt: skip
def test_what_stands_around_changes_nothing(printed, plain, prefix, coloured, end, noise):
    machine, text, _ = printed
    lines = [*noise, *text.splitlines(), *noise]
    if coloured:
        lines = [f"\x1b[32m{line}\x1b[0m" for line in lines]
    around = end.join(prefix + line for line in lines)
    assert [cell.samples for _, cell in _figures(around, machine)[1]] == plain


@pytest.mark.parametrize("form", ["csv", "json"])
@pytest.mark.parametrize("name", COLLECTIVE_NAMES)
def test_the_file_of_rccl_tests_tells_what_the_text_tells(tmp_path, name, form):
    file = tmp_path / "lines"
    words = "-b", "1M", "-e", "64M", "-f", "8", "-g", "4", "-Z", form, "-X", file
    done = called("as", "--machine", "dgx-h200-8", f"{name}_perf", *words)
    assert done.returncode == 0, done.stderr
    sides = [
        {(cell.operation, cell.column): cell.summary.median for _, cell in _figures(text, None)[1]}
        for text in (done.stdout, file.read_text())
    ]
    assert sides[0].keys() == sides[1].keys()
    assert len(sides[0]) == (3 if name in ("alltoall", "sendrecv") else 6)  # in place: unchecked
    for place, seconds in sides[0].items():
        assert math.isclose(seconds, sides[1][place], rel_tol=6e-3)
