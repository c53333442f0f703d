"""`linkgauge run --for`: a selection repeated for a time, on a simulated machine's own clock."""

import signal
import subprocess
import sys

import pytest

from command_kit import called
from linkgauge.engine.kept.journal import JOURNAL_FILE, MeasuredRepetition, read_records
from linkgauge.engine.kept.runs import read_run

READ = "device_to_device_memcpy_read_ce"
SOAK = ("run", READ, "--machine", "ppu-8", "--device", "0", "--device", "1", "--device", "2",
        "--size", "1M", "--samples", "4")  # fmt: skip
CELLS = 6


def soak(out, *more, time="20s", code=0):
    """The run of a soak, what it printed with single blanks, and its folder."""
    done = called(*SOAK, "--for", time, "--out", out, *more)
    assert done.returncode == code, done.stderr
    (folder,) = out.glob("*/default/*")
    return read_run(folder), " ".join((done.stdout + done.stderr).split()), folder


def faults(*texts):
    return [word for text in texts for word in ("--fault", text)]


def test_everything_is_measured_and_compared_round_after_round(tmp_path):
    run, text, folder = soak(tmp_path)
    how = run.soak
    assert (how.stopped, how.reason, how.failed) == ("time", None, ())
    assert 20 <= how.lasted < 21
    repetitions = [
        record
        for record in read_records((folder / JOURNAL_FILE).read_bytes())
        if isinstance(record, MeasuredRepetition)
    ]
    assert (
        how.repetitions
        == how.checked
        == len(repetitions)
        == sum(one.repetitions for one in how.cells)
    )
    assert how.rounds == len(repetitions) // CELLS > 10
    assert all(len(one.means) == round(20 / how.slice) for one in how.cells)
    assert how.compared == len(repetitions) << 20
    assert [one.samples for one in how.cells] == [4 * one.repetitions for one in how.cells]
    for cell in run.results[0].cells:
        assert 8 <= len(cell.repetitions) <= 16
        assert cell.verdict == "ok"
    assert "soak: 20" in text
    assert "0 failed" in text
    assert "SIMULATED" in text


def test_a_wrong_byte_in_round_3_is_named_with_its_moment(tmp_path):
    number = 2 * CELLS + 2  # (1, 0) in the third round
    run, text, _ = soak(tmp_path, *faults(f"flip * offset=77 cells={number}"), code=1)
    (struck,) = run.soak.failed
    assert (struck.moment.round, struck.cell.row, struck.cell.column) == (3, "1", "0")
    assert struck.status == "fail"
    assert "is wrong at byte 77" in struck.reason
    assert run.started < struck.moment.time
    (bad,) = (one for one in run.soak.cells if one.failed)
    assert (bad.failed, bad.repetitions) == (1, bad.checked)
    # It stays in the run, whatever repetitions are kept.
    assert [cell.status for cell in run.results[0].cells].count("fail") == 1
    assert f"FAIL {READ} (1, 0) at 0:00:0" in text
    assert "in round 3 (" in text


def test_a_temperature_limit_ends_it_with_the_reason(tmp_path):
    hot = faults(
        f"hot sim:2 celsius=70 cells=0..{3 * CELLS - 1}",
        f"hot sim:2 celsius=91 cells={3 * CELLS}..",
    )
    run, text, _ = soak(tmp_path, "--max-temperature", "85", *hot, code=1)
    how = run.soak
    assert how.stopped == "temperature"
    assert how.reason == "sim:2 reached 91 °C, the limit is 85 °C"
    assert how.rounds == 3
    assert how.lasted < 20
    assert run.finished is not None
    (device,) = (one for one in how.devices if one.hottest is not None)
    assert (device.memory, device.hottest) == ("sim:2", 91.0)
    assert f"too hot: {how.reason}; the run ended there" in text


def test_drift_and_throttling_are_shown_over_the_time(tmp_path):
    slow = f"slow sim:0 rate=60% cells={8 * CELLS}.."
    run, text, _ = soak(tmp_path, "--no-verdict", *faults(slow), time="60s")
    drifted = [one for one in run.soak.cells if "0" in (one.cell.row, one.cell.column)]
    for one in drifted:
        known = [mean for mean in one.means if mean is not None]
        assert known[-1] / known[0] < 0.75
    assert "drift worse by" in text
    assert "in 4 cells" in text
    (device,) = (one for one in run.soak.devices if one.throttled)
    (held,) = device.throttled
    assert (device.memory, held.reason, held.first.round) == ("sim:0", "hardware slowdown", 9)
    assert "throttled by hardware slowdown in" in text


ENDING = """
import os, sys
from linkgauge.engine import controller
number, left = int(sys.argv.pop(1)), int(sys.argv.pop(1))
after = controller._Passed.after
def ending(self, cells):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), number)
    return after(self, cells)
controller._Passed.after = ending
from linkgauge.cli.main import main
main()
"""
"""A command that a signal strikes once it has measured so many repetitions, before it keeps the
last."""


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)]
)
def test_it_goes_on_for_the_remaining_time_after_kill_9_and_ctrl_c(number, code, tmp_path):
    command = [sys.executable, "-c", ENDING, str(int(number)), "32", *SOAK, "--for", "30s"]
    struck = subprocess.run(
        [*command, "--out", str(tmp_path), *faults("flip * offset=77 cells=13")],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=100, check=False,
    )  # fmt: skip
    assert struck.returncode == code
    (folder,) = tmp_path.glob("*/default/*")
    before = read_run(folder)
    assert before.finished is None
    assert before.soak.stopped is None
    assert before.soak.repetitions == 31
    assert 0 < before.soak.lasted < 30
    done = called("run", "--resume", folder)
    assert done.returncode == 1, done.stderr
    whole = read_run(folder)
    assert whole.soak.stopped == "time"
    assert 30 <= whole.soak.lasted < 31
    assert whole.soak.repetitions > before.soak.repetitions
    assert whole.soak.failed == before.soak.failed
    assert [one.moment.round for one in whole.soak.failed] == [3]
    assert len(whole.resumed) == 1
    records = read_records((folder / JOURNAL_FILE).read_bytes())
    seen = [(r.round, r.table, r.cell.place) for r in records if isinstance(r, MeasuredRepetition)]
    assert len(seen) == len(set(seen)), "no cell is measured twice in a round"
