"""What the doctor says of accelerators and of the links between them."""

from uuid import UUID

import pytest
from msgspec.structs import replace

from doctor_kit import card, found, gpu, inventory, measured, reading, root, the, told
from linkgauge.model.hardware.inventory import FabricLink

CARDS = {
    "persistence": ({"persistence": False}, "note"),
    "clocks": ({"throttled": ("thermal slowdown",)}, "warn"),
    "locked-clock": ({"locked_clock": 1e9, "max_clock": 2e9}, "warn"),
    "row-remap": ({"remap_pending": True}, "fail"),
    "ecc": ({"ecc_errors": 3}, "warn"),
    "compute-mode": ({"compute_mode": "Exclusive_Process"}, "warn"),
    "processes": ({"processes": (4711,), "utilization": 0.5}, "warn"),
    "capped-clock": ({"throttled": ("power cap",)}, "warn"),
    "mig": ({"mig": True}, "note"),
    "driver": ({"driver": "580.95.05", "library": "570.86.10"}, "fail"),
    "runtime": ({"isa": "gfx950", "runtime": "ROCm 6.4.2"}, "fail"),
    "fabric-state": ({"fabric_state": "in progress"}, "fail"),
}


@pytest.mark.parametrize(
    ("isa", "runtime", "built_for", "fails"),
    [
        ("gfx950", "ROCm 6.4.2", ("gfx942", "gfx950"), True),
        ("gfx950", "ROCm 7.1.2", ("gfx90a", "gfx942"), True),
        ("gfx950:sramecc+:xnack-", "ROCm 7.1.2", ("gfx942", "gfx950"), False),
        ("gfx942", "ROCm 6.4.2", ("gfx942:xnack+",), False), ("gfx942", None, None, False),
        (None, "ROCm 6.4.2", ("gfx90a",), False),
    ],
)  # fmt: skip
def test_a_torch_that_does_not_support_the_gpu(isa, runtime, built_for, fails):
    here = card(memory="torch:cuda:0", isa=isa, runtime=runtime, built_for=built_for)
    assert told(found(inventory(cards=(here,)))) == [("runtime", "fail")] * fails


@pytest.mark.parametrize("check", CARDS)
def test_states_of_accelerators(check):
    """Other vendors' are not told NVIDIA's commands."""
    changes, severity = CARDS[check]
    for memory, vendor in (("cuda:0", 0x10DE), ("opencl:0", 0x1002)):
        pci = (root(), gpu(vendor=vendor))
        (finding,) = found(inventory(pci=pci, cards=(card(memory=memory, **changes),)))
        assert (finding.check, finding.severity, finding.subject) == (check, severity, memory)
    assert not any("nvidia" in line for line in finding.remedy)


WELL = (
    {"throttled": ("gpu idle",)},
    {"driver": "580.95.05", "library": "13.580.95.05"},
    {"fabric_state": "completed, success"},
    {"compute_mode": "Default", "processes": (), "persistence": True},
)


@pytest.mark.parametrize("changes", WELL)
def test_accelerators_that_are_well_give_no_finding(changes):
    assert found(inventory(cards=(card(**changes),))) == ()


@pytest.mark.parametrize(
    ("reason", "operation", "said"),
    [
        ("power cap", "copy", [("capped-clock", "note")]),
        ("power cap", "matmul-fp16", [("capped-clock", "note")]),  # is how devices are made
        ("thermal slowdown", "copy", [("clocks", "warn")]),
        ("thermal slowdown", "matmul-fp16", [("clocks", "warn")]),
    ],
)
def test_throttling_under_load(reason, operation, said):
    load = reading(throttled=(reason,), link_speed=32.0, link_width=16)
    findings = found(inventory(), None, measured(load, operation=operation))
    assert told(findings) == said


def test_a_driver_that_does_not_fit_leaves_no_device():
    why = "nvmlInit: Driver/library version mismatch"
    assert the("driver", found(unavailable={"cuda": why})).subject == "cuda"


def nvlinks(*active, errors=0):
    return tuple(
        FabricLink(n, "NVLink", up, rate=25e9, remote="cuda:1", errors=errors)
        for n, up in enumerate(active)
    )


def wired(model, *counts, form=None, links=18, remote="cuda:9", **more):
    """Cards of which so many links are active, as NVML has them: those that are down do not report
    where they led."""
    return tuple(
        card(memory=f"cuda:{n}", model=model, pci=None, form_factor=form, **more, links=tuple(
            FabricLink(index, "nvlink", active=index < up, remote=remote if index < up else None)
            for index in range(links)))
        for n, up in enumerate(counts)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("cards", "severities"),
    [
        # Bridges join 12 of 18 links of an H100 NVL.
        (wired("NVIDIA H100 NVL", 12, 12, form="PCIe"), ["note"]),
        (wired("NVIDIA H100 NVL", 12, form="PCIe"), ["note"]),
        (wired("NVIDIA H100 NVL", 12, 8, form="PCIe"), ["fail", "fail"]),
        (wired("NVIDIA H100 PCIe", 0, 0, form="PCIe"), ["note"]),
        (wired("NVIDIA H100 PCIe", 0, 12, form="PCIe"), ["fail", "fail"]),
        (wired("another", 0), ["note"]),
        (wired("another", 4, 4), ["note"]),
        (wired("another", 4), ["fail"]),
        # A board of SXM modules is wired.
        (wired("NVIDIA H200", 0, 0, form="SXM"), ["fail", "fail"]),
        (wired("NVIDIA H200", 17, form="SXM"), ["fail"]),
        (wired("NVIDIA A100-SXM-64GB", 12, 12, form="SXM"), ["note"]),
        # Switches have a port for each link, but for two products.
        (wired("NVIDIA H200", 16, 18, form="SXM", remote="nvswitch"), ["fail"]),
        (wired("NVIDIA H200", 16, 16, form="SXM", remote="nvswitch"), ["fail", "fail", "fail"]),
        (wired("NVIDIA H800", 8, 8, form="SXM", remote="nvswitch"), ["note"]),
        (wired("NVIDIA H800", 8, 7, form="SXM", remote="nvswitch"), ["fail", "fail", "fail"]),
    ],
)
def test_links_are_expected_as_the_product_has_them(cards, severities):
    findings = [
        each for each in found(inventory(pci=(), cards=cards))
        if each.check in ("fabric-links", "switch")
    ]  # fmt: skip
    assert [finding.severity for finding in findings] == severities


ZERO, CLUSTER = str(UUID(int=0)), "1b000001-0203-0405-0607-08090a0b0c0d"


@pytest.mark.parametrize(
    ("model", "state", "clique", "cluster", "severity"),
    [
        ("NVIDIA GB200", "completed", 32766, CLUSTER, None),
        ("NVIDIA GB200", "completed", 0, ZERO, "fail"),
        ("NVIDIA GB300", "completed", 1, ZERO, "fail"),
        ("NVIDIA GB300", "completed", 0, CLUSTER, "warn"),
        ("NVIDIA GB200", "in progress", 0, ZERO, "fail"),
        ("NVIDIA GB200", "not supported", None, None, None),
        ("NVIDIA GB200", "completed", None, None, None),
        # One host's switches make no domain.
        ("NVIDIA H200", "completed", 0, ZERO, None),
        ("NVIDIA H200", "failed: Unknown Error", 0, ZERO, "fail"),
        ("NVIDIA GB10", "completed", 0, ZERO, None),
    ],
)
def test_a_domain_of_several_hosts_has_a_cluster_and_cliques(
    model, state, clique, cluster, severity
):
    one = card(model=model, fabric_state=state, fabric_clique=clique, fabric_cluster=cluster)
    findings = found(inventory(cards=(one,)))
    assert [each.severity for each in findings] == ([severity] if severity else [])
    assert all(each.check == "fabric-state" for each in findings)


def linked(*links, **more):
    return inventory(cards=(card(links=links, **more),))


CHIP = FabricLink(0, "c2c", active=True, remote="host:0")


@pytest.mark.parametrize(
    ("check", "severity", "before", "after"),
    [
        ("ecc", "fail", inventory(cards=(card(ecc_errors=0),)),
         inventory(cards=(card(ecc_errors=2),))),
        ("fabric-errors", "warn", linked(*nvlinks(True, True)),
         linked(*nvlinks(True, True, errors=3))),
        # Links of two kinds are both numbered from 0.
        ("fabric-errors", "warn", linked(*nvlinks(True), CHIP),
         linked(*nvlinks(True, errors=3), CHIP)),
        ("fabric-links", "fail", linked(*nvlinks(True, True)), linked(*nvlinks(True, False))),
        *(("fabric-links", "fail", *(inventory(cards=wired("X", *[up] * 2, form="PCIe")[:cards])
                                     for up in (18, 12))) for cards in (1, 2)),
    ],
)  # fmt: skip
def test_what_changed_during_the_run_is_told(check, severity, before, after):
    findings = [each for each in found(before, after) if each.check == check]
    assert {finding.severity for finding in findings} == {severity}


def lost(*counts):
    """Cards that lost so many of 18 links; NVML does not say where they led."""
    return tuple(
        card(memory=f"cuda:{n}", pci=None, links=tuple(
            FabricLink(index, "NVLink", index >= count, rate=25e9,
                       remote="nvswitch" if index >= count else None)
            for index in range(18)))
        for n, count in enumerate(counts)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("cards", "check", "subject"),
    [
        (lost(3), "fabric-links", "cuda:0"),
        (lost(0, 2), "fabric-links", "cuda:1"),
        (lost(1, 2), "switch", "nvswitch"),
        (tuple(card(memory=f"cuda:{n}", pci=None,
                    links=tuple(replace(link, remote=f"cuda:{1 - n}")
                                for link in nvlinks(True, False))) for n in (0, 1)),
         "fabric-links", "cuda:0-cuda:1"),
    ],
)  # fmt: skip
def test_links_that_are_down_are_named_once_or_their_switch(cards, check, subject):
    first, *others = found(inventory(cards=cards))
    assert (first.check, first.severity, first.subject) == (check, "fail", subject)
    assert check == "switch" or not others
