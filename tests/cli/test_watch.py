"""A watch measures every link in turn within its budget, and says which got worse."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from command_kit import called
from linkgauge.cli.main import COMMANDS, command
from sim_kit import MACHINE
from watch_kit import READ, watch

CELLS = 12
"""Copies between four devices."""


@pytest.fixture(autouse=True)
def history(tmp_path, monkeypatch):
    path = tmp_path / "history.db"
    monkeypatch.setenv("LINKGAUGE_HISTORY", str(path))
    return path


def kind_of(event):
    return type(event).__name__


def of(kind, events):
    return [event for event in events if kind_of(event) == kind]


def test_a_link_that_degrades_half_way_is_noticed_and_stays_within_the_budget(monkeypatch):
    """Ten minutes, of which half are over with the thirtieth probe."""
    half = 30 * CELLS
    fault = f"slow sim:0-sim:1 rate=60% cells={half}.."
    code, events = watch(monkeypatch, MACHINE, fault, every=10.0, budget=0.05, seconds=600.0)
    assert code == 1
    found = of("Degraded", events)
    assert [(one.cell.row, one.cell.column) for one in found] == [("0", "1"), ("1", "0")]
    for one in found:
        assert (one.why, one.earlier >= 20) == ("history", True)
        assert one.figure / one.usual == pytest.approx(0.62, abs=0.03)
    probes = of("Probed", events)
    assert len(probes) == 60
    assert all(probe.duty <= 0.05 for probe in probes)
    assert sum(probe.cells for probe in probes) > half + CELLS
    when = next(at for at, event in enumerate(events) if event is found[0])
    before = [event for event in events[:when] if kind_of(event) == "Probed"]
    struck = next(n for n, _ in enumerate(before) if sum(p.cells for p in before[: n + 1]) >= half)
    assert len(before) - struck <= 2, "noticed in the probe that met it, or the next"
    trend = json.loads(called("history", "trend", READ, "--json").stdout)["trends"][0]
    (change,) = trend["changes"]
    assert change["direction"] == "worse"
    assert change["ratio"] == pytest.approx(0.62, abs=0.03)
    assert {(cell["cell"]["row"], cell["cell"]["column"]) for cell in change["cells"]} == {
        ("0", "1"), ("1", "0"),
    }  # fmt: skip


def test_what_does_not_fit_the_budget_takes_turns(monkeypatch):
    """A cell takes 0.02 s or so: of each second, two hundredths are too few for all of them."""
    _, events = watch(monkeypatch, MACHINE, every=1.0, budget=0.05, probes=20)
    probes = of("Probed", events)
    assert max(probe.cells for probe in probes) < CELLS
    assert sum(probe.cells for probe in probes) > CELLS
    assert all(probe.duty <= 0.05 for probe in probes)
    trend = json.loads(called("history", "trend", READ, "--json").stdout)["trends"][0]
    counts = [len(one["points"]) for one in trend["series"]]
    assert len(counts) == CELLS
    assert max(counts) - min(counts) <= 1


def test_busy_devices_are_left_alone_and_said_once(monkeypatch):
    fault = f"busy sim:2 cells={3 * CELLS - 1}..{3 * CELLS + 4}"
    code, events = watch(monkeypatch, MACHINE, fault, budget=0.5, probes=7)
    assert code == 0
    (alone,), (idle,) = of("LeftAlone", events), of("MeasuredAgain", events)
    assert (alone.device, alone.why) == ("sim:2", "busy 100% of the time")
    assert idle.device == "sim:2"
    while_busy = [probe for probe in of("Probed", events) if probe.left_alone]
    assert [probe.cells for probe in while_busy] == [6]  # those between the three others


def test_where_everything_is_busy_nothing_is_measured(monkeypatch):
    code, events = watch(monkeypatch, MACHINE, "busy *", budget=0.5, probes=2)
    assert (code, len(of("LeftAlone", events))) == (4, 4)
    assert [probe.cells for probe in of("Probed", events)] == [0, 0]


def test_a_lost_device_ends_no_watch(monkeypatch):
    fault = f"lost sim:3 cells={2 * CELLS + 1}"
    code, events = watch(monkeypatch, MACHINE, fault, budget=0.5, probes=5)
    assert code == 3
    assert {one.why for one in of("Degraded", events)} == {"error"}
    assert len(of("Probed", events)) == 5


def test_a_later_watch_knows_what_was_usual_before_it_got_worse(monkeypatch):
    fault = f"slow sim:0-sim:1 rate=60% cells={6 * CELLS}.."
    watch(monkeypatch, MACHINE, fault, budget=0.5, probes=16)
    code, events = watch(monkeypatch, MACHINE, "slow sim:0-sim:1 rate=60%", budget=0.5, probes=2)
    assert code == 1
    found = of("Degraded", events)
    assert len(found) == 2
    assert found[0].figure / found[0].usual == pytest.approx(0.62, abs=0.03)


def test_a_history_that_fails_costs_no_probe(monkeypatch, tmp_path):
    (tmp_path / "broken.db").write_text("no database")
    monkeypatch.setenv("LINKGAUGE_HISTORY", str(tmp_path / "broken.db"))
    code, events = watch(monkeypatch, MACHINE, budget=0.5, probes=2)
    assert (code, len(of("Probed", events))) == (0, 2)
    assert "is not in the history" in of("ProbeFailed", events)[-1].reason


SIMULATED = ("--machine", "ppu-8", "--device", "0", "--device", "1", "--size", "1M")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_cleanly(number, code, tmp_path):
    running = subprocess.Popen(
        [sys.executable, "-m", "linkgauge", "watch", READ, *SIMULATED, "--every", "1h",
         "--budget", "50%", "--json"],
        stdout=subprocess.PIPE, text=True,
        env={**os.environ, "LINKGAUGE_HISTORY": str(tmp_path / "h.db")},
    )  # fmt: skip
    assert running.stdout is not None
    lines = iter(running.stdout.readline, "")
    kinds = [json.loads(next(lines))["event"] for _ in range(2)]
    assert kinds == ["begun", "probe"]
    running.send_signal(number)
    ended = json.loads(next(lines))
    assert (ended["event"], ended.get("probes")) == ("ended", 1), ended
    assert running.wait(60) == code
    running.stdout.close()


def test_the_unit_of_systemd_calls_what_there_is():
    unit = (Path(__file__).parents[2] / "contrib" / "linkgauge-watch.service").read_text()
    (typed,) = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    assert "%" not in typed.replace("%%", ""), "systemd would replace it"
    path, name, *words = shlex.split(typed.replace("%%", "%"))
    assert (path.rpartition("/")[2], name) == ("linkgauge", "watch")
    parser = command(name, COMMANDS[name])
    parser.make_context(name, words)
    assert "SuccessExitStatus=143" in unit
