"""`linkgauge as bandwidth_test` and `as ping_pong` write a row for each copy, or round trip."""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from compat_kit import ONE, MadeUp, rated, spoken

COPIES = ["direction", "source", "destination", "bytes", "iteration", "seconds", "gb_per_s"]
TRIPS = ["source", "destination", "bytes", "iteration", "seconds", "latency_us", "simulated"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def rows_of(text, columns=TRIPS):
    rows = list(csv.DictReader(text.splitlines()))
    assert all(list(row) == columns for row in rows)
    return rows


def shown(lines):
    """The percentiles of the lines that have one."""
    found = re.findall(r"^(p\d+) (\S+)$", lines, re.MULTILINE)
    return {name: float(figure) for name, figure in found}


@pytest.mark.parametrize(("count", "known"), [(1, 0), (2, 1), (19, 1), (20, 2), (99, 2), (100, 3)])
def test_percentiles_are_shown_as_far_as_the_iterations_tell_them(count, known):
    done = spoken("ping_pong", f"--iter {count} --out x", on="riscv-2gpu")
    figures = [line.split()[1] for line in done.stdout.splitlines()[1:4]]
    assert [figure != "N/A" for figure in figures] == [place < known for place in range(3)]


@pytest.mark.parametrize("tool", ["bandwidth_test", "ping_pong"])
@pytest.mark.parametrize(
    ("words", "faults", "code"), [("--size 1T", [], 2), ("--size 1M", ["lost sim:0"], 3)]
)
def test_what_measures_nothing_leaves_files_as_they_are(tool, words, faults, code):
    Path("old.csv").write_text("precious\n" * 1000)
    for name in ("old.csv", "new.csv"):
        done = spoken(tool, f"{words} --iter 2 --out {name}", on=ONE, faults=faults)
        assert done.returncode == code
    assert Path("old.csv").read_text() == "precious\n" * 1000
    assert not Path("new.csv").exists()
    assert spoken(tool, "--size 1M --iter 1 --out old.csv", on=ONE).returncode == 0
    assert "precious" not in Path("old.csv").read_text()


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")
def test_what_cannot_be_written_is_said():
    done = spoken("bandwidth_test", "--size 1M --iter 1 --out /dev/full", on=ONE)
    assert done.returncode not in (0, 1)
    assert "No space left" in done.stderr


def test_after_ctrl_c_a_table_has_the_rows_that_were_measured(monkeypatch):
    MadeUp(rated(), cells=1).install(monkeypatch)
    done = spoken("bandwidth_test", "--size 1M --iter 2 --out b.csv", on="riscv-2gpu")
    assert done.returncode == 130
    (row,) = rows_of(Path("b.csv").read_text(), COPIES)
    assert (row["direction"], row["destination"]) == ("H2D", "sim:0")
    assert done.stderr.count("interrupted") == 1


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
    assert found["p50"] <= found["p95"] <= found["p99"]
    assert "SIMULATED" not in done.stdout + done.stderr
