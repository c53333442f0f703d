"""`linkgauge` without a command looks at this machine, and names commands that fit it."""

import json
import os
import signal

import pytest
from msgspec.structs import replace

from command_kit import called, linkgauge
from fakes import machine
from linkgauge.cli.look import _fitting
from linkgauge.cli.main import COMMANDS
from linkgauge.engine.workers.supervisor import Supervisor
from linkgauge.model.hardware.machine import Device
from linkgauge.report.sections.glance import Glance, glance_blocks


def test_it_counts_what_a_dry_run_would_measure_and_names_commands(tmp_path):
    done = linkgauge("--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    plan = json.loads(called("run", "--profile", "quick", "--dry-run", "--json").stdout)
    cells = [cell for table in plan["plan"] for cell in table["cells"] if not cell["reason"]]
    assert sum(told["figures"].values()) == len(cells) > 0
    assert told["most_seconds"] == pytest.approx(plan["most_seconds"])
    typed = [one["command"].split() for one in told["commands"]]
    assert [words[0] for words in typed] == ["linkgauge"] * 4
    assert {words[1] for words in typed} <= {*COMMANDS}
    shown = linkgauge(cwd=tmp_path).stdout
    assert all(one["command"] in shown for one in told["commands"])
    assert "\x1b" not in shown


def test_its_format_does_not_belong_before_a_command():
    done = called("--json", "run")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "linkgauge: --json belongs behind the command: linkgauge run --json\n"


def test_a_kept_run_is_looked_at_first_and_devices_are_checked(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    verbs = [[one.words[1] for one in _fitting(devices=devices)] for devices in (False, True)]
    assert verbs == [["run", "doctor", "run", "judge"], ["run", "doctor", "check", "judge"]]
    called("run", "cpu_primes_single", "--backend", "host", "--samples", "1", cwd=tmp_path)
    first, second, third, last = _fitting(devices=True)
    assert first.words[:2] == ("linkgauge", "doctor")
    assert first.words[2].startswith("results/")
    assert (second.words[1], third.words[1]) == ("run", "check")
    assert "docs/slow-training.md" in last.comment


def test_accelerators_are_named_and_processors_are_none():
    cards = tuple(Device(f"cuda:{n}", "Card", 1, 1, pci=f"0000:0{n}:00.0") for n in range(2))
    cpu = Device("opencl:0", "CPU", 1, 1, is_cpu=True)
    of = replace(machine(unavailable={"x": "why"}), devices={"cuda": cards, "opencl": (cpu,)})
    lines = ["".join(span.text for span in line)
             for line in next(iter(glance_blocks(Glance(of, {}, 0, [])))).lines]  # fmt: skip
    assert "2 × Card (cuda:0-1)" in lines
    assert not any("opencl:0" in line or "why" in line for line in lines)


def test_a_backend_that_does_not_open_in_time_is_named_as_such():
    worker = Supervisor(brief=0.3)
    try:
        stopped = worker._worker("cuda").process.pid
        os.kill(stopped, signal.SIGSTOP)
        found = worker.survey(["cuda"])
    finally:
        worker.close()
    assert "no answer within 0.3 s" in found.unavailable["cuda"]
    assert found.unanswered == ("cuda",)
    assert found.host.cpus
