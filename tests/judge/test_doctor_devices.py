"""What the doctor says of accelerators and of the links between them."""

from uuid import UUID

import pytest
from msgspec.structs import replace

from doctor_kit import card, found, gpu, inventory, measured, reading, root, the
from linkgauge.model.inventory import FabricLink

CARDS = {
    "persistence": ({"persistence": False}, "note"),
    "clocks": ({"throttled": ("thermal slowdown",)}, "warn"),
    "locked-clock": ({"locked_clock": 1e9, "max_clock": 2e9}, "warn"),
    "row-remap": ({"remap_pending": True}, "fail"),
    "ecc": ({"ecc_errors": 3}, "warn"),
    "compute-mode": ({"compute_mode": "Exclusive_Process"}, "warn"),
    "processes": ({"processes": (4711,)}, "warn"),
    "mig": ({"mig": True}, "note"),
    "driver": ({"driver": "580.95.05", "library": "570.86.10"}, "fail"),
    "runtime": ({"isa": "gfx950", "runtime": "ROCm 6.4.2"}, "fail"),
    "fabric-state": ({"fabric_state": "in progress"}, "fail"),
}


@pytest.mark.parametrize(
    ("isa", "runtime", "built_for", "said"),
    [
        ("gfx950", "ROCm 6.4.2", ("gfx942", "gfx950"), "gfx950 needs a torch of ROCm 7.0 or newer"),
        ("gfx950", "ROCm 7.1.2", ("gfx90a", "gfx942"), "has kernels for gfx90a, gfx942, not for"),
        ("gfx950:sramecc+:xnack-", "ROCm 7.1.2", ("gfx942", "gfx950"), None),
        ("gfx942", "ROCm 6.4.2", ("gfx942:xnack+",), None),
        ("gfx942", None, None, None),
        (None, "ROCm 6.4.2", ("gfx90a",), None),
    ],
)
def test_a_torch_that_does_not_support_the_gpu(isa, runtime, built_for, said):
    here = card(memory="torch:cuda:0", isa=isa, runtime=runtime, built_for=built_for)
    findings = found(inventory(cards=(here,)))
    assert [(one.check, one.severity) for one in findings] == [("runtime", "fail")] * bool(said)
    assert not said or said in findings[0].found


@pytest.mark.parametrize("check", CARDS)
def test_states_of_accelerators(check):
    changes, severity = CARDS[check]
    findings = found(inventory(cards=(card(**changes),)))
    assert [(finding.check, finding.severity) for finding in findings] == [(check, severity)]
    assert findings[0].subject == "cuda:0"


@pytest.mark.parametrize("check", CARDS)
def test_other_vendors_are_not_told_nvidias_commands(check):
    changes, _ = CARDS[check]
    pci = (root(), gpu(vendor=0x1002))
    findings = found(inventory(pci=pci, cards=(card(memory="opencl:0", **changes),)))
    assert [finding.check for finding in findings] == [check]
    assert not any("nvidia" in line for line in findings[0].remedy)


WELL = (
    {"throttled": ("gpu idle",)},
    {"driver": "580.95.05", "library": "13.580.95.05"},
    {"fabric_state": "completed, success"},
    {"compute_mode": "Default", "processes": (), "persistence": True},
)


@pytest.mark.parametrize("changes", WELL)
def test_accelerators_that_are_well_give_no_finding(changes):
    assert found(inventory(cards=(card(**changes),))) == ()


def test_throttling_under_load_counts_before_the_idle_state():
    load = reading(throttled=("power cap",), temperature_max=71.0, link_speed=32.0, link_width=16)
    finding = the("clocks", found(inventory(), None, measured(load)))
    assert "power cap (at 71 °C)" in finding.found


@pytest.mark.parametrize(("reason", "said"), [("power cap", []), ("thermal slowdown", ["clocks"])])
def test_a_cap_on_power_while_matrices_are_multiplied_is_how_devices_are_made(reason, said):
    load = reading(throttled=(reason,))
    findings = found(inventory(), None, measured(load, operation="matmul-fp16"))
    assert [finding.check for finding in findings] == said


def test_memory_errors_during_the_run_fail():
    before, after = inventory(cards=(card(ecc_errors=0),)), inventory(cards=(card(ecc_errors=2),))
    assert the("ecc", found(before, after)).severity == "fail"


def test_a_driver_that_does_not_fit_leaves_no_device():
    why = "nvmlInit: Driver/library version mismatch"
    assert the("driver", found(unavailable={"cuda": why})).subject == "cuda"


def nvlinks(*active, errors=0):
    return tuple(
        FabricLink(n, "NVLink", up, rate=25e9, remote="cuda:1", errors=errors)
        for n, up in enumerate(active)
    )


def test_links_that_are_down_are_named_once():
    pair = (card(links=nvlinks(True, False)), card(memory="cuda:1", pci=None, links=tuple(
        replace(link, remote="cuda:0") for link in nvlinks(True, False))))  # fmt: skip
    finding = the("fabric-links", found(inventory(cards=pair)))
    assert (finding.severity, finding.subject) == ("fail", "cuda:0-cuda:1")
    assert "1 of 2 NVLink links" in finding.found


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


def test_links_that_all_cards_lost_during_the_run_are_not_as_built():
    before, after = (inventory(cards=wired("X", up, up, form="PCIe")) for up in (18, 12))
    findings = [each for each in found(before, after) if each.check == "fabric-links"]
    assert {finding.severity for finding in findings} == {"fail"}


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


def test_errors_of_the_fabric_that_rose():
    before = inventory(cards=(card(links=nvlinks(True, True)),))
    after = inventory(cards=(card(links=nvlinks(True, True, errors=3)),))
    assert "6 errors" in the("fabric-errors", found(before, after)).found


def test_a_link_that_is_down_and_says_not_where_it_led_is_one_of_its_kind():
    """As NVML has it."""
    to_switch = tuple(replace(link, remote="nvswitch") for link in nvlinks(*[True] * 15))
    down = tuple(FabricLink(n, "NVLink", active=False) for n in (15, 16, 17))
    finding = the("fabric-links", found(inventory(cards=(card(links=to_switch + down),))))
    assert (finding.severity, finding.subject) == ("fail", "cuda:0")
    assert "3 of 18 NVLink links" in finding.found
    assert "83%" in finding.why


def test_a_switch_that_all_devices_lost_links_to_is_to_blame():
    def lost(*counts):
        return tuple(
            card(memory=f"cuda:{n}", pci=None, links=tuple(
                replace(link, remote="nvswitch")
                for link in nvlinks(*[True] * (4 - count), *[False] * count)))
            for n, count in enumerate(counts)
        )  # fmt: skip

    findings = found(inventory(cards=lost(1, 2)))
    assert (findings[0].check, findings[0].subject) == ("switch", "nvswitch")
    one = found(inventory(cards=lost(0, 2)))
    assert [(each.check, each.subject) for each in one] == [("fabric-links", "cuda:1-nvswitch")]


def test_links_of_two_kinds_have_counters_of_their_own():
    """Both are numbered from 0."""
    chip = FabricLink(0, "c2c", active=True, remote="host:0")
    before = inventory(cards=(card(links=(*nvlinks(True), chip)),))
    after = inventory(cards=(card(links=(*nvlinks(True, errors=3), chip)),))
    assert "3 errors" in the("fabric-errors", found(before, after)).found


def test_links_that_went_down_during_the_run_are_told():
    before = inventory(cards=(card(links=nvlinks(True, True)),))
    after = inventory(cards=(card(links=nvlinks(True, False)),))
    assert "1 of 2" in the("fabric-links", found(before, after)).found
