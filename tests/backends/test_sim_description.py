"""A machine is described in a few lines of YAML, and a mistake is told with its place."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.backends.sim.backend import SimBackend
from linkgauge.backends.sim.description import parse_description
from linkgauge.backends.sim.machine import parts_of
from linkgauge.model.errors import InputError
from sim_machine import SMALL


def hardware(**changes):
    return SimBackend(parts_of(parse_description(yaml.safe_dump(yaml.safe_load(SMALL) | changes))))


def test_the_documented_example_is_a_machine():
    page = (Path(__file__).parents[2] / "docs" / "simulation.md").read_text()
    machine = SimBackend(parts_of(parse_description(page.split("```yaml")[1].split("```")[0])))
    assert [node.cpus for node in machine.host().nodes] == [tuple(range(8)), tuple(range(8, 16))]
    assert [one.memory for one in machine.devices()] == ["sim:0", "sim:1", "sim:2", "sim:3"]


MISTAKES = [
    ({"colour": "red"}, "unknown field `colour`"),
    ({"noise": "lots"}, r"a share such as 0.5 or 50% expected, found 'lots' - at `\$.noise`"),
    ({"host": {"cpu_model": "x", "nodes": []}}, "host.nodes is empty"),
    ({"host": {"cpu_model": "x", "nodes": [{"cpus": 1, "memory": "5Q"}]}}, r"nodes\[0\].memory"),
    ({"host": {"cpu_model": "x", "nodes": [{"cpus": -1, "memory": "5G"}]}}, r"nodes\[0\].cpus"),
    ({"links": [{"kind": "rope", "mesh": "sim:0..3"}]}, r"unknown kind 'rope'.*\$.links\[0\]"),
    ({"links": [{"kind": "mesh", "mesh": "sim:0..9"}]}, r"no 'sim:4' - at"),
    ({"links": [{"kind": "mesh"}]}, "give one of mesh, pairs, each with to"),
    ({"links": [{"kind": "mesh", "each": "sim:0"}]}, "give one of mesh, pairs, each with to"),
    ({"links": [{"kind": "mesh", "each": "sim:0..3", "to": "sim:2..1"}]}, "do not share 0 evenly"),
    ({"links": [{"kind": "mesh", "each": "sim:0..2", "to": "root0..1"}]}, "do not share 2 evenly"),
    ({"links": [{"kind": "mesh", "pairs": [["sim:0", "sim:0"]]}]}, "from 'sim:0' to itself"),
    ({"links": [{"kind": "mesh", "mesh": "sim:0..1"}] * 2}, "several have the name sim:0-sim:1"),
    ({"links": [{"kind": "mesh", "mesh": "sim:0..2", "name": "x"}]}, "a single link has a name"),
    ({"switches": [{"name": "root0..1"}, {"name": "root1"}]}, "several have the name root1"),
    ({"switches": [{"name": "A-B"}]}, "switch 'A-B'"),
    ({"devices": [{"model": "x", "memory": "1G", "pci": ["1"]}]}, "'1' is no PCI address"),
    ({"devices": [{"count": 2, "model": "x", "memory": "1G", "pci": []}]}, r"devices\[0\].pci"),
    ({"link_kinds": {"mesh": {"kind": "fabric"}}}, "give a rate, or speed and width"),
    ({"link_kinds": {"mesh": {"kind": "fabric", "rate": "0 GB/s"}}}, "a rate of 0"),
    ({"link_kinds": {"mesh": {"kind": "fabric", "rate": 40}}}, "such as 50 GB/s"),
    ({"link_kinds": {"mesh": {"kind": "fabric", "rate": "1 GB/s", "efficiency": {"read": 0}}}},
     "an efficiency of 0"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), MISTAKES)
def test_a_mistake_is_told_in_one_line_with_its_place(changes, message):
    with pytest.raises(InputError, match=message) as caught:
        hardware(**changes)
    assert "\n" not in str(caught.value)


@given(st.text())
def test_no_text_does_anything_but_parse_or_be_refused(text):
    try:
        parse_description(text)
    except InputError as error:
        assert str(error)


TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@given(st.sampled_from(["host", "devices", "links", "link_kinds", "switches", "noise"]), TREES)
def test_no_value_in_place_of_a_field_does_anything_but_be_read_or_refused(field, value):
    tree = yaml.safe_load(SMALL) | {field: value}
    try:
        SimBackend(parts_of(parse_description(yaml.safe_dump(tree))))
    except InputError as error:
        assert "\n" not in str(error)
