"""`linkgauge check` as a prolog calls it, on simulated machines."""

import json
import re
import time
from datetime import datetime
from pathlib import Path

import pytest

from command_kit import called
from linkgauge.backends.sim import described
from linkgauge.cli.check import ending
from linkgauge.engine import bounded
from linkgauge.engine.brief import brief_settings
from linkgauge.engine.request import RunRequest
from linkgauge.judge.health import health_of
from linkgauge.report.formats import formats
from linkgauge.report.health_text import Checked, condition_of
from report.test_output import compare as as_golden

NODE = ("--machine", "dgx-h200-8")
FAULTS = (
    ("lost sim:5 cells=4", "lost sim:5"),
    ("flip sim:3", "wrong-bytes sim:3"),
    ("slow nvswitch rate=25%", "nvswitch"),
    ("crash sim:2 cells=2", "crash PCIe link of sim:2"),
)


def check(*arguments, **environment):
    done = called("check", *arguments, **environment)
    return done.returncode, done.stdout, done.stderr


def test_a_healthy_node_is_one_line_and_0(tmp_path):
    code, out, err = check(*NODE, "--devices", 8, cwd=tmp_path)
    assert code == 0, err
    assert re.fullmatch(r"ok: 78 cells measured in \d+\.\d s SIMULATED\n", out)
    assert not err
    assert not list(tmp_path.iterdir()), "nothing is kept"


@pytest.mark.parametrize(("fault", "cause"), FAULTS)
def test_a_fault_is_one_line_with_its_cause_and_1(fault, cause):
    code, out, _ = check(*NODE, "--fault", fault)
    assert code == 1
    (line,) = out.splitlines()
    assert line.startswith("not ok: ")
    assert cause in line


def test_a_node_without_all_of_its_devices_is_not_healthy():
    code, out, _ = check(*NODE, "--devices", 9)
    assert code == 1
    assert out.startswith("not ok: 8 of 9 accelerators are there: found sim:0, sim:1")


def test_a_hanging_device_costs_no_more_than_the_given_time():
    began = time.monotonic()
    code, out, _ = check(*NODE, "--under", "6s", "--fault", "hang *")
    assert time.monotonic() - began < 6
    assert code == 1
    assert out.startswith("not ok: hung: host_to_device_memcpy_ce [0, 0] while measuring (host:0, ")
    assert "not measured: " in out


def test_the_condition_is_what_a_node_takes():
    code, out, err = check(*NODE, "--json", "--fault", "lost sim:5 cells=4")
    assert code == 1
    condition = json.loads(out)
    for name in ("lastHeartbeatTime", "lastTransitionTime"):
        assert datetime.fromisoformat(condition[name]).utcoffset() is not None
        out = out.replace(condition[name], "2026-11-24T18:00:00Z")
    as_golden("check.json", out)
    assert err == f"not ok: {condition['message']}\n"


def test_a_loss_against_a_baseline_is_found(tmp_path):
    code, _, err = check(*NODE, "--out", tmp_path / "kept", "--label", "good")
    assert code == 0, err
    (good,) = tmp_path.rglob("journal.jsonl")
    assert check(*NODE, "--baseline", good)[0] == 0
    code, out, _ = check(*NODE, "--baseline", good, "--fault", "slow sim:1 rate=90%")
    assert code == 1
    assert re.match(r"not ok: \S+ \[\S+, \S+\]: 10% less than the baseline, and \d+ more", out)
    code, out, _ = check("--machine", "ppu-2x2", "--baseline", good)
    assert code == 1
    assert "unlike the baseline: simulated machine: dgx-h200-8 (baseline); ppu-2x2 (node)" in out


def test_a_limit_is_held(tmp_path):
    limits = tmp_path / "limits.yml"
    limits.write_text('limits:\n  - {benchmark: "host_to_device_*", limit: ">= 90 GB/s"}\n')
    code, out, _ = check(*NODE, "--limits", limits)
    assert code == 1
    assert "host_to_device_memcpy_ce" in out
    assert "90" in out


@pytest.mark.parametrize("text", ["", "soon", "-5s", "2s", "25h", "5s5", "nan", "٦٠s"])
def test_a_time_that_cannot_be_kept_is_refused(text):
    done = called("check", "--machine", "ppu-8", f"--under={text}")
    assert done.returncode == 2
    assert done.stderr.startswith("linkgauge: --under ")


@pytest.mark.parametrize("arguments", [("--under", "2s"), ("--backend", "nope"), ("--fault", "x")])
def test_bad_usage_is_2(arguments):
    code, out, err = check(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("linkgauge: ")


def test_what_cannot_even_be_opened_is_named_and_its_processes_are_gone(tmp_path, monkeypatch):
    """As of a driver that hangs when it is opened: the process and its own are killed."""
    said = json.dumps({"type": "Doing", "what": "opening the devices"})
    monkeypatch.setattr(
        bounded, "_PROGRAM",
        "import os, time\n"
        "worker = os.fork()\n"
        "if worker:\n"
        f"    open({str(tmp_path / 'pids')!r}, 'w').write(f'{{os.getpid()}} {{worker}}')\n"
        f"    print({said!r}, flush=True)\n"
        "time.sleep(60)\n",
    )  # fmt: skip
    began = time.monotonic()
    task = bounded.Task(RunRequest(settings=brief_settings(10, None)), began + 1)
    found = bounded.measure_within(task, tmp_path)
    assert time.monotonic() - began < 4
    condition = condition_of(Checked(health_of(found), "2026-11-24T18:00:00Z"))
    assert (condition.status, condition.reason) == ("False", "Hung")
    assert condition.message == "hung while opening the devices"
    for pid in tmp_path.joinpath("pids").read_text().split():
        assert state_of(pid) in (None, "Z")


def state_of(pid):
    """The state of a process; None if there is none."""
    for _ in range(50):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return None
        if state == "Z":
            return state
        time.sleep(0.02)
    return state


def test_a_process_that_breaks_is_a_failure_with_its_last_line(tmp_path, monkeypatch):
    monkeypatch.setattr(bounded, "_PROGRAM", "raise SystemExit('no driver for this kernel')")
    task = bounded.Task(RunRequest(settings=brief_settings(10, None)), time.monotonic() + 5)
    health = health_of(bounded.measure_within(task, tmp_path))
    assert health.reason == "CheckFailed"
    message = condition_of(Checked(health, "")).message
    assert message == "no driver for this kernel"


def test_what_was_not_reached_in_time_fails_by_name(tmp_path):
    """Of a run whose cells are all well."""
    request = RunRequest(
        settings=brief_settings(10, described("ppu-2x2", ())), backends=("sim",), out=str(tmp_path)
    )
    found = bounded.measure_within(bounded.Task(request, time.monotonic() + 9), tmp_path)
    assert health_of(found).is_healthy, found
    late = bounded.Bounded(9.0, found.run, ("all_reduce [a, b]",))
    health = health_of(late)
    assert health.reason == "NotMeasured"
    assert condition_of(Checked(health, "")).message == (
        "not measured within 9 s: all_reduce [a, b] SIMULATED"
    )


def test_a_check_that_hangs_itself_ends_at_the_deadline(monkeypatch):
    said, codes = [], []
    monkeypatch.setattr("os.write", lambda _, data: said.append(data.decode()))
    monkeypatch.setattr("os._exit", codes.append)
    for name in ("terminal", "json"):
        with ending(time.monotonic() + 0.05, formats()[name]):
            time.sleep(0.3)
    assert codes == [1, 1]
    assert said[0] == "not ok: the check itself hung\n"
    assert json.loads(said[1])["reason"] == "Hung"
