"""How far PCI functions are apart, in hops and as nvidia-smi names it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.model.inventory import PciFunction
from linkgauge.model.pci_tree import PciTree

A, B = "0000:10:00.0", "0000:11:00.0"


def chain(*addresses, node=0):
    """Functions, each above the next."""
    parents = (None, *addresses)
    return [
        PciFunction(address=address, parent=parent, numa_node=node)
        for address, parent in zip(addresses, parents, strict=False)
    ]


def switched(root, leaves, bus="01"):
    """Leaves below the ports of a switch below a root port."""
    upstream = f"0000:{bus}:00.0"
    found = chain(root, upstream)
    for number, leaf in enumerate(leaves):
        found += chain(upstream, f"0000:{bus}:1{number}.0", leaf)[1:]
    return found


def tree(*parts):
    return PciTree(function for part in parts for function in part)


@pytest.mark.parametrize(
    ("parts", "distance", "name"),
    [
        # Two functions of one card.
        ((chain("0000:00:01.0", A), chain("0000:00:01.0", B)[1:]), 2, "PIX"),
        ((switched("0000:00:01.0", [A, B]),), 4, "PIX"),
        (
            (switched("0000:00:01.0", [A, "0000:02:00.0"]), chain("0000:02:00.0", B)[1:]),
            5,
            "PXB",
        ),
        (
            (
                switched("0000:00:01.0", [A, "0000:02:00.0"]),
                chain("0000:02:00.0", "0000:03:00.0", B)[1:],
            ),
            6,
            "PXB",
        ),
        ((chain("0000:00:01.0", A), chain("0000:00:02.0", B)), 4, "PHB"),
        ((chain(A), chain("0000:10:01.0", B)), 3, "PHB"),
        (
            (
                switched("0000:00:01.0", [A], "01"),
                switched("0000:00:02.0", [B], "02"),
            ),
            8,
            "PHB",
        ),
        ((chain("0000:00:01.0", A), chain("0000:40:01.0", B)), 4, "NODE"),
        ((chain("0000:00:01.0", A), chain("0000:40:01.0", B, node=1)), 4, "SYS"),
        ((chain("0000:00:01.0", A), chain("0000:40:01.0", B, node=None)), 4, None),
        ((chain("0000:00:01.0", A), chain("0001:00:01.0", B, node=1)), 4, "SYS"),
    ],
)
def test_hops_and_class(parts, distance, name):
    functions = tree(*parts)
    assert functions.distance(A, B) == functions.distance(B, A) == distance
    assert functions.topo_class(A, B) == functions.topo_class(B, A) == name


def test_an_unknown_place_has_no_distance():
    lost = PciFunction(address=B, unknown=("parent: no host bridge",))
    orphan = PciFunction(address=B, parent="0000:09:00.0")
    loop = [
        PciFunction(address=B, parent="0000:09:00.0"),
        PciFunction(address="0000:09:00.0", parent=B),
    ]
    for others in ([], [lost], [orphan], loop, [PciFunction(address=B, parent=B)]):
        functions = tree(chain("0000:00:01.0", A), others)
        assert functions.distance(A, B) is None
        assert functions.topo_class(A, B) is None
        assert len(functions.above(B)) < 2


@given(st.lists(st.one_of(st.none(), st.integers(0, 5)), min_size=6, max_size=6))
def test_any_parents_give_a_symmetric_distance_or_none(parents):
    names = [f"0000:{number:02x}:00.0" for number in range(6)]
    functions = PciTree(
        PciFunction(address=name, parent=None if parent is None else names[parent])
        for name, parent in zip(names, parents, strict=True)
    )
    for one in names:
        for other in names:
            distance = functions.distance(one, other)
            assert distance == functions.distance(other, one)
            assert functions.topo_class(one, other) == functions.topo_class(other, one)
            assert distance is None or (distance == 0) == (one == other)
