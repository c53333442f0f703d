"""`linkgauge check` as a prolog calls it, on simulated machines."""

import json
import re
import resource
import shlex
import threading
import time
from pathlib import Path

import kubernetes_validate
import pytest

from command_kit import called, linkgauge, with_processes
from linkgauge.machine.processes import process
from linkgauge.rooms.check import bounded

NODE = ("--machine", "dgx-h200-8")


def check(*arguments, **environment):
    done = called("check", *arguments, **environment)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("fault", "cause"),
    [("flip sim:3", "wrong-bytes sim:3"), ("crash sim:2 cells=2", "crash PCIe link of sim:2")],
)
def test_a_fault_is_one_line_with_its_cause_and_1(fault, cause):
    code, out, _ = check(*NODE, "--fault", fault)
    (line,) = out.splitlines()
    assert (code, line.startswith("not ok: "), cause in line) == (1, True, True)


def test_a_hanging_device_costs_no_more_than_the_given_time():
    began = time.monotonic()
    code, out, _ = check(*NODE, "--under", "7s", "--fault", "hang *")
    assert time.monotonic() - began < 7
    assert code == 1
    assert re.match(r"not ok: hung: \S+_memcpy_ce host:0 -> sim:0 while measuring \(host:0, ", out)
    assert "not measured: " in out


def test_a_loss_against_a_baseline_is_found(tmp_path):
    code, _, err = check(*NODE, "--out", tmp_path / "kept", "--label", "good")
    assert code == 0, err
    (good,) = tmp_path.rglob("journal.jsonl")
    assert check(*NODE, "--baseline", good)[0] == 0
    # All are slower, which no peer shows.
    faults = [word for n in range(8) for word in ("--fault", f"slow sim:{n} rate=90%")]
    code, out, _ = check(*NODE, "--baseline", good, *faults)
    assert code == 1
    assert re.match(
        r"not ok: \S+ \[.+, .+\]: 1[01]% (less|longer) than the baseline, and \d+ more cells?", out
    )
    code, out, _ = check("--machine", "ppu-2x2", "--baseline", good)
    assert code == 1
    assert "unlike the baseline: simulated machine: dgx-h200-8 (baseline); ppu-2x2 (node)" in out


def test_a_baseline_of_runs_is_refused_with_the_commands_that_make_the_right_one(
    tmp_path, monkeypatch
):
    """A person who follows the message gets an answer."""
    monkeypatch.chdir(tmp_path)
    few = ("host_to_device_memcpy_ce", "--profile", "quick", "--no-report")
    for label in "ab":
        assert called("run", *few, *NODE, "--label", label).returncode == 0
    assert called("baseline", "a", "b", "-o", "b.json").returncode == 0
    for under in ((), ("--under", "20s")):
        code, out, err = check(*NODE, *under, "--baseline", "b.json")
        assert (code, out, err.count("\n")) == (2, "", 1)
        typed = err.partition(": make a baseline of a check: ")[2].split("&&")
        commands = [shlex.split(one) for one in typed]
        assert [one[1] for one in commands] == ["check", "baseline"]
        for words in commands:
            done = called(*words[1:])
            assert done.returncode == 0, done.stderr
        code, out, err = check(*NODE, *under, "--baseline", "good.json")
        assert (code, out.startswith("ok: ")) == (0, True), out + err


@pytest.mark.parametrize("command", ["check", "run host_to_device_memcpy_ce", "scale"])
def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_measured(
    command, tmp_path, monkeypatch
):
    monkeypatch.setattr(bounded, "measure_within", pytest.fail)
    monkeypatch.setattr("linkgauge.engine.session.execute", pytest.fail)
    file = tmp_path / "file"
    file.touch()
    done = called(*command.split(), *NODE, "--out", file / "below")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert f"cannot write results to {file / 'below'}: Not a directory" in done.stderr


def measure_by(monkeypatch, program):
    """The process that measures, which is not a thread of this one, does this instead."""
    with_processes(monkeypatch)
    monkeypatch.setattr(process, "_PROGRAM", program)


def test_what_cannot_even_be_opened_is_named_and_its_processes_are_gone(tmp_path, monkeypatch):
    """As of a driver that hangs when it is opened: the process and its own are killed."""
    measure_by(
        monkeypatch,
        "import os, time\n"
        "worker = os.fork()\n"
        "if worker:\n"
        f"    open({str(tmp_path / 'pids')!r}, 'w').write(f'{{os.getpid()}} {{worker}}')\n"
        "    import sys, socket\n"
        "    sys.path[:] = sys.argv[5:]\n"
        "    from linkgauge.rooms.check.bounded import Channel, CheckStep, encode\n"
        "    end = Channel(socket.socket(fileno=int(sys.argv[2])))\n"
        "    end.send(encode(CheckStep('opening the devices')))\n"
        "time.sleep(60)\n",
    )  # fmt: skip
    code, out, _ = check(*NODE, "--under", "5s", "--json")
    told = json.loads(out)["condition"]
    assert (code, told["status"], told["reason"]) == (1, "False", "Hung")
    assert told["message"].startswith("hung while opening the devices")
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


def test_a_process_that_breaks_is_a_failure_with_its_last_line(monkeypatch):
    measure_by(monkeypatch, "raise SystemExit('no driver for this kernel')")
    document = json.loads(check(*NODE, "--json")[1])
    assert [*document] == ["schema", "verdict", "exit_code", "findings", "condition"]
    assert (document["verdict"], document["exit_code"]) == ("not judged", 1)
    told = document["condition"]
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "one"}}
    kubernetes_validate.validate({**node, "status": {"conditions": [told]}}, "1.31", strict=True)
    assert told["reason"] == "CheckFailed"
    assert told["message"].startswith("no driver for this kernel")


@pytest.mark.parametrize(
    ("form", "says"), [((), "not ok: the check itself hung\n"), (("--json",), '"reason": "Hung"')]
)
def test_a_check_that_hangs_itself_ends_at_the_deadline(monkeypatch, form, says):
    said, codes, ended = [], [], threading.Event()

    def hang(*_, **__):
        assert ended.wait(30)
        raise SystemExit

    def leave(code):
        codes.append(code)
        ended.set()

    monkeypatch.setattr(bounded, "measure_within", hang)
    monkeypatch.setattr("os.write", lambda _, data: said.append(data.decode()))
    monkeypatch.setattr("os._exit", leave)
    check(*NODE, "--under", "5s", *form)
    assert codes == [1]
    assert says in said[0]


def test_the_line_of_a_healthy_node_names_the_worst_that_was_read():
    line = called("check", "--machine", "dgx-h200-8", "--fault", "hot sim:3 celsius=91").stdout
    assert line.startswith("ok: 78 cells measured in ")
    assert "; the lowest reaches 9" in line
    assert "; the hottest is sim:3 at 91 °C" in line


def test_a_check_takes_less_than_a_second_of_the_processors_time():
    """The least of some, since others have this machine's processors, too."""

    def seconds():
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert linkgauge("check", "--machine", "dgx-h200-8").returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert any(seconds() <= 1.0 for _ in range(6))
