"""`linkgauge as ping_pong` writes a row for each single round trip, and shows their percentiles."""

import csv
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from compat_kit import ONE_DEVICE, interrupted_after, speak, where
from linkgauge.compat import copy_cells, ping_pong
from linkgauge.model.errors import InputError

GOLDEN = Path(__file__).parent / "golden"
COLUMNS = ["source", "destination", "bytes", "iteration", "seconds", "latency_us", "simulated"]


@pytest.fixture
def run(capfd, tmp_path, monkeypatch):
    """The tool in a folder of its own, on a host with the page's two GPUs unless told otherwise."""
    monkeypatch.chdir(tmp_path)

    def measure(*arguments, on=None):
        return speak(capfd, "ping_pong", *map(str, arguments), on=on or where("riscv-2gpu"))

    return measure


def rows_of(text):
    rows = list(csv.DictReader(text.splitlines()))
    assert all(list(row) == COLUMNS for row in rows)
    return rows


def compare(name, text):
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


def shown(lines):
    """The percentiles of the lines that have one."""
    found = re.findall(r"^(p\d+) (\S+)$", lines, re.MULTILINE)
    return {name: float(figure) for name, figure in found}


def test_what_is_shown_and_written_is_as_it_was(run):
    done = run("--iter", 200, "--size", 64, "--out", "latency.csv")
    assert done.code == 0
    compare("ping_pong.txt", f"{done.out}\n--- stderr\n{done.err}")
    compare("ping_pong.csv", Path("latency.csv").read_text())


def test_the_pages_command_on_the_pages_kind_of_host(run):
    """Of the end-to-end script; the page has a median of 4 to 6 us there for 64 bytes."""
    done = run("--iter", 10000, "--size", 64, "--out", "latency.csv")
    assert done.code == 0
    rows = rows_of(Path("latency.csv").read_text())
    assert [int(row["iteration"]) for row in rows] == list(range(10000))
    assert {(row["source"], row["destination"], row["bytes"]) for row in rows} == {
        ("sim:0", "sim:1", "64")
    }
    for row in rows:
        assert float(row["latency_us"]) == pytest.approx(float(row["seconds"]) * 1e6)
    times = sorted(float(row["latency_us"]) for row in rows)
    assert 4 < statistics.median(times) < 6
    cuts = statistics.quantiles(times, n=100, method="inclusive")
    assert shown(done.out) == {
        name: pytest.approx(cuts[place - 1], abs=1e-3)
        for name, place in (("p50", 50), ("p95", 95), ("p99", 99))
    }
    assert "sim:0 and sim:1, 64 B, 10000 copies there and back" in done.out


def test_a_simulation_says_so_in_every_row_and_line_of_figures(run):
    done = run("--iter", 3, "--out", "latency.csv")
    assert {row["simulated"] for row in rows_of(Path("latency.csv").read_text())} == {"SIMULATED"}
    assert done.out.startswith("SIMULATED sim:0 and sim:1")
    assert "SIMULATED riscv-2gpu" in done.err


def test_the_only_device_exchanges_with_the_host(run):
    done = run("--iter", 2, "--out", "latency.csv", on=where(ONE_DEVICE))
    assert done.out.startswith("SIMULATED host:0 and sim:0 (the only device), 64 B, 2 copies")
    assert [row["source"] for row in rows_of(Path("latency.csv").read_text())] == ["host:0"] * 2


@pytest.mark.parametrize(("count", "known"), [(1, 0), (2, 1), (19, 1), (20, 2), (99, 2), (100, 3)])
def test_percentiles_are_shown_as_far_as_the_iterations_tell_them(run, count, known):
    figures = [line.split()[1] for line in run("--iter", count, "--out", "x").out.splitlines()[1:4]]
    assert [figure != "N/A" for figure in figures] == [place < known for place in range(3)]


@pytest.mark.parametrize("arguments", [[], ["--out", "-"]])
def test_without_a_file_the_table_alone_goes_to_stdout(run, arguments):
    done = run("--iter", 4, *arguments)
    assert len(rows_of(done.out)) == 4
    assert "p50 " in done.err
    assert list(Path().iterdir()) == []


def test_a_file_is_replaced_by_what_is_measured_and_else_left_alone(run):
    table = Path("latency.csv")
    table.write_text("precious\n" * 1000)
    with pytest.raises(InputError, match="does not fit"):
        run("--size", "1T", "--out", table)
    assert table.read_text() == "precious\n" * 1000
    run("--iter", 5, "--out", table)
    assert len(rows_of(table.read_text())) == 5


def test_defaults_are_the_scripts(run, monkeypatch):
    asked = []
    monkeypatch.setattr(ping_pong, "Meter", lambda context, tool: asked.append(context.settings))
    with pytest.raises(AttributeError):
        run()
    assert (asked[0].sizes, asked[0].samples) == ((64,), 10_000)


def test_a_wrong_byte_is_exit_code_1(run):
    done = run("--iter", 5, "--out", "x", on=where("riscv-2gpu", "flip sim:1"))
    assert done.code == 1
    assert "is wrong at byte 0" in done.err


def test_an_error_is_exit_code_3(run):
    done = run("--iter", 5, "--out", "x", on=where("riscv-2gpu", "lost sim:1"))
    assert (done.code, Path("x").exists()) == (3, False)
    assert "p50 N/A" in done.out
    assert "wrote" not in done.out


def test_a_table_of_an_earlier_run_is_kept_if_nothing_is_measured(run):
    Path("x").write_text("precious\n")
    assert run("--iter", 5, "--out", "x", on=where("riscv-2gpu", "lost sim:1")).code == 3
    assert Path("x").read_text() == "precious\n"


def test_after_ctrl_c_it_is_exit_code_130(run, monkeypatch):
    monkeypatch.setattr(copy_cells, "measure", interrupted_after(0))
    done = run("--iter", 5, "--out", "x")
    assert (done.code, "interrupted" in done.err) == (130, True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--foo"], "unrecognized arguments: --foo"),
        (["--size", "0"], "--size: size 0 moves nothing"),
        (["--iter", "0"], "--iter: give 1 to 1000000"),
        (["--iter", "many"], "argument --iter: invalid whole value: 'many'"),
        (["--out", ""], "--out: give the name of a file"),
        (["--out", "missing/x.csv"], "cannot write missing/x.csv: No such file or directory"),
    ],
)
def test_bad_usage_is_exit_code_2_and_measures_nothing(run, arguments, says):
    with pytest.raises(InputError) as caught:
        run(*arguments)
    assert says in str(caught.value)
    assert caught.value.exit_code == 2
    assert list(Path().iterdir()) == []


def test_help(run):
    done = run("--help")
    assert done.code == 0
    assert "--iter COUNT" in done.out


@pytest.mark.parametrize("devices", ["pthread", "pthread pthread"])
def test_on_real_devices_of_opencl(tmp_path, devices):
    """PoCL's, which are the CPU: in a process of its own, since PoCL counts its devices once."""
    pytest.importorskip("pyopencl", reason="pip install '.[opencl]'")
    table = tmp_path / "latency.csv"
    done = subprocess.run(
        [sys.executable, "-m", "linkgauge", "as", "--backend", "opencl",
         "ping_pong", "--iter", "200", "--size", "64", "--out", str(table)],
        capture_output=True, text=True, timeout=120, cwd=tmp_path,
        env=os.environ | {"POCL_DEVICES": devices},
    )  # fmt: skip
    if "no OpenCL runtime" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    rows = rows_of(table.read_text())
    assert len(rows) == 200
    assert {row["simulated"] for row in rows} == {""}
    assert all(0 < float(row["latency_us"]) < 1e6 for row in rows)
    ends = "host:0 and opencl:0 (the only device)"
    if " " in devices:
        ends = "opencl:0 and opencl:1"
    assert done.stdout.startswith(f"{ends}, 64 B, 200 copies")
    found = shown(done.stdout)
    assert list(found) == ["p50", "p95", "p99"]
    assert found["p50"] <= found["p95"] <= found["p99"]
    assert "SIMULATED" not in done.stdout + done.stderr
