"""The values of options become settings: every combination, the first one being the baseline."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from linkgauge.cli.vary_settings import MEMORIES, Given, read_cpus, read_variable, variants_of
from linkgauge.engine.request import RunRequest
from linkgauge.machine.tree import parse_cpu_list
from linkgauge.model.errors import InputError
from linkgauge.model.settings import Settings, Simulation
from sim_kit import MACHINE

BASE = RunRequest(
    settings=Settings((1,), simulation=Simulation("test", MACHINE)), label="mine", out="out"
)
REAL = RunRequest(settings=Settings((1,)), label="mine")


def settings_of(base=BASE, **given):
    return [str(one.setting) for one in variants_of(Given(**given), base)]


@given(st.sets(st.integers(0, 5000), min_size=1, max_size=40))
def test_cpus_are_read_as_the_kernel_writes_them(cpus):
    pieces, rest = [], sorted(cpus)
    while rest:
        count = next((n for n in range(1, len(rest)) if rest[n] != rest[0] + n), len(rest))
        pieces.append(f"{rest[0]}-{rest[count - 1]}" if count > 1 else str(rest[0]))
        rest = rest[count:]
    text = ",".join(pieces)
    assert read_cpus(text) == parse_cpu_list(text) == tuple(sorted(cpus))


@given(st.text(max_size=20))
def test_any_other_text_is_refused_as_cpus(text):
    try:
        found = read_cpus(text)
    except InputError as error:
        assert text in str(error)
    else:
        assert found == parse_cpu_list(text) != ()


@given(st.lists(st.text(st.characters(exclude_characters="\\\0,")), min_size=1))
def test_values_of_a_variable_are_separated_by_commas(values):
    assert read_variable("NAME=" + ",".join(values)) == ("NAME", tuple(values))


def test_a_comma_within_a_value_has_a_backslash():
    assert read_variable(r"OMP_PLACES={0\,1},cores") == ("OMP_PLACES", ("{0,1}", "cores"))


@pytest.mark.parametrize("text", ["NAME", "=A,B", "A B=1", "1A=2", "", "A-B=1", "Ä=1"])
def test_what_names_no_variable_is_refused(text):
    with pytest.raises(InputError, match="give the variable and its values: NAME=A,B"):
        read_variable(text)


def test_settings_are_every_combination_of_the_values():
    assert settings_of(cpus=["0-3", "0,4"], memory=["pinned", "thp"], env=["N=1,2"]) == [
        f"--cpus {cpus} --memory {memory} N={n}"
        for cpus in ("0-3", "0,4") for memory in ("pinned", "thp") for n in "12"
    ]  # fmt: skip


def test_a_variable_may_be_given_again_for_more_values():
    assert settings_of(env=["A=1", "B=2", "A=3"]) == ["A=1 B=2", "A=3 B=2"]


def test_each_setting_changes_its_own_run_and_no_other():
    given = Given(["all", "1,2"], ["near", "1"], ["pinned", "huge"], affinity=["on", "off"])
    first, *_, last = (one.request for one in variants_of(given, BASE))
    assert replace(first, label=BASE.label) == BASE
    assert (last.memory, last.settings.surroundings.cpus) == ("huge", (1, 2))
    assert (last.settings.engines.numa_node, last.settings.engines.affinity) == (1, False)


def test_a_variable_without_a_value_is_unset():
    made = variants_of(Given(env=["N=,2", "M=3"]), BASE)
    found = [one.request.settings.surroundings.environment for one in made]
    assert found == [{"N": None, "M": "3"}, {"N": "2", "M": "3"}]


def test_streams_and_kernels_are_the_engines_own():
    streams = variants_of(Given(streams=[1, 4]), REAL)
    assert [one.request.settings.engines.streams for one in streams] == [1, 4]
    kernels = variants_of(Given(host_kernel=["fastest", "plain-avx2"]), REAL)
    assert [one.request.settings.engines.host_kernel for one in kernels] == [None, "plain-avx2"]


def test_engines_and_graphs_replace_what_benchmarks_name():
    engines = variants_of(Given(engine=["ce", "sm"]), BASE)
    assert [one.request.engine for one in engines] == ["ce", "sm"]
    graphs = variants_of(Given(graph=["off", "on"]), BASE)
    assert [one.request.graphs for one in graphs] == [False, True]


def test_the_runs_of_each_setting_have_a_folder_of_their_own():
    labels = [one.setting.label for one in variants_of(Given(["0-1", "0,1", "0-1"]), BASE)]
    assert labels == ["mine --cpus 0-1", "mine B --cpus 0,1", "mine C --cpus 0-1"]
    variants = variants_of(Given(["0-1", "0"]), BASE)
    assert [one.request.label for one in variants] == [one.setting.label for one in variants]


@pytest.mark.parametrize("kind", MEMORIES)
def test_every_kind_of_memory_can_be_compared(kind):
    assert settings_of(memory=["pinned", kind])[1] == f"--memory {kind}"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "nothing varies: give one option several values"),
        ({"cpus": ["0"]}, "nothing varies"),
        ({"cpus": ["0", "0-16"]}, "--cpus 0-16: CPU 16 is absent, or this process may not use it"),
        ({"cpus": ["0", "3-1"]}, "--cpus 3-1: 3-1 ends before it starts"),
        ({"cpus": ["0", "0,"]}, "give CPUs such as 0-3,8, or all"),
        ({"numa_node": ["0", "x"]}, "--numa-node x: give the number of a node, or near"),
        ({"memory": ["pinned", "staging"]}, "--memory staging: there are pinned, pageable, huge"),
        ({"streams": [1, 0]}, "--streams 0: give 1 to 32"),
        ({"affinity": ["on", "yes"]}, "--affinity yes: give on or off"),
        ({"host_kernel": ["fastest", "x"]}, "a simulated machine has none"),
        ({"engine": ["ce", "cpu"]}, "--engine cpu: give ce or sm"),
        ({"graph": ["on", "ce"]}, "--graph ce: give on or off"),
        ({"env": ["A=1,2", "B"]}, "--env B: give the variable"),
        ({"env": ["A=" + ",".join(map(str, range(27)))]}, "27 settings are too many: give 26"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(given, says):
    with pytest.raises(InputError, match=says) as refused:
        settings_of(**given)
    assert "\n" not in str(refused.value)
