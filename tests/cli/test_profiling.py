"""`--nsys` and `--ncu`: cells are measured under the profiler, its files are kept with the run, and
the figures are compared with nothing."""

import json
import os
import signal
import subprocess
import sys

import pytest

from cli.test_cli import COPY, ENDLESS, FAST, wait_for_its_plan
from command_kit import called, folder_of, linkgauge
from linkgauge.engine.kept.runs import read_run
from profiler_kit import NVTX, REFUSES, install

HOST = ("run", COPY, *FAST[:-1], "--backend", "host")
WARNING = "measured under {}: do not compare it with other figures"


@pytest.fixture
def here(tmp_path):
    """The environment of a machine with profilers and the package nvtx."""
    for name in ("nsys", "ncu"):
        path = install(tmp_path / "bin", name)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "nvtx.py").write_text(NVTX)
    return {
        "PATH": path,
        "PYTHONPATH": str(tmp_path / "site"),
        "NVTX_SEEN": str(tmp_path / "seen"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }


@pytest.mark.parametrize(("name", "suffix"), [("nsys", "nsys-rep"), ("ncu", "ncu-rep")])
def test_a_run_keeps_the_profilers_files_and_says_what_its_figures_are_worth(
    tmp_path, here, name, suffix
):
    out = tmp_path / "out"
    done = linkgauge(*HOST, f"--{name}", "--out", out, **here)
    assert (done.returncode, done.stderr) == (0, f"waiting for {name} to write its files\n")
    folder = folder_of(out)
    files = [f"{name}-1.log", f"{name}-1.{suffix}"]
    assert {path.name for path in folder.iterdir()} == {
        "run.json", "samples.bin", "samples.csv", "journal.jsonl", *files,
    }  # fmt: skip
    assert f"): {WARNING.format(name)}" in done.stdout
    assert f"files of {name}: {', '.join(files)}" in done.stdout
    assert "this" not in done.stdout  # what the profiler prints
    document = json.loads((folder / "run.json").read_text())
    assert document["settings"]["profiler"] == name
    assert document["profiler_files"] == files
    (cell,) = document["results"][0]["cells"]
    assert (cell["status"], cell["verdict"]) == ("pass", "not judged")
    assert WARNING.format(name) in cell["warnings"]
    of_journal = called("show", folder / "journal.jsonl", "--json").stdout
    assert of_journal == called("show", folder / "run.json", "--json").stdout
    shown = called("show", folder)
    assert f"files of {name}: {', '.join(files)}" in shown.stdout
    assert shown.returncode == 0
    assert not list((tmp_path / "cache").rglob("tuned/*"))
    # Each repetition is a range that is named like its cell.
    seen = [json.loads(line) for line in (tmp_path / "seen").read_text().splitlines()]
    name = f"{COPY} (0, 0): host:0 -> host:0 by cpu, 1 MiB"
    assert seen == [["push", name, "linkgauge"], ["pop", name, "linkgauge"]]


def test_without_the_package_one_note_says_how_to_get_ranges(tmp_path, here):
    (tmp_path / "site" / "nvtx.py").unlink()
    (tmp_path / "site" / "sitecustomize.py").write_text(
        "import importlib.util as util\n"
        "find = util.find_spec\n"
        "util.find_spec = lambda name, package=None: None if name == 'nvtx' else find(name)\n"
    )
    done = linkgauge(*HOST, "--nsys", "--out", tmp_path / "out", **here)
    notes = [line for line in done.stderr.splitlines() if "nvtx" in line]
    remedy = f"{sys.executable} -m pip install nvtx"
    assert notes == [f"note: nsys sees no ranges of cells without NVIDIA's nvtx: {remedy}"]


def test_a_profiler_that_does_not_start_is_one_line_and_nothing_is_measured(tmp_path, here):
    install(tmp_path / "bin", "nsys", REFUSES)
    done = linkgauge(*HOST, "--nsys", "--out", tmp_path / "out", **here)
    assert (done.returncode, done.stdout) == (3, "")
    (line,) = done.stderr.splitlines()
    assert "nsys started no worker (exit code 7): unsupported kernel version" in line
    assert not list((tmp_path / "out").rglob("journal.jsonl"))
    (log,) = (tmp_path / "out").rglob("nsys-1.log")
    assert str(log) in line


class TestCtrlC:
    @pytest.fixture
    def broken(self, tmp_path, here):
        """A run that was interrupted, as a terminal does it: its folder, exit code and output."""
        process = subprocess.Popen(
            [sys.executable, "-m", "linkgauge", "run", *ENDLESS, "--nsys",
             "--out", str(tmp_path / "out")],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            env={**os.environ, **here},
        )  # fmt: skip
        wait_for_its_plan(process, tmp_path / "out")
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
        return folder_of(tmp_path / "out"), process.returncode, out, err

    def test_keeps_what_was_measured_and_the_profilers_files(self, broken):
        folder, code, out, err = broken
        assert (code, "Traceback" in err) == (130, False)
        assert (folder / "nsys-1.nsys-rep").read_text() == "ended with 0\n"
        run = read_run(folder)
        assert (run.finished, run.profiler_files) == (None, ("nsys-1.log", "nsys-1.nsys-rep"))
        assert "linkgauge run --resume" in out

    def test_is_no_end_where_the_profiler_is_still_there(self, broken, here):
        """What is left is measured under it, with a report of its own."""
        folder, *_ = broken
        journal = folder / "journal.jsonl"
        journal.write_text(journal.read_text().replace('"samples":1000000000', '"samples":3'))
        done = linkgauge("run", "--resume", folder, "--nsys", **here)
        assert done.returncode == 0, done.stderr
        assert read_run(folder).profiler_files == (
            "nsys-1.log", "nsys-1.nsys-rep", "nsys-2.log", "nsys-2.nsys-rep",
        )  # fmt: skip

    def test_is_not_gone_on_with_without_the_profiler(self, broken, tmp_path):
        (tmp_path / "empty").mkdir()
        done = called("run", "--resume", broken[0], PATH=str(tmp_path / "empty"))
        assert (done.returncode, "nsys is not on the PATH" in done.stderr) == (2, True)
        given = called("run", "--resume", broken[0], "--ncu")
        assert "--ncu disagrees with the run's own" in given.stderr
