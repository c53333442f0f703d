"""Thirty situations, each asked of every command that judges: a figure has one verdict and one
share, and a run one word and one exit code, whoever says it.

Three answers differ, because they know less or are asked something else. `watch` spends no more
than its budget: it measures no pairs of devices alone, without which a collective is perhaps low,
and two probes of it cannot tell jitter from a loss. What `judge` reads has one figure for a cell,
which shows no jitter and no link that trained low. `gate` says whether anything is worse than a
baseline, or beyond a limit, which may be stricter than what the hardware should reach."""

import json
from typing import NamedTuple

import pytest

import linkgauge
from command_kit import called
from linkgauge.rooms.watch.probes import WallClock
from sim_kit import MACHINE

TO, FROM = "host_to_device_memcpy_ce", "device_to_host_memcpy_ce"
COPIES, PEERS = (TO, FROM), ("device_to_device_memcpy_write_ce",)
HOST, SUM = ("host_to_host_memcpy_read_cpu",), ("all_reduce",)
ADAPTERS = """
source: a test's; each device stands for a network adapter of a node
host:
  cpu_model: Test CPU
  nodes: [{count: 1, cpus: 8, memory: 64G}]
link_kinds:
  ndr: {kind: fabric, rate: 50 GB/s, efficiency: {read: 0.95, write: 0.95}}
switches: [{name: leaf0, kind: fabric}]
devices: [{count: 6, model: Test adapter, memory: 8G, memory_rate: 1 TB/s, node: true}]
links: [{kind: ndr, each: sim:0..5, to: leaf0}]
"""
LIMITS = 'limits:\n- {limit: "≥ 75% × achievable"}\n'
MEASURING = ("run", "check", "watch", "scale")
AS_PEERS = {"ok", "not judged"}
"""What is held against its peers has no verdict where they are not measured, too."""
SHORT = ("watch", "judge")
"""The commands that have too few samples to see what is rare."""


class Situation(NamedTuple):
    """A machine, its faults, what is measured, and the word and the exit code of the run. Without a
    word, all that counts is that everybody says the same."""

    machine: str
    what: tuple[str, ...]
    word: str | None = None
    code: int = 0
    faults: tuple[str, ...] = ()
    is_rare: bool = False
    is_large: bool = False


def at_depths(machine, what, fault, *answers):
    """The same fault at several depths, each with its answer."""
    return [Situation(machine, what, *answer, faults=(f"{fault} rate={rate}%",))
            for rate, *answer in answers]  # fmt: skip


SITUATIONS = [
    # healthy: one, two, eight devices; products; adapters; without counters; host
    Situation("1 x H100 SXM", COPIES, "ok"),
    Situation("2 x H200", COPIES + PEERS, "ok"),
    Situation("2 x MI300X", COPIES + PEERS + SUM, "ok"),
    Situation("dgx-h200-8", COPIES + PEERS + SUM, "ok"),
    Situation("riscv-2gpu", COPIES + PEERS, "ok"),
    Situation("ppu-2x2", COPIES, "ok"),
    Situation("ring-8", PEERS, "ok"),
    Situation("ipu-m2000", COPIES, "ok"),
    Situation("rbln-32", (TO,), "ok", is_large=True),
    Situation("adapters.yml", PEERS + SUM, "ok"),
    Situation("own.yml", COPIES + PEERS, "ok"),
    Situation("dgx-h200-8", HOST, "ok"),
    # a link that trained low: everything on it is degraded
    Situation("vm-degraded", COPIES, "fail", 1),
    # each kind of fault at three depths
    *at_depths("2 x H200", COPIES, "slow sim:1", (60, "fail", 1), (50, "fail", 1), (25, "fail", 1)),
    *at_depths("dgx-h200-8", COPIES, "slow sim:3",
               (85, "low", 1), (50, "fail", 1), (25, "fail", 1)),
    *at_depths("dgx-h200-8", PEERS, "slow sim:2-nvswitch",
               (78, "fail", 1), (50, "fail", 1), (25, "fail", 1)),
    *at_depths("dgx-h200-8", (TO,), "slow sim:1-host:0",
               (50, "fail", 1), (25, "fail", 1), (12, "fail", 1)),
    *at_depths("adapters.yml", PEERS, "slow sim:1-leaf0", (50, "fail", 1)),
    *at_depths("own.yml", PEERS, "slow sim:1-sim:2",
               (85, "low", 1), (50, "fail", 1), (20, "fail", 1)),
    *at_depths("dgx-h200-8", SUM, "slow sim:2", (75,), (50,), (25, "fail", 1)),
    # what is rare, and wrong bytes
    Situation("dgx-h200-8", COPIES, "warn", 0, ("jitter sim:3 sigma=9%",), is_rare=True),
    Situation("2 x H200", COPIES, "fail", 1, ("flip sim:1",)),
]  # fmt: skip


def figures(folder):
    """The verdict and the share of each figure of a kept run, as Python has them."""
    rows = [row for row in linkgauge.load(folder).cells if row.status == "pass"]
    return {(row.benchmark, row.row, row.column): (row.verdict, row.share) for row in rows}


def kept_in(out):
    return [path.parent for path in sorted(out.rglob("*.jsonl"))]


class Answers:
    """What the commands say of a situation: `said` has the word and the exit code of each, `own`
    the figures of those that measure or read them anew."""

    def __init__(self, of, folder):
        texts = {"own.yml": MACHINE, "adapters.yml": ADAPTERS, "limits.yml": LIMITS}
        for name, text in texts.items():
            (folder / name).write_text(text)
        self._of, self._folder = of, folder
        self._on = ["--machine", of.machine, *(w for one in of.faults for w in ("--fault", one))]
        self.said, self.own = {}, {}
        self.run = self.ask("run", *of.what, *self._on, "--size", "512M", "--samples", 6,
                            "--no-report", "--out", "run")  # fmt: skip
        (self._kept,) = kept_in(folder / "run")

    def ask(self, command, *words):
        done = called(command, *words, "--json", cwd=self._folder)
        assert done.stdout, done.stderr
        document = json.loads(done.stdout.splitlines()[-1] if command == "watch" else done.stdout)
        assert done.returncode == document["exit_code"]
        if command != "watch":
            assert [*document][:4] == ["schema", "verdict", "exit_code", "findings"]
        self.said[command] = document["verdict"], document["exit_code"]
        for path in kept_in(self._folder / command) if command in MEASURING else ():
            self.own[command] = self.own.get(command, {}) | figures(path)
        return document

    def read(self):
        """Asks those that read what was measured."""
        for command in ("show", "doctor"):
            self.ask(command, self._kept)
        one = linkgauge.load(self._kept)
        self.said["Python"] = one.outcome.word, one.exit_code
        self.own["Python"] = figures(self._kept)

    def measure(self):
        """Asks those that measure themselves."""
        of, on = self._of, self._on
        if not of.is_large:
            self.ask("check", *on, "--under", "10m", "--out", "check")
        self.ask("watch", *of.what, *on, "--size", "512M", "--probes", 2, "--budget", "90%",
                 "--every", "1h", "--out", "watch")  # fmt: skip
        if of.what == SUM:
            self.scaling = self.ask("scale", *on, "--size", "512M", "--no-report", "--out", "scale")

    def gate(self):
        """Holds the run against itself: nothing is lost but what misses a limit."""
        ends = ("--baseline", self._kept, "--current", self._kept, "--limits", "limits.yml")
        return self.ask("gate", *ends, "--force", "--no-history", "--allow-noisy")

    def judge(self):
        """Writes what nvbandwidth would print there, and has it judged."""
        copies = [name for name in self._of.what if "memcpy_ce" in name]
        tool = called("as", *self._on, "nvbandwidth", "-t", *copies, cwd=self._folder)
        (self._folder / "nvbandwidth.txt").write_text(tool.stdout)
        self.ask("judge", "nvbandwidth.txt", "--machine", self._of.machine, "--out", "judge")
        (path,) = (self._folder / "judge").rglob("run.json")
        self.own["judge"] = figures(path.parent)


def test_there_are_thirty():
    assert len(SITUATIONS) >= 30


@pytest.mark.parametrize("of", SITUATIONS, ids=lambda of: " ".join((of.machine, *of.faults)))
def test_a_situation_has_one_answer(of, tmp_path, monkeypatch):
    monkeypatch.setattr(WallClock, "sleep", lambda self, seconds: None)
    every = Answers(of, tmp_path)
    every.read()
    every.measure()
    gate = every.gate()
    if set(of.what) <= {*COPIES} and "flip" not in "".join(of.faults):
        every.judge()
    print(f"\n| {of.machine} {' '.join(of.faults)} | {every.said}")

    assert every.said["run"] == (of.word, of.code) or of.word is None
    check_runs(every, of)
    check_figures(every, of)
    check_gate(every, gate)


def check_runs(every, of):
    """The words and the exit codes."""
    answer = every.said["run"]
    for command, said in every.said.items():
        if command == "gate" or (of.is_rare and command in SHORT):
            continue
        if command == "watch" and of.what == SUM:
            assert said[1] <= answer[1]
        else:
            assert said == answer, command


def check_figures(every, of):
    """The verdict and the share of each figure."""
    # Which figures jitter reaches differs from one measurement to the next.
    for command in every.own.keys() - ({*SHORT, *MEASURING} if of.is_rare else {"run"}):
        for key in every.own["run"].keys() & every.own[command].keys():
            (verdict, share), (other, same) = every.own["run"][key], every.own[command][key]
            if (verdict, other, command) == ("degraded", "low", "judge"):
                verdict = "low"  # no text says that the link trained low
            if (verdict, other, command, of.what) == ("low", "perhaps low", "watch", SUM):
                verdict = other  # without pairs alone
            assert other == verdict or {other, verdict} == AS_PEERS, (command, key)
            if command == "Python":
                assert same == share
            elif None not in (share, same):
                assert same == pytest.approx(share, rel=0.05)
    if of.what == SUM:
        count = every.scaling["counts"][-1]
        assert count["verdict"] in {word for word, _ in every.own["run"].values()}


def check_gate(every, gate):
    """The gate has the run's findings, and what is low misses a limit."""
    found = [one["found"] for one in every.run["findings"]]
    assert [one["found"] for one in gate["findings"]] == found
    own = every.own["run"].items()
    low = {key for key, (word, share) in own if word == "low" and (share or 0.0) < 0.75}
    missed = {
        (cell["cell"]["benchmark"], cell["cell"]["row"], cell["cell"]["column"])
        for cell in gate["cells"] if cell["verdict"] == "worse status"
    }  # fmt: skip
    assert low <= missed


def test_without_a_verdict_no_document_has_one(tmp_path):
    slow = ("run", TO, "--machine", "2 x H200", "--fault", "slow sim:1 rate=25%", "--no-report")
    done = called(*slow, "--json", "--no-verdict", "--out", tmp_path)
    (kept,) = kept_in(tmp_path)
    again = called("show", kept, "--json", "--no-verdict")
    for each in (done, again):
        document = json.loads(each.stdout)
        said = document["verdict"], document["exit_code"], document["findings"]
        assert (said, each.returncode) == (("not judged", 0, []), 0)
        cells = [cell for result in document["results"] for cell in result["cells"]]
        assert {cell["verdict"] for cell in cells} == {"not judged"}
    assert json.loads(called("show", kept, "--json").stdout)["verdict"] == "fail"


@pytest.mark.parametrize(("width", "has"), [(64, False), (140, True)])
def test_a_narrow_screen_keeps_the_least_and_the_verdict(tmp_path, width, has):
    faults = ("--fault", "slow sim:3 rate=25%")
    called("run", "--prefix", "host_to_", "--prefix", "device_to_host", "--prefix", "device_local",
           "--machine", "dgx-h200-8", *faults, "--profile", "quick", "--no-report",
           "--out", tmp_path)  # fmt: skip
    (kept,) = kept_in(tmp_path)
    lines = called("show", kept, COLUMNS=width).stdout.splitlines()
    # The rows of the table stand above lines that name the same cells.
    rows = {words[0]: words[1:] for line in lines[::-1] if (words := line.split())}
    assert rows["host_to_device_memcpy_ce"][:2] == ["55.32", "13.85"]
    assert "low" in rows["host_to_device_memcpy_ce"]
    assert "low" in rows["device_local_copy"]  # a quarter of its peers
    assert ("55.34" in rows["host_to_device_memcpy_ce"]) == has


def test_words_say_what_a_share_is_of(tmp_path):
    asked = ("run", *COPIES, "--machine", "dgx-h200-8", "--fault", "slow sim:3 rate=85%",
             "--no-report", "--out", tmp_path)  # fmt: skip
    text = called(*asked).stdout
    document = json.loads(called(*asked, "--json").stdout)
    assert "sim:3 -> host:0 reaches 85% of what its peers reach" in " ".join(text.split())
    assert "of what is expected" not in text
    low = [cell for one in document["results"] for cell in one["cells"] if cell["verdict"] == "low"]
    assert [cell["expected"]["peers"] for cell in low] == [8, 8]
