"""Experiments by name: each is a command line, shown first, that answers one question."""

import json
import shlex
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.test_vary import show, vary
from linkgauge.benchmarks.catalog import select
from linkgauge.cli.vary_experiments import (
    EXPERIMENTS,
    LIST,
    complete_experiment,
    expanded,
)
from linkgauge.engine.varying import Rounds, plan_all
from linkgauge.model.errors import InputError
from report.test_output import compare as as_golden
from vary_kit import opening

FEW = ("--rounds", "4", "--significance", "0.2")
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
"""Kernels start sooner, copy engines are faster: copying pays from some size on. Memory of node 1
is behind a slow link."""


@pytest.fixture
def machine(tmp_path):
    path = tmp_path / "crossing.yml"
    path.write_text(CROSSING)
    return path


@pytest.fixture
def asked(monkeypatch):
    """What would be compared, in place of comparing it."""
    found = []

    def carry_out(comparison, form):
        found.append(comparison)
        return 0

    monkeypatch.setattr("linkgauge.cli.vary_rounds.carry_out", carry_out)
    return found


@pytest.mark.parametrize("name", EXPERIMENTS)
class TestEachExperiment:
    def test_asks_one_question_of_benchmarks_that_exist(self, name):
        experiment = EXPERIMENTS[name]
        assert experiment.question.endswith("?")
        names = [row.name for row in select(experiment.benchmarks, ())]
        assert sorted(names) == sorted(experiment.benchmarks)

    def test_varies_one_option(self, name, machine, asked):
        assert vary("--experiment", name, "--machine", machine) == 0
        (comparison,) = asked
        values = [variant.setting.values for variant in comparison.variants]
        assert len(values) > 1
        assert sum(len({one[option] for one in values}) > 1 for option in values[0]) == 1

    def test_is_planned_where_it_can_be_and_else_says_why(self, name, machine, asked):
        vary("--experiment", name, "--machine", machine)
        with opening():
            if name == "streams":
                with pytest.raises(InputError, match="--streams: only backend cuda supports this"):
                    plan_all(asked[0].variants, Rounds())
                return
            plans = plan_all(asked[0].variants, Rounds())
        assert all(sheet.cells for plan in plans for sheet in plan)
        # Each setting measures something of its own, but that near is one of the nodes.
        cells = {str([sheet.cells for sheet in plan]) for plan in plans}
        assert len(cells) == len(plans) - (name == "node")

    def test_is_what_anybody_could_have_typed(self, name, machine, asked, capsys):
        vary("--experiment", name, "--machine", machine, "--out", "here")
        shown = capsys.readouterr().out.splitlines()
        assert shown[0] == EXPERIMENTS[name].question
        tool, command, *words = shlex.split(shown[1])
        assert (tool, command, "--experiment" in words) == ("linkgauge", "vary", False)
        vary(*words)
        assert asked[1] == asked[0]


class TestWhatIsGivenBeside:
    def test_is_added(self):
        assert expanded("pinned", {"--rounds": ("20",), "--json": ()})[-3:] == (
            "--rounds", "20", "--json",
        )  # fmt: skip

    def test_replaces_the_experiments_own(self):
        words = expanded("mapped", {"--size": ("1M",), "--memory": ("wc",)})
        assert words == (
            "host_to_device_memcpy_ce", "device_to_host_memcpy_ce",
            "--engine", "sm", "--engine", "ce", "--size", "1M", "--memory", "wc",
        )  # fmt: skip
        assert expanded("graph", {"": ("latency_sync",)})[0] == "latency_sync"
        assert expanded("graph", {"--prefix": ("latency_",)})[0] == "--graph"

    def test_is_given_as_it_was_typed(self, machine, asked, capsys):
        typed = (
            "--backend", "sim", "--device", "0", "--device", "sim:1", "--max-time", "0.25",
            "--no-verify", "--label", "of mine", "--env", "A=1,2",
        )  # fmt: skip
        vary("--experiment", "pages", "--machine", machine, *typed)
        words = shlex.split(capsys.readouterr().out.splitlines()[1])
        pairs = list(zip(words, [*words[1:], ""], strict=True))
        for option, value in zip(typed[:8:2], typed[1:8:2], strict=True):
            assert (option, value) in pairs
        assert {("--label", "of mine"), ("--env", "A=1,2")} <= set(pairs)
        assert "--no-verify" in words
        assert len(asked[0].variants) == 6  # three kinds of pages, two values of A

    @given(
        st.sampled_from([name for name in EXPERIMENTS if name != "node"]),
        st.dictionaries(
            st.sampled_from(["--size", "--memory", "--rounds", "--engine", "--graph", "--label"]),
            st.lists(st.text(st.characters(exclude_characters="-")), min_size=1).map(tuple),
        ),
    )
    def test_is_all_that_its_options_say_whatever_it_is(self, name, options):
        words = expanded(name, options)
        for option, values in (EXPERIMENTS[name].options | options).items():
            pairs = pairwise(words)
            assert [value for word, value in pairs if word == option] == list(values)


class TestWhereItCannotRun:
    def test_one_node_is_neither_near_nor_far(self):
        with pytest.raises(InputError, match="riscv-2gpu has one NUMA node, so no memory is far"):
            vary("--experiment", "node", "--machine", "riscv-2gpu")

    @pytest.mark.parametrize("name", ["write-combined", "pinned", "managed"])
    def test_without_a_device_it_says_so(self, name, tmp_path):
        hosts = CROSSING[: CROSSING.index("devices:")] + CROSSING[CROSSING.index("links:") :]
        path = tmp_path / "host.yml"
        path.write_text(hosts.replace("  - {kind: pcie, each: sim:0..1, to: host:0}\n", ""))
        with pytest.raises(InputError, match=r"^nothing to measure: no accelerator"):
            vary("--experiment", name, "--machine", path, "--out", tmp_path)

    def test_what_no_device_reaches_is_told_after_one_round(self, machine, tmp_path, capsys):
        assert vary("--experiment", "managed", "--machine", machine, "--out", tmp_path) == 4
        said = capsys.readouterr().out
        assert "nothing compared: skip: a simulated device does not reach managed host" in said
        assert ", 1 round of a run each" in said

    def test_one_that_does_not_exist_is_refused(self):
        with pytest.raises(InputError, match="unknown experiment 'pined', did you mean 'pinned'"):
            vary("--experiment", "pined")
        with pytest.raises(InputError, match="unknown experiment 'x': there are pinned, write-c"):
            vary("--experiment", "x")


def test_from_which_size_on_copying_pays(machine, tmp_path, capsys):
    run = ("--experiment", "mapped", "--machine", machine, "--device", "0", *FEW)
    assert vary(*run, "--out", tmp_path) == 0
    said = capsys.readouterr().out.replace(str(tmp_path), "DIR")
    as_golden("vary-mapped.txt", said[: said.index("results: ")])
    (path,) = tmp_path.rglob("vary.json")
    assert show(path) == 0
    assert capsys.readouterr().out in said


def test_far_memory_is_told_from_near_memory(machine, tmp_path, capsys):
    run = ("--experiment", "node", "--machine", machine, "--device", "0", *FEW)
    assert vary(*run, "--out", tmp_path, "--json") == 0
    shown = capsys.readouterr()
    assert shown.err.splitlines()[0] == EXPERIMENTS["node"].question
    found = {
        setting: [cell["settings"][number]["direction"] for cell in json.loads(shown.out)["cells"]]
        for number, setting in enumerate(("near", "0", "1"))
    }
    assert found == {"near": ["unknown"] * 2, "0": ["same"] * 2, "1": ["worse"] * 2}


def test_all_are_listed_with_their_questions(capsys):
    assert vary("--experiment", LIST) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed[::2]] == list(EXPERIMENTS)
    for line, experiment in zip(listed[::2], EXPERIMENTS.values(), strict=True):
        assert line.endswith(experiment.question)


def test_names_are_completed():
    assert complete_experiment("p") == ["pinned", "pages"]
    assert complete_experiment("") == [*EXPERIMENTS, LIST]
