"""`linkgauge vary` as a user types it: on a simulated machine, in few rounds."""

import json
import os
import re
import shlex
import signal
import subprocess
from itertools import pairwise

import pytest

from command_kit import called
from linkgauge.cli.main import application
from linkgauge.model.errors import LinkgaugeError
from linkgauge.rooms.vary.rounds import prepare
from sim_kit import in_process

COPY = "host_to_host_memcpy_copy_cpu"
HALF = ("--machine", "riscv-2gpu", "--cpus", "0-15", "--cpus", "0-7", "--size", "1M")
FEW = ("--rounds", "4", "--significance", "0.2")


def vary(*arguments):
    """The command in this process, workers included: its exit code."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("linkgauge.rooms.vary.rounds.opened", in_process)
        return application()(["vary", *map(str, arguments)], standalone_mode=False)


@pytest.mark.parametrize(
    ("given", "settings"),
    [
        ("--cpus 0-3 --cpus 0,4 --env N=1,2", ["--cpus 0-3 N=1", "--cpus 0-3 N=2",
                                               "--cpus 0,4 N=1", "--cpus 0,4 N=2"]),
        ("--env A=1 --env B=2 --env A=3", ["A=1 B=2", "A=3 B=2"]),
        ("--env 'A={0\\,1},2'", ["A={0,1}", "A=2"]),
        ("--memory pinned --memory pageable", ["--memory pinned", "--memory pageable"]),
    ],
)  # fmt: skip
def test_settings_are_every_combination_of_the_values(given, settings, tmp_path, capsys):
    words = (COPY, *HALF[:2], "--size", "1M", "--samples", "1", *FEW, *shlex.split(given))
    assert vary(*words, "--out", tmp_path) in (0, 4)
    shown = re.findall(r"^[A-Z] {8}(\S.*?)(?: \(.*)?$", capsys.readouterr().out, re.MULTILINE)
    assert shown == settings


def test_ctrl_c_keeps_what_was_measured(tmp_path):
    strike = "test $LINKGAUGE_ROUND$LINKGAUGE_SETTING != 2A || { kill -INT $PPID; sleep 9; }"
    done = called("vary", COPY, *HALF, *FEW, "--prepare", strike, "--out", tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (130, False)
    assert "1 round of one run each, in random order (ended before all 4)" in done.stdout
    (path,) = tmp_path.rglob("vary.json")
    assert json.loads(path.read_text())["finished"] is None


def test_ctrl_c_while_the_command_starts_ends_it(monkeypatch):
    started = []

    class Struck(subprocess.Popen):
        def __init__(self, *words, **options):
            super().__init__(*words, **options)
            started.append(self)
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Struck)
    with pytest.raises(KeyboardInterrupt):
        prepare("sleep 9", {}, "A, round 1")
    assert [process.returncode for process in started] == [-signal.SIGTERM]


@pytest.mark.parametrize(("prepare", "rounds"), [("echo no; exit 4", 0), ("test {} != 3", 2)])
def test_a_command_that_fails_leaves_what_was_measured(prepare, rounds, tmp_path, capsys):
    with pytest.raises(LinkgaugeError, match=rf"--prepare failed .* round {rounds + 1} \(exit"):
        vary(COPY, *HALF, *FEW, "--prepare", prepare.format("$LINKGAUGE_ROUND"), "--out", tmp_path)
    said = capsys.readouterr().out
    assert f"{rounds} rounds of one run each" in said if rounds else said == ""
    assert bool([*tmp_path.iterdir()]) is bool(rounds)


CROSSING = """
source: made up for tests
noise: 0%
host:
  cpu_model: Test CPU
  nodes: [{count: 2, cpus: 8, memory: 4G, rate: 100 GB/s}]
link_kinds:
  pcie: {kind: pcie, rate: 20 GB/s, sm_efficiency: {read: 0.5, write: 0.5}}
  upi: {kind: socket, rate: 10 GB/s}
devices:
  - {count: 2, model: Test Card, memory: 1G, memory_rate: 1 TB/s,
     ce: {startup: 8 us}, sm: {startup: 2 us}}
links:
  - {kind: pcie, each: sim:0..1, to: host:0}
  - {kind: upi, pairs: [[host:0, host:1]]}
"""
"""Kernels start sooner, copy engines are faster. Memory of node 1 is behind a slow link."""


@pytest.fixture
def machine(tmp_path):
    path = tmp_path / "crossing.yml"
    path.write_text(CROSSING)
    return path


def experiments():
    return [line.split()[0] for line in called("vary", "--experiment", "list").stdout.splitlines()
            if line.endswith("?")]  # fmt: skip


@pytest.mark.parametrize("name", experiments())
def test_each_experiment_is_a_question_and_a_command_that_anybody_could_type(
    name, machine, tmp_path, monkeypatch, capsys
):
    asked = []
    monkeypatch.setattr(
        "linkgauge.rooms.vary.carrying_out.carry_out", lambda what, form: asked.append(what) or 0
    )
    vary("--experiment", name, "--machine", machine, "--out", "here")
    question, line = capsys.readouterr().out.splitlines()[:2]
    tool, command, *words = shlex.split(line)
    assert (question[-1], tool, command) == ("?", "linkgauge", "vary")
    assert "--experiment" not in words
    vary(*words)
    assert asked[0] == asked[1]
    values = [variant.setting.values for variant in asked[0].variants]
    assert sum(len({one[option] for one in values}) > 1 for option in values[0]) == 1
    vary("--experiment", name, "--machine", machine, "--size", "4K", "--label", "of mine")
    words = shlex.split(capsys.readouterr().out.splitlines()[1])
    given = [pair for pair in pairwise(words) if pair[0] == "--size"]
    assert given == [("--size", "4K")], "it replaces the experiment's own"
    assert "of mine" in words


def test_far_memory_is_told_from_near_memory(machine, tmp_path, capsys):
    run = ("--experiment", "node", "--machine", machine, "--device", "0", *FEW)
    assert vary(*run, "--out", tmp_path, "--json") == 0
    cells = json.loads(capsys.readouterr().out)["cells"]
    found = [[cell["settings"][number]["direction"] for cell in cells] for number in range(3)]
    assert found == [["unknown"] * 2, ["same"] * 2, ["worse"] * 2]


@pytest.mark.parametrize("name", ["write-combined", "pinned", "managed"])
def test_an_experiment_without_a_device_says_so(name, tmp_path):
    hosts = CROSSING[: CROSSING.index("devices:")] + CROSSING[CROSSING.index("links:") :]
    path = tmp_path / "host.yml"
    path.write_text(hosts.replace("  - {kind: pcie, each: sim:0..1, to: host:0}\n", ""))
    done = called("vary", "--experiment", name, "--machine", path, "--out", tmp_path)
    assert (done.returncode, "nothing to measure: no accelerator" in done.stderr) == (2, True)


NODES = 20
NOISY = f"""
source: made up for tests
noise: 5%
noise_buffers: 5%
noise_moments: 5%
host:
  cpu_model: Test CPU
  nodes: [{{count: {NODES}, cpus: 2, memory: 4G, rate: 300 GB/s, latency: 100 ns}}]
link_kinds:
  upi: {{kind: socket, rate: 30 GB/s}}
links:
  - {{kind: upi, mesh: host:0..{NODES - 1}}}
"""
"""So many nodes, each a measurement of its own; a thread moves less than the memory could."""


def test_of_the_same_placement_one_cell_at_most_is_different_and_of_half_the_cpus_all(
    tmp_path, capsys
):
    """`bench/vary_differences.py` does the same on real machines."""
    path = tmp_path / "noisy.yml"
    path.write_text(NOISY)
    half = ",".join(str(2 * node) for node in range(NODES))
    asked = ("--machine", path, "--size", "1M", "--samples", "3", "--env", "AGAIN=1,2")
    cpus = ("--cpus", f"0-{2 * NODES - 1}", "--cpus", half)
    vary("host_threads_memcpy_copy_cpu", *asked, *cpus, "--out", tmp_path, "--json")
    document = json.loads(capsys.readouterr().out)
    cells = [cell for cell in document["cells"] if cell["column"] == "all threads"]
    assert len(cells) == NODES
    _, again, *halves = zip(*(
        [each["direction"] for each in cell["settings"]] for cell in cells
    ), strict=True)  # fmt: skip
    assert sum(one != "same" for one in again) <= 1
    assert halves == [("worse",) * NODES] * 2
    orders = {n: [one["setting"] for one in document["runs"] if one["round"] == n]
              for n in range(10)}  # fmt: skip
    assert all(sorted(order) == [0, 1, 2, 3] for order in orders.values())
    assert all(orders[n] == orders[n + 1][::-1] for n in range(0, 10, 2))
