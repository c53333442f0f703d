"""Whatever readers found, and however little sense it makes, an expectation is had or unknown."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fakes import device, machine
from judge_kit import expect
from linkgauge.model.inventory import (
    Accelerator,
    FabricLink,
    HostDetails,
    Inventory,
    PciFunction,
    PciLink,
)
from linkgauge.model.notation import parse_transfers
from linkgauge.model.result import PlannedCell
from linkgauge.model.transfer import Report

rates = st.none() | st.just(0.0) | st.floats(1, 1e13)
speeds = st.none() | st.sampled_from([2.5, 5, 8, 16, 32, 64]) | st.just(0.0) | st.floats(0.1, 1000)
addresses = st.sampled_from([f"0000:{n:02x}:00.0" for n in range(5)])
places = ["fake:0", "fake:1", "host:0", "host:1", "nvswitch", "gpu", "gpu 0000:07:00.0", None]
functions = st.builds(
    PciFunction,
    address=addresses,
    parent=st.none() | addresses,
    numa_node=st.none() | st.integers(0, 3),
    link=st.builds(PciLink, speeds, st.none() | st.integers(0, 32)),
    max_payload=st.none() | st.integers(0, 4096),
    max_read_request=st.none() | st.integers(0, 4096),
)
links = st.lists(
    st.builds(
        FabricLink,
        st.just(0),
        st.sampled_from(["nvlink", "c2c"]),
        st.none() | st.booleans(),
        rate=rates,
        remote=st.sampled_from(places),
    ),
    max_size=4,
)
accelerators = st.builds(
    Accelerator,
    memory=st.sampled_from(["fake:0", "fake:1"]),
    model=st.just("Card"),
    pci=st.none() | addresses,
    links=links.map(tuple),
    memory_rate=rates,
)
details = st.builds(HostDetails, hypervisor=st.none() | st.just("KVM"), memory_rate=rates)


@given(
    details,
    st.lists(functions, max_size=6),
    st.lists(accelerators, max_size=3),
    st.sampled_from(["fake:0 -> fake:1", "host:0 -> fake:0", "fake:1 -> host:1", "host:0 -> null",
                     "fake:0 -> fake:0", "fake:0 <-> host:0", "fake:0 -> null"]),
    st.sampled_from(["ce", "sm"]),
)  # fmt: skip
def test_whatever_was_read_an_expectation_is_a_bound_or_unknown(host, pci, told, way, kind):
    inventory = Inventory(host=host, pci=tuple(pci), accelerators=tuple(told))
    of = replace(machine([device(0), device(1)], nodes=2), inventory=inventory)
    engine = "cpu" if way.startswith("host:0 -> null") else kind
    cell = PlannedCell("0", "0", parse_transfers(f"{way} by {engine}"), Report.FIRST)
    found = expect(cell, 1 << 30, of)
    assert found.because
    if found.achievable is not None:
        assert 0 < found.achievable <= found.theoretical
    if found.theoretical is None:
        assert found.because.startswith("unknown: ")
