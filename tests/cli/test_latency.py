"""`linkgauge latency`: single round trips of a size, their percentiles, and all of them as CSV."""

import csv
import io
import json

import pytest

from command_kit import called

SIMULATED = ("--machine", "ppu-8", "--device", "0", "--device", "1")
COPIES = "latency_copy_pingpong"
PATHS = ["host:0-0", "host:0-1", "0-1"]


def latency(*arguments, folder):
    return called("latency", *arguments, cwd=folder, COLUMNS="120")


def test_every_iteration_is_a_line_of_csv(tmp_path):
    done = latency("--size", "64", "--iterations", "150", "--csv", *SIMULATED, folder=tmp_path)
    assert done.returncode == 0
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert {row["benchmark"] for row in rows} == {"latency_copy_pingpong", "latency_copy_device"}
    there_and_back = [row["row"] for row in rows if row["benchmark"] == "latency_copy_pingpong"]
    assert there_and_back == [path for path in PATHS for _ in range(150)]
    assert {(row["column"], row["unit"], row["simulated"]) for row in rows} == {
        ("64 B", "s", rows[0]["simulated"])
    }
    assert rows[0]["simulated"]
    assert all(0 < float(row["value"]) < 1 for row in rows)


def test_a_sweep_of_a_simulated_machine_has_a_line_for_each_path_and_no_cpu_time(tmp_path):
    sweep = (COPIES, "--size", "1K:1M:x4", "--iterations", "20", "--utilization", *SIMULATED)
    done = latency(*sweep, folder=tmp_path)
    lines = [line.split() for line in done.stdout.splitlines() if " time = " in line]
    assert [line[0] for line in lines] == PATHS
    assert "CPU time" not in done.stdout
    (run,) = tmp_path.rglob("run.json")
    document = json.loads(run.read_text())
    assert [(line["row"], line["column"]) for line in document["lines"]] == [
        (path, None) for path in PATHS
    ]
    assert {cell["cpu_seconds"] for cell in document["results"][0]["cells"]} == {None}


def test_percentiles_are_shown_as_far_as_the_iterations_tell_them(tmp_path):
    done = latency(COPIES, "--size", "64,4K", "--iterations", "150", *SIMULATED, folder=tmp_path)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    head = next(n for n, line in enumerate(lines) if line.startswith("percentiles of single"))
    assert lines[head + 1].split()[:6] == ["p50", "p95", "p99", "p99.9", "max", "n"]
    assert lines[head + 1].endswith("min to max, log scale")
    named = [line.partition(" B ")[0].split(",")[0] for line in lines[head + 2 : head + 8 : 2]]
    assert [name.strip() for name in named] == PATHS
    for line in lines[head + 2 : head + 8]:
        *figures, unknown, most, count = line.partition("B ")[2].split()[:6]
        assert "█" in line
        assert (unknown, count) == ("N/A", "150")
        assert float(figures[0]) <= float(figures[2]) <= float(most)


def test_a_run_keeps_the_iterations_and_show_shows_them_alike(tmp_path):
    done = latency(COPIES, "--size", "1K", "--iterations", "100", *SIMULATED, folder=tmp_path)
    (run,) = tmp_path.rglob("run.json")
    (result,) = json.loads(run.read_text())["results"]
    assert [len(cell["samples"]) for cell in result["cells"]] == [100] * len(PATHS)
    again = called("show", "--no-verdict", "--matrix", run, COLUMNS="120")
    percentiles = done.stdout.partition("percentiles of")[2].partition("\n\n")[0]
    assert percentiles
    assert percentiles in again.stdout


def test_without_a_size_each_benchmark_of_single_iterations_is_measured(tmp_path):
    done = latency("--iterations", "20", *SIMULATED, folder=tmp_path)
    (run,) = tmp_path.rglob("run.json")
    results = {each["benchmark"]: each for each in json.loads(run.read_text())["results"]}
    measured = {name for name, result in results.items() if result["cells"][0]["samples"]}
    assert measured == {COPIES, "latency_copy_device", "latency_flag_pingpong"}
    flags = [cell["row"] for cell in results["latency_flag_pingpong"]["cells"]]
    assert flags == [*PATHS, "0-0", "1-1"]
    assert "backend sim times no graph launch" in done.stdout
    assert "percentiles of single ones (ns), 1 B; the others: samples.csv" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(("--size", "2M"), "up to 1 MiB"), (("--iterations", "0"), "give 1 or more"),
     (("--size", "x"), "'x'"), (("--backend", "nope"), "nope"),
     (("latency_nothing",), "latency_nothing"), (("latency_sync", "--size", "8"), "no sizes"),
     (("gpu_matmul",), "see linkgauge run")],
)  # fmt: skip
def test_bad_input_is_one_line_and_exit_2(tmp_path, arguments, said):
    done = latency(*arguments, folder=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())
