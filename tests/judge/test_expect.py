"""What is expected follows from what the readers found, and the arithmetic is shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fakes import device, machine
from judge_kit import expect
from linkgauge.model.documents.result import CellResult, PlannedCell
from linkgauge.model.hardware.inventory import (
    Accelerator,
    FabricLink,
    HostDetails,
    Inventory,
    PciFunction,
    PciLink,
    Reading,
)
from linkgauge.model.notation import parse_transfers
from linkgauge.model.transfer import Report

GEN5 = PciLink(speed=32, width=16, max_speed=32, max_width=16)
SIZE = 1 << 30
DOWN_256 = 63.015 * 128 / 148
UP_256 = 63.015 * 256 / 280


def function(address, parent=None, link=GEN5, **more):
    defaults = {"max_payload": 256, "max_read_request": 512, "numa_node": 0}
    return PciFunction(address=address, parent=parent, link=link, **(defaults | more))


def server(count=2, pci=None, accelerators=None, nodes=1, **host):
    """Devices `fake:N` at 0000:0N:00.0, each below a root port of its own, without fabric."""
    addresses = [f"0000:{n + 1:02x}:00.0" for n in range(count)]
    if pci is None:
        pci = []
        for n, address in enumerate(addresses):
            port = f"0000:00:0{n + 1}.0"
            pci += [function(port), function(address, port)]
    if accelerators is None:
        accelerators = [
            Accelerator(memory=f"fake:{n}", model="Card", memory_rate=4e12) for n in range(count)
        ]
    devices = [device(n, pci=address) for n, address in enumerate(addresses)]
    inventory = Inventory(
        host=HostDetails(**host), pci=tuple(pci), accelerators=tuple(accelerators)
    )
    return replace(machine(devices, nodes=nodes), inventory=inventory)


def planned(text, report=Report.FIRST):
    return PlannedCell("0", "0", parse_transfers(text), report)


def expected(text, of, report=Report.FIRST, size=SIZE, measured=None):
    return expect(planned(text, report), size, of, measured)


def gigabytes(value):
    return None if value is None else value / 1e9


def close(value):
    return None if value is None else pytest.approx(value, rel=1e-3)


def fabric(remotes, rate=25e9, kind="nvlink", active=True, **more):
    return tuple(FabricLink(n, kind, active, rate=rate, remote=r, **more) for n, r in
                 enumerate(remotes))  # fmt: skip


def joined(links):
    """Two devices with these links each, no memory rate."""
    return server(accelerators=[
        Accelerator(memory=f"fake:{n}", model="Card", links=some) for n, some in enumerate(links)
    ])  # fmt: skip


NARROW, WIDE = PciLink(speed=8, width=8, max_speed=64, max_width=16), PciLink(64, 16, 64, 16)
VIRTUAL = PciLink(speed=2.5, width=1, max_speed=2.5, max_width=1)
PORT, ROOT = "0000:01:00.0", "0000:00:01.0"


def alone(link=GEN5, upper=GEN5, up=None, **more):
    """One device below a root port."""
    return server(1, [function(ROOT, link=upper, **(up or {})), function(PORT, ROOT, link, **more)])


def speed(gts, width=16, efficiency=128 / 130):
    return gts * efficiency * width / 8


def below_a_switch():
    """Two devices, one link above them."""
    up = "0000:02:00.0"
    pci = [function(ROOT), function(up, ROOT)]
    for n, end in ((1, PORT), (2, "0000:04:00.0")):
        down = f"0000:03:0{n}.0"
        pci += [function(down, up), function(end, down)]
    devices = (device(0, pci=PORT), device(1, pci="0000:04:00.0"))
    return replace(server(2, pci), devices={"fake": devices})


OUT, IN = "fake:0 -> host:0 by ce", "host:0 -> fake:0 by ce"
BOTH_OUT = "fake:0 -> host:0 by ce & fake:1 -> host:0 by ce x2"
PEER = "fake:0 -> fake:1 by ce"
FULL = 63.015
UNKNOWN = None


@pytest.mark.parametrize(
    ("text", "of", "theoretical", "achievable"),
    [
        # A write is the link less the headers of packets of max payload; a read is answered in
        # completions; kernels write cache lines.
        (OUT, server(), FULL, UP_256),
        (IN, server(), FULL, DOWN_256),
        ("fake:0 -> host:0 by sm", server(), FULL, FULL * 128 / 152),
        # Half of the bytes are written, 24 B for 128; the other half asks, 24 B for 128.
        ("fake:0 <-> host:0 by sm", server(), FULL, FULL / ((152 + 24) / 128)),
        # The smallest max payload of any bridge counts; an unknown one is taken for 256.
        (OUT, alone(up={"max_payload": 128}), FULL, FULL * 128 / 152),
        (OUT, server(1, [function(PORT, max_payload=None)]), FULL, UP_256),
        # The narrowest link of the path counts.
        *((IN, alone(*links), speed(8, 8), speed(8, 8) * 128 / 148)
          for links in ((NARROW, WIDE), (WIDE, NARROW))),
        (IN, alone(PciLink(2.5, 16), PciLink(2.5, 16)), 4.0, 4.0 * 128 / 148),
        # A link above that transfers share is divided; the way between them turns below it.
        (BOTH_OUT, below_a_switch(), FULL / 2, UNKNOWN),
        (PEER, below_a_switch(), FULL, UP_256),
        # How much the host carries for several devices, or between its nodes, nobody knows, nor
        # what root ports pass on.
        (BOTH_OUT, server(), FULL, UNKNOWN),
        ("fake:0 -> host:1 by ce", server(nodes=2), FULL, UNKNOWN),
        (PEER, server(), FULL, UNKNOWN),
        ("fake:0 -> host:7 by ce", server(nodes=2), UNKNOWN, UNKNOWN),
        # A node that nothing tells is not held against the device.
        ("fake:0 -> host:1 by ce", server(1, [function(PORT, numa_node=None)], nodes=2), FULL,
         UP_256),
        # A virtual machine shows the device's own link only.
        (OUT, server(1, [function(ROOT, link=VIRTUAL), function(PORT, ROOT)], hypervisor="KVM"),
         FULL, UP_256),
        *((OUT, server(1, [function(PORT, link=link)]), UNKNOWN, UNKNOWN)
          for link in (PciLink(), PciLink(speed=32), PciLink(width=16))),
        # The library's word counts where sysfs says nothing.
        (OUT, server(1, [], [Accelerator(memory="fake:0", model="Card", link=GEN5)]), FULL, UP_256),
    ],
)  # fmt: skip
def test_pcie(text, of, theoretical, achievable):
    found = expected(text, of)
    assert gigabytes(found.theoretical) == close(theoretical)
    assert gigabytes(found.achievable) == close(achievable)


def test_the_link_is_that_under_load():
    idle = PciLink(speed=2.5, width=16, max_speed=32, max_width=16)
    of = alone(idle, idle)
    cell = CellResult("0", "0", parse_transfers(OUT), Report.FIRST, "pass")
    assert gigabytes(expect(cell, SIZE, of).theoretical) == close(4)
    loaded = Reading(memory="fake:0", count=3, link_speed=32, link_width=16)
    assert gigabytes(expect(replace(cell, readings=(loaded,)), SIZE, of).theoretical) == close(FULL)


def cards(*links):
    """Devices with these links to others, and nothing else known of their memory."""
    return server(len(links), accelerators=[
        Accelerator(memory=f"fake:{n}", model="Card", links=some) for n, some in enumerate(links)
    ])  # fmt: skip


FLITS = 16 / 18
BOTH = "fake:0 -> fake:1 by ce & fake:1 -> fake:0 by ce"
TO_ONE = "fake:1 -> fake:0 by ce & fake:2 -> fake:0 by ce"
FROM_ONE = "fake:0 -> fake:1 by {0} & fake:0 -> fake:2 by {0}"
DIRECT = cards(fabric(["fake:1", "fake:2"]), fabric(["fake:0"]), fabric(["fake:0"]))
SWITCHED = cards(*[fabric(["s"] * 2)] * 3)


@pytest.mark.parametrize(
    ("text", "of", "report", "theoretical", "achievable"),
    [
        (PEER, joined([fabric(["fake:1"] * 4), fabric(["fake:0"] * 4)]), "first", 100,
         100 * FLITS),
        # Line coding comes off the signalling rate.
        *((PEER, joined([fabric(["s"] * 18, rate * 1e9)] * 2), "first", 18 * left,
           18 * left * share)
          for rate, left, share in (
              (19.531, 19.531, 16 / 17), (25.781, 25, 16 / 17), (25, 25, FLITS),
              (26.562, 25, FLITS), (53.125, 50, FLITS), (50, 50, FLITS))),
        # A version that is known counts, whatever the rate; NVLink 2 answers with a flit.
        (PEER, joined([fabric(["s"], version="2.2")] * 2), "first", 25, 25 * 16 / 17),
        (BOTH, joined([fabric(["s"], version="2.2")] * 2), "sum", 50, 50 * FLITS),
        (BOTH.replace("ce", "sm"), joined([fabric(["s"], version="2.0")] * 2), "sum", 50, 40),
        # Links that are down do not count, nor switches that only one has.
        (PEER, joined([fabric(["s"] * 12) + fabric([None] * 6, active=False), fabric(["s"] * 18)]),
         "first", 300, 300 * FLITS),
        (PEER, joined([fabric(["s0", "s1", "s1"]), fabric(["s1", "s2", "s2"])]), "first", 25,
         25 * FLITS),
        # A node or a device that both have is no switch.
        (PEER, cards(*[fabric(["host:0", "fake:2"])] * 2, ()), "first", UNKNOWN, UNKNOWN),
        # Of where links lead nobody knows there is a bound only; a protocol of which nobody knows
        # the overhead has none.
        (PEER, joined([fabric([None] * 18)] * 2), "first", 450, UNKNOWN),
        (PEER, joined([fabric(["gpu"] * 18)] * 2), "first", 450, UNKNOWN),
        (PEER, joined([fabric(["s"], kind="icn")] * 2), "first", 25, 25),
        (PEER, server(accelerators=[]), "first", UNKNOWN, UNKNOWN),
        # A device's own links are shared; kernels of one device take turns.
        (TO_ONE, SWITCHED, "total", 50, 50 * FLITS),
        (TO_ONE, SWITCHED, "first", 25, 25 * FLITS),
        (FROM_ONE.format("ce"), DIRECT, "total", 50, 50 * FLITS),
        (FROM_ONE.format("sm"), DIRECT, "total", 50, 25 * 8 / 10),
        (BOTH, joined([fabric(["s"] * 18)] * 2), "sum", 900, 900 * FLITS),
        (IN, joined([fabric(["host:0"], 225e9, "c2c")] * 2), "first", 225, 225 * 0.927),
        (OUT, joined([fabric(["host:0"], 225e9, "c2c")] * 2), "first", 225, 225 * 0.66),
        # A copy engine may drive one link of several.
        (PEER, joined([fabric(["fake:1"], 64e9, "XGMI"), fabric(["fake:0"], 64e9, "XGMI")]),
         "first", 64, 48),
        (PEER, joined([fabric(["fake:1"], 2e11, "XGMI"), fabric(["fake:0"], 2e11, "XGMI")]),
         "first", 200, UNKNOWN),
    ],
)  # fmt: skip
def test_a_fabric(text, of, report, theoretical, achievable):
    found = expected(text, of, Report(report))
    assert gigabytes(found.theoretical) == close(theoretical)
    assert gigabytes(found.achievable) == close(achievable)


def test_the_arithmetic_is_shown():
    some = joined([fabric(["s"] * 12) + fabric([None] * 6, active=False), fabric(["s"] * 18)])
    assert expected(PEER, some).because.startswith("12 of 18 nvlink × 25 GB/s = 300 GB/s; ")
    assert expected(OUT, server()).because == (
        "PCIe 32 GT/s x16 × 128b/130b = 63.02 GB/s; "
        "256 B per TLP, 24 B of overhead (write): 91.4% -> 57.61 GB/s"
    )


DIMMS = {"nodes": 2, "memory_rate": 200e9}
READ, WRITE = "host:0 -> null by cpu", "null -> host:0 by cpu"
OWN = joined([fabric(["host:0"], 225e9, "nvlink")] * 2)
TWO_IN = "host:0 -> fake:0 by ce & host:0 -> fake:1 by ce x2"


@pytest.mark.parametrize(
    ("text", "of", "measured", "theoretical", "achievable"),
    [
        # A local copy reads and writes.
        ("fake:0 -> fake:0 by ce", server(), {}, 2000, 1700),
        ("fake:0 -> fake:0 by sm", server(), {}, 2000, 1800),
        ("fake:0 -> fake:0 by ce", joined([(), ()]), {}, UNKNOWN, UNKNOWN),
        # Host memory is a node's share of the DIMMs, else the best that was measured.
        (READ, server(**DIMMS), {}, 100, 85),
        (WRITE, server(**DIMMS), {}, 100, 85),
        ("host:0 -> host:0 by cpu", server(**DIMMS), {}, 50, 42.5),
        (READ, server(), {"read": 90e9, "copy": 40e9}, UNKNOWN, 90),
        (WRITE, server(), {"read": 90e9}, UNKNOWN, UNKNOWN),
        ("null -> host:0/thp by cpu", server(), {"write": 20e9}, UNKNOWN, 20),
        ("null -> host:0/interleave by cpu", server(), {"write": 20e9}, UNKNOWN, UNKNOWN),
        # Devices that share host memory divide it.
        (TWO_IN, OWN, {}, 225, UNKNOWN),
        (TWO_IN, OWN, {"read": 300e9}, 225, 150),
        # Between nodes, and what few threads do, is unknown.
        ("host:0 -> host:1 by cpu", server(**DIMMS), {}, UNKNOWN, UNKNOWN),
        ("host:0 -> null by cpu*1", server(**DIMMS), {}, UNKNOWN, UNKNOWN),
    ],
)
def test_memories(text, of, measured, theoretical, achievable):
    found = expected(text, of, measured=measured)
    assert gigabytes(found.theoretical) == close(theoretical)
    assert gigabytes(found.achievable) == close(achievable)


def test_what_a_cache_holds_is_unknown():
    small = server(**DIMMS)
    small = replace(small, host=replace(small.host, last_level_cache=64 << 20))
    assert expected(READ, small, size=32 << 20).theoretical is None
    assert expected(READ, small, size=33 << 20).theoretical is not None


def test_what_takes_no_longer_than_a_copy_s_start_has_no_achievable_figure():
    found = expected(OUT, server(), size=1 << 20)
    assert (gigabytes(found.theoretical), found.achievable) == (close(FULL), None)


@pytest.mark.parametrize(
    ("text", "operation", "unit", "rate"),
    [
        *((text, f"peak-{kind}", "B/s (STREAM)", 4000)
          for kind, text in (("read", "fake:0 -> null by sm"),
                             ("triad", "fake:0 -> fake:0 by sm"))),
        ("host:0 -> null by cpu", "peak-read", "B/s (STREAM)", None),
        ("null -> null by fake:0.sm", "matmul-fp32", "FLOP/s", None),
        ("null -> host:0 by cpu", "touch", "B/s", None),
        ("host:0 -> null by fake:0.sm", "chase", "s", None),
    ],
)  # fmt: skip
def test_of_other_work_the_rate_of_a_device_s_own_arrays_alone_is_known(
    text, operation, unit, rate
):
    """Each byte that STREAM counts crosses the memory once."""
    report = Report.LATENCY if unit == "s" else Report.FIRST
    cell = replace(planned(text, report), operation=operation)
    found = expect(cell, SIZE, server(), unit=unit)
    assert gigabytes(found.theoretical) == close(rate)
    assert gigabytes(found.achievable) == close(rate and 0.9 * rate)


rates = st.none() | st.just(0.0) | st.floats(1, 1e13)
addresses = st.sampled_from([f"0000:{n:02x}:00.0" for n in range(5)])
gts = st.none() | st.sampled_from([2.5, 5, 8, 16, 32, 64]) | st.just(0.0) | st.floats(0.1, 1000)
counts = st.none() | st.integers(0, 4096)
functions = st.builds(
    PciFunction, address=addresses, parent=st.none() | addresses,
    numa_node=st.none() | st.integers(0, 3),
    link=st.builds(PciLink, gts, st.none() | st.integers(0, 32)),
    max_payload=counts, max_read_request=counts,
)  # fmt: skip
ends = st.sampled_from(["fake:0", "fake:1", "host:0", "host:1", "nvswitch", "gpu", None])
some_links = st.lists(
    st.builds(FabricLink, st.just(0), st.sampled_from(["nvlink", "c2c"]), st.none() | st.booleans(),
              rate=rates, remote=ends),
    max_size=4,
)  # fmt: skip
accelerators = st.builds(
    Accelerator, memory=st.sampled_from(["fake:0", "fake:1"]), model=st.just("Card"),
    pci=st.none() | addresses, links=some_links.map(tuple), memory_rate=rates,
)  # fmt: skip
hosts = st.builds(HostDetails, hypervisor=st.none() | st.just("KVM"), memory_rate=rates)
WAYS = ["fake:0 -> fake:1", "host:0 -> fake:0", "fake:1 -> host:1", "host:0 -> null",
        "fake:0 -> fake:0", "fake:0 <-> host:0", "fake:0 -> null"]  # fmt: skip


@given(hosts, st.lists(functions, max_size=6), st.lists(accelerators, max_size=3),
       st.sampled_from(WAYS), st.sampled_from(["ce", "sm"]))  # fmt: skip
def test_whatever_was_read_an_expectation_is_a_bound_or_unknown(host, pci, told, way, kind):
    inventory = Inventory(host=host, pci=tuple(pci), accelerators=tuple(told))
    of = replace(machine([device(0), device(1)], nodes=2), inventory=inventory)
    found = expected(f"{way} by {'cpu' if way.startswith('host:0 -> null') else kind}", of)
    assert found.because
    if found.achievable is not None:
        assert 0 < found.achievable <= found.theoretical
    if found.theoretical is None:
        assert found.because.startswith("unknown: ")
