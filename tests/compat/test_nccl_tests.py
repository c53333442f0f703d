"""`linkgauge as all_reduce_perf` and its siblings print what nccl-tests does."""

import json
import os
import re
from pathlib import Path

import pytest

from collected_kit import Fake, unmeasured, with_wrong
from compat_kit import ONE_DEVICE, speak, where
from linkgauge.compat import nccl_tests as tests
from linkgauge.compat.nccl_tests_cases import split_of
from linkgauge.compat.nccl_tests_options import Unable
from report.test_output import compare

GOLDEN = Path(__file__).parent / "golden"
MEASURED = Path(__file__).parents[1] / "data"
BEGIN = "# nccl-tests version"
SMALL = ("-b", "8", "-e", "8M", "-f", "32")


@pytest.fixture
def perf(capfd, monkeypatch):
    for name in ("NCCL_TESTS_DEVICE", "NCCL_TESTS_SPLIT", "NCCL_TESTS_SPLIT_MASK",
                 "NCCL_TESTS_MIN_BW"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)

    def run(name, *arguments, on="dgx-h200-8", fake=None):
        monkeypatch.setattr(tests, "measure", fake or Fake())
        return speak(capfd, name, *arguments, on=where(on))

    return run


def rows(out):
    """The figures of each line: what stands between the heads and the footer."""
    return [line.split() for line in out.splitlines() if line and not line.startswith("#")]


def layout(out):
    """Where the figures of each line end."""
    lines = [line for line in out.splitlines() if line and not line.startswith("#")]
    return [[found.end() for found in re.finditer(r"\S+", line)] for line in lines]


def golden(name, out):
    compare(str(GOLDEN / name), re.sub(r"Pid +\d+", "Pid   1911", out))


@pytest.mark.parametrize(
    ("name", "devices"),
    [("all_reduce", 2), ("all_gather", 4), ("reduce", 8), ("alltoall", 8), ("sendrecv", 2),
     ("hypercube", 4)],
)  # fmt: skip
def test_the_text_of_each_collective(perf, name, devices):
    done = perf(f"{name}_perf", *SMALL, "-g", str(devices))
    assert (done.code, done.err) == (0, "SIMULATED dgx-h200-8\n")
    golden(f"{name}_perf.txt", done.out)


def test_all_that_a_header_may_say(perf):
    options = ("-z3", "-I", "1", "-K", "2", "-p1", "-b1M", "-e", "2M", "-i", "1M", "-c", "0")
    done = perf("all_reduce_perf", *options, "-t", "2", "-g", "2", "-N", "2", "-m", "2")
    assert done.code == 0
    golden("all_reduce_perf_more.txt", done.out)


def test_timestamps_stand_at_the_end(perf):
    done = perf("all_reduce_perf", "-g2", "-S1")
    (line,) = [line for line in done.out.splitlines() if not line.startswith("#") and line]
    assert re.search(r"0  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d$", line)
    assert "  #wrong           timestamp\n" in done.out
    assert "%Y-%m-%d %H:%M:%S\n" in done.out


def blocks():
    """What nccl-tests printed on two and four H200s."""
    for ranks in (2, 4):
        text = (MEASURED / f"nccl-tests-{ranks}xH200.txt").read_text()
        for block in text.split(BEGIN)[1:]:
            name = re.search("starting: (.*)", block)[1]
            yield pytest.param(ranks, BEGIN + block, id=f"{ranks}-{name}")


@pytest.mark.parametrize(("ranks", "block"), [*blocks()])
def test_given_the_times_of_h200s_it_prints_what_was_printed_there(perf, ranks, block):
    figures = rows(block)
    program = re.search(r"starting: (\w+)", block)[1]
    most = re.search(r"maxBytes (\d+)", block)[1]
    times = {}
    for at, line in enumerate(figures):
        times[8 << 2 * at] = (float(line[-8]) / 1e6, float(line[-4]) / 1e6)
    fake = Fake(lambda cell, size, _: times[size][cell.operation.in_place])
    arguments = ("-g", str(ranks), "-b", "8", "-e", str(8 << 2 * (len(figures) - 1)), "-f", "4")
    done = perf(program, *arguments, fake=fake)
    own = done.out.splitlines()
    theirs = [line for line in block.splitlines() if not line.startswith(" .. ")]
    assert own[7 + ranks - 2 :][:4] == theirs[7 + ranks - 2 :][:4]  # the heads
    assert own[2].replace(str(8 << 2 * (len(figures) - 1)), most) == theirs[2]
    assert layout(done.out) == layout(block)
    for mine, there in zip(rows(done.out), figures, strict=True):
        assert [*mine[:6], mine[8], mine[9], mine[12]] == (
            [*there[:6], there[8], there[9], there[12]]
        )
        for place in (6, 7, 10, 11):
            assert float(mine[place]) == pytest.approx(float(there[place]), rel=0.01, abs=0.011)
    averages = [re.search(r"bandwidth    : (\S+) \n", text)[1] for text in (done.out, block)]
    assert float(averages[0]) == pytest.approx(float(averages[1]), rel=1e-3)
    assert own[-1] == ""


def test_sizes_by_steps_and_by_factors(perf):
    by_steps = perf("all_reduce_perf", "-g2", "-b", "1M", "-e", "4.5M", "-i", "1.5M")
    assert [line[0] for line in rows(by_steps.out)] == ["1048576", "2621440", "4194304"]
    by_factor = perf("broadcast_perf", "-g2", "-b", "1K", "-e", "10K", "-f", "3")
    assert [line[0] for line in rows(by_factor.out)] == ["1024", "3072", "9216"]


def test_all_types_reductions_and_roots_in_their_order(perf):
    done = perf("reduce_perf", "-g2", "-b64", "-e64", "-d", "all", "-o", "all", "-r-1")
    found = [tuple(line[2:5]) for line in rows(done.out)]
    types = ["int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double",
             "bfloat16", "f8e4m3", "f8e5m2"]  # fmt: skip
    assert found == [
        (kind, operation, root)
        for kind in types
        for operation in ("sum", "prod", "max", "min", "avg", "mulsum")
        for root in ("0", "1")
    ]


def test_a_broadcast_has_a_root_and_no_reduction(perf):
    found = [line[2:5] for line in rows(perf("broadcast_perf", "-g4", "-r", "3").out)]
    assert found == [["float", "none", "3"]]
    assert rows(perf("gather_perf", "-g2", "-r-1", "-o", "all").out)[1][3:5] == ["none", "1"]


def test_cycles_repeat_the_sizes_of_each_type(perf):
    done = perf("all_reduce_perf", "-g2", "-b8", "-e16", "-f2", "-N2", "-d", "all")
    assert [(line[0], line[2]) for line in rows(done.out)][:5] == [
        ("8", "int8"), ("16", "int8"), ("8", "int8"), ("16", "int8"), ("8", "uint8")
    ]  # fmt: skip


def test_cycles_without_end_end_with_ctrl_c(perf):
    done = perf("all_reduce_perf", "-g2", "-N0", fake=Fake(cells=7))
    assert done.code == 130
    assert len(rows(done.out)) == 3
    assert "Avg bus" not in done.out


def test_how_each_is_measured(perf):
    fake = Fake()
    perf("all_reduce_perf", "-g2", "-n5", "-c0", "-G1", "-m3", "-z2", "-R2", "-T7", fake=fake)
    (settings,) = fake.settings
    assert (settings.samples, settings.loops, settings.verify) == (1, 5, False)
    assert (settings.timeout, settings.engines.tuned) == (7.0, False)
    out, within = fake.works
    assert (out.in_place, within.in_place) == (False, True)
    assert (out.graphed, out.aggregated, out.blocking, out.registered) == (
        True, 3, True, "symmetric"
    )  # fmt: skip


def test_wrong_elements_are_counted_and_fail(perf):
    def change(cell, result):
        is_one = cell.operation.in_place and cell.column == "8 B"
        return with_wrong(result, 12) if is_one else result

    done = perf("all_reduce_perf", *SMALL, "-g2", fake=Fake(change=change))
    assert done.code == 1
    assert rows(done.out)[0][-1] == "12"
    assert "# Out of bounds values : 1 FAILED\n" in done.out
    assert "float sum in place, 8 B: fail: 12 elements are wrong" in done.err


def test_what_has_no_figure_has_no_line(perf):
    def change(cell, result):
        if cell.column == "256 B" and not cell.operation.in_place:
            return unmeasured(cell, "error", "NCCL: unhandled system error", "call")
        return result

    done = perf("all_reduce_perf", *SMALL, "-g2", fake=Fake(change=change))
    assert done.code == 3
    assert [line[0] for line in rows(done.out)] == ["8", "8192", "262144", "8388608"]
    assert "all_reduce_perf: float sum, 256 B: error: NCCL: unhandled system error" in done.err
    assert "Avg bus bandwidth" not in done.out


def test_nothing_measured_is_no_success(perf):
    fake = Fake(change=lambda cell, _: unmeasured(cell, "skip", "backend x carries out none"))
    done = perf("all_reduce_perf", *SMALL, "-g2", fake=fake)
    assert done.code == 4
    assert rows(done.out) == []
    assert done.err.count("backend x carries out none") == 1


def test_the_least_average_that_is_asked_for(perf, monkeypatch):
    monkeypatch.setenv("NCCL_TESTS_MIN_BW", "1e6 GB/s")
    done = perf("all_reduce_perf", "-g2")
    assert done.code == 1
    assert re.search(r"# Avg bus bandwidth    : \S+ FAILED\n", done.out)
    monkeypatch.setenv("NCCL_TESTS_MIN_BW", "1")
    done = perf("all_reduce_perf", "-g2")
    assert done.code == 0
    assert re.search(r"# Avg bus bandwidth    : \S+ OK\n", done.out)


def test_a_hypercube_needs_a_power_of_two(perf):
    done = perf("hypercube_perf", "-g3")
    assert done.code == 4
    assert "nRanks 3 is not a power of 2, skipping\n" in done.out


def test_the_first_device(perf, monkeypatch):
    monkeypatch.setenv("NCCL_TESTS_DEVICE", "5")
    assert re.search(r"#  Rank  1 .* device  6 \[", perf("all_reduce_perf", "-g2").out)
    done = perf("all_reduce_perf", "-g4")
    assert done.code == 5
    assert "Invalid number of GPUs: 9 requested but only 8 were found.\n" in done.err


def test_a_size_that_does_not_fit_is_reduced(perf):
    done = perf("all_reduce_perf", "-b", "1024G", "-e", "1024G", "-g2")
    (said,) = re.findall(r"# Reducing maxBytes to (\d+) due to memory limitation", done.out)
    assert rows(done.out)[0][0] == str(int(said) // 4 * 4)


def test_without_a_gpu_it_says_so(perf, capfd):
    done = speak(capfd, "all_reduce_perf", "-g2", on=where(ONE_DEVICE))
    assert done.code == 5
    assert "2 requested but only 1 were found" in done.err


def test_groups_are_of_processes(perf, monkeypatch):
    monkeypatch.setenv("NCCL_TESTS_SPLIT", "MOD 2")
    done = perf("all_reduce_perf", "-g2")
    assert done.code == 0
    assert "NCCL_TESTS_SPLIT needs several processes" in done.err


@pytest.mark.parametrize(
    ("environment", "split"),
    [
        ({}, None),
        ({"NCCL_TESTS_SPLIT_MASK": "0x3", "NCCL_TESTS_SPLIT": "MOD 2"}, "AND 3"),
        ({"NCCL_TESTS_SPLIT_MASK": "f"}, "AND 15"),
        ({"NCCL_TESTS_SPLIT": "mod4"}, "MOD 4"),
        ({"NCCL_TESTS_SPLIT": "/ 0x10"}, "/ 16"),
        ({"NCCL_TESTS_SPLIT": "OR 0b11"}, "OR 3"),
        ({"NCCL_TESTS_SPLIT": "& 010"}, "& 8"),
    ],
)
def test_groups_as_the_environment_asks_for_them(environment, split):
    assert split_of(environment) == split


@pytest.mark.parametrize("written", ["MOD 0", "DIV", "XOR 3", "", "MOD 99999999999"])
def test_groups_that_are_not_understood_are_refused(written):
    with pytest.raises(Unable, match="give AND, OR, MOD or DIV"):
        split_of({"NCCL_TESTS_SPLIT": written})


def test_a_copy_as_json(perf, tmp_path):
    file = tmp_path / "a.json"
    done = perf("all_reduce_perf", *SMALL, "-g2", "-I1", "-J", str(file))
    assert done.out.startswith(f"# Writing JSON output to {file}\n# nccl-tests version")
    told = json.loads(file.read_text())
    assert list(told) == [
        "version", "start_time", "args", "env", "nccl_version", "config", "results",
        "out_of_bounds", "average_bus_bandwidth", "errors", "end_time",
    ]  # fmt: skip
    assert told["version"] == 3
    assert told["args"][:2] == ["all_reduce_perf", "-b"]
    assert f"PATH={os.environ['PATH']}" in told["env"]
    assert told["config"]["step_factor"] == 32
    assert [rank["device_info"] for rank in told["config"]["devices"]] == ["NVIDIA H200"] * 2
    first = told["results"][0]
    assert (first["size"], first["count"], first["root"], first["redop"]) == (8, 2, "    -1", "sum")
    assert set(first["out_of_place"]) == {"time", "alg_bw", "bus_bw", "nwrong"}
    assert len(first["in_place_per_iter"]["times_us"]) == 8
    shown = [float(line[5]) for line in rows(done.out)]
    assert [one["out_of_place"]["time"] for one in told["results"]] == pytest.approx(shown, abs=0.1)
    assert told["out_of_bounds"] == {"count": 0, "okay": "true"}
    assert told["average_bus_bandwidth"]["okay"] == "unchecked"
    again = perf("all_reduce_perf", "-g2", "-J", str(file))
    assert again.out.startswith(f"# Writing JSON output to {file}.0\n")


def test_a_copy_that_cannot_be_written_is_left_out(perf, tmp_path):
    done = perf("all_reduce_perf", "-g2", "-J", str(tmp_path / "no" / "a.json"))
    assert done.code == 0
    assert done.out.startswith("# skipping json output; ")
    done = perf("all_reduce_perf", "-g2", "-J", str(tmp_path / "a.txt"))
    assert "the file name must end in .json" in done.err


def test_a_copy_says_what_went_wrong(perf, tmp_path):
    few, none = tmp_path / "few.json", tmp_path / "none.json"
    assert perf("all_reduce_perf", "-g", "99", "-J", str(few)).code == 5
    assert "99 requested but only 8" in json.loads(few.read_text())["errors"][0]
    fake = Fake(change=lambda cell, _: unmeasured(cell, "error", "lost", "call"))
    assert perf("all_reduce_perf", "-g2", "-J", str(none), fake=fake).code == 3
    told = json.loads(none.read_text())
    assert told["errors"] == [f"float sum{side}, 32 MiB: error: lost" for side in ("", " in place")]
    assert told["results"] == []
    assert "average_bus_bandwidth" not in told
