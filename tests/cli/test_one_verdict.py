"""Every command that shows a run says the same of it, in words and by its exit code."""

import json
import subprocess
import sys

import pytest

DGX = ("--machine", "dgx-h200-8", "--device", "0", "--device", "1", "--profile", "quick")
FROM_HOST = "host_to_device_memcpy_ce"
SLOW = "slow sim:1 rate=25%"
COPY = "host:0 -> sim:1 by ce"


def linkgauge(*arguments, folder):
    return subprocess.run(
        [sys.executable, "-m", "linkgauge", *arguments],
        cwd=folder, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def measured(folder, *arguments):
    """A run's outcome, its shown lines without that of its folder, and where it is kept."""
    done = linkgauge(*arguments, folder=folder)
    (run,) = folder.rglob("run.json")
    shown = [line for line in done.stdout.splitlines() if not line.startswith("results: ")]
    return done, shown, run


@pytest.mark.parametrize(
    ("arguments", "code", "last"),
    [
        (("run", FROM_HOST, *DGX), 0, ["2 measured: 2 ok, 0 low, 0 not judged SIMULATED"]),
        (
            ("run", FROM_HOST, *DGX, "--fault", SLOW),
            1,
            ["2 measured: 1 ok, 1 low, 0 not judged SIMULATED", "cause: warn clocks  sim:1"],
        ),
        (
            ("run", FROM_HOST, "--machine", "vm-degraded", "--profile", "quick"),
            1,
            ["1 measured: 1 ok, 0 low, 0 not judged SIMULATED", "cause: fail link-speed  sim:0"],
        ),
        (
            ("copy", COPY, "--machine", "dgx-h200-8", "--fault", SLOW, "--out", "kept"),
            1,
            ["1 measured: 0 ok, 1 low, 0 not judged SIMULATED", "cause: "],
        ),
        (
            ("traffic", "--machine", "vm-degraded", "--threads", "1", "--out", "kept"),
            1,
            [" not judged SIMULATED", "cause: fail link-speed  sim:0"],
        ),
        (
            ("run", "--prefix", "host_to_device", *DGX, "--fault", "stall sim:1 for=0.05"),
            0,
            [" 0 low, ", "cause: warn stall  "],
        ),
        (
            ("run", "--prefix", "host_to_device", *DGX, "--fault", "jitter sim:1 sigma=9%"),
            0,
            [" 0 low, ", "cause: warn scatter  "],
        ),
    ],
)
def test_all_agree(tmp_path, arguments, code, last):
    done, shown, run = measured(tmp_path, *arguments)
    assert done.returncode == code
    assert "pass" not in done.stdout
    for line, expected in zip(shown[-len(last) :], last, strict=True):
        assert expected in line
    kept = linkgauge("show", run.parent, folder=tmp_path)
    assert (kept.returncode, kept.stdout.splitlines()) == (code, shown)
    resumed = linkgauge("run", "--resume", run.parent, folder=tmp_path)
    assert (resumed.returncode, resumed.stdout.splitlines()[:-1]) == (code, shown)
    judged = linkgauge("doctor", run.parent, folder=tmp_path)
    assert (judged.returncode, judged.stdout.splitlines()[-len(last) :]) == (
        code, shown[-len(last) :],
    )  # fmt: skip


def test_a_low_cell_was_measured_once_more(tmp_path):
    done, _, run = measured(tmp_path, "run", FROM_HOST, *DGX, "--fault", SLOW, "--samples", "5")
    assert "measuring 1 cell once more" in done.stderr
    (result,) = json.loads(run.read_text())["results"]
    assert [len(cell["samples"]) for cell in result["cells"]] == [5, 10]
    assert {cell["status"] for cell in result["cells"]} == {"pass"}


@pytest.mark.parametrize("arguments", [("run", FROM_HOST, *DGX), ("copy", COPY, *DGX[:2])])
def test_who_wants_figures_only_gets_no_verdict(tmp_path, arguments):
    figures = ("--fault", SLOW, "--no-verdict", "--out", "kept")
    done, shown, run = measured(tmp_path, *arguments, *figures)
    assert done.returncode == 0
    assert shown[-1].endswith(" measured SIMULATED")
    for word in ("low", "ok", "expected", "fail", "doctor", "cause"):
        assert word not in done.stdout.split()
    assert "once more" not in done.stderr
    kept = linkgauge("show", "--no-verdict", run.parent, folder=tmp_path)
    assert (kept.returncode, kept.stdout.splitlines()) == (0, shown)
    assert linkgauge("show", run.parent, folder=tmp_path).returncode == 1


def test_a_missed_limit_is_told_where_the_figure_stands(tmp_path):
    (tmp_path / "limits.yml").write_text('limits: [{limit: ">= 1 TB/s"}]')
    limits = ("--limits", "limits.yml")
    done, shown, run = measured(tmp_path, "run", FROM_HOST, *DGX, *limits)
    assert done.returncode == 1
    assert shown[0].split() == [FROM_HOST, "sim", "64", "MiB", "fail", "SIMULATED"]
    assert any("is below the limit >= 1 TB/s" in line for line in shown)
    assert shown[-2] == "2 measured: 0 ok, 0 low, 0 not judged, 2 fail SIMULATED"
    assert shown[-1].startswith(f"cause: fail {FROM_HOST} (0, 0): median ")
    kept = linkgauge("show", run.parent, *limits, folder=tmp_path)
    assert (kept.returncode, kept.stdout.splitlines()) == (1, shown)


def test_another_tool_keeps_its_own_code(tmp_path):
    on = ("as", "--machine", "dgx-h200-8", "--fault", SLOW)
    assert linkgauge(*on, "nvbandwidth", "-t", "0", folder=tmp_path).returncode == 0


def test_a_failure_of_what_was_not_measured_is_told_by_the_doctor_alone(tmp_path):
    on_host = ("run", "--prefix", "host_to_host", "--machine", "vm-degraded", "--profile", "quick")
    done, shown, run = measured(tmp_path, *on_host)
    assert (done.returncode, "doctor" in done.stdout) == (0, False)
    judged = linkgauge("doctor", run, folder=tmp_path)
    assert judged.returncode == 0
    assert judged.stdout.splitlines()[-2:] == [
        "not counted, since the run did not measure it: target-speed sim:0 (0000:01:00.0)",
        shown[-1],
    ]
    assert linkgauge("doctor", "--machine", "vm-degraded", folder=tmp_path).returncode == 1
