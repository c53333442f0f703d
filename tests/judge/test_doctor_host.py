"""The doctor looks at the host: its memory, its CPUs, and what this process may use of them."""

import pytest
from msgspec.structs import replace

from doctor_kit import GOOD, found, gpu, inventory, measured, root, the

HOST = {
    "iommu": {"iommu": "translating"},
    "governor": {"governor": "powersave"},
    "transparent-huge-pages": {"transparent_huge_pages": "always madvise [never]"},
    "huge-pages": {"huge_pages": {2 << 20: (0, 0)}},
    "memlock": {"memlock_limit": 8 << 20},
    "steal": {"steal": 0.1},
}


def test_steal_is_of_the_run_not_since_boot():
    before, busy = (inventory(host=replace(GOOD, steal=steal, cpu_ticks=ticks))
                    for steal, ticks in ((0.1, 1e6), (0.1, 1.1e6)))  # fmt: skip
    calm = inventory(host=replace(GOOD, steal=0.1 * 1e6 / 1.1e6, cpu_ticks=1.1e6))
    assert "10% of the CPUs' time during the run" in the("steal", found(before, busy)).found
    assert found(before, calm) == ()
    assert "since boot" in the("steal", found(before)).found


@pytest.mark.parametrize("check", HOST)
def test_settings_of_the_host_warn(check):
    findings = found(inventory(host=replace(GOOD, **HOST[check])))
    assert [finding.check for finding in findings] == [check]
    assert findings[0].severity in ("warn", "note")
    assert findings[0].remedy


def test_buffers_that_were_not_locked_make_the_limit_a_warning():
    host = replace(GOOD, memlock_limit=8 << 20)
    findings = found(inventory(host=host), None, measured(locked=False))
    assert the("memlock", findings).severity == "warn"


@pytest.mark.parametrize(
    "limits", [{"allowed_cpus": (2, 3)}, {"allowed_nodes": (1,)}], ids=["cpus", "memory"]
)
def test_a_node_that_this_process_may_not_use_fails(limits):
    finding = the("allowed", found(inventory(host=replace(GOOD, **limits))))
    assert finding.severity == "fail"
    assert "--cpunodebind=0" in finding.remedy[0]


def test_a_node_without_memory_is_remote():
    finding = the("near-node", found(inventory(pci=(root(), gpu(numa_node=7)))))
    assert finding.severity == "warn"
    assert "no memory" in finding.found
    assert "cpuset" not in " ".join(finding.remedy)  # which would not give it any


@pytest.mark.parametrize(
    ("pages", "notes"),
    [
        ({2 << 20: (0, 0), 1 << 30: (4, 4)}, True),
        ({2 << 20: (8, 0), 1 << 30: (0, 0)}, False),
        ({512 << 20: (0, 0)}, False),
        ({}, False),
    ],
)
def test_huge_pages_are_those_that_are_used(pages, notes):
    findings = found(inventory(host=replace(GOOD, huge_pages=pages)))
    assert [finding.check for finding in findings] == ["huge-pages"] * notes
    # What sysctl counts may be pages of 512 MiB.
    assert all("hugepages-2048kB" in finding.remedy[0] for finding in findings)


def test_one_slow_governor_of_several_counts():
    mixed = found(inventory(host=replace(GOOD, governor="performance, powersave")))
    assert the("governor", mixed).severity == "warn"
    assert found(inventory(host=replace(GOOD, governor="performance"))) == ()


@pytest.mark.parametrize(
    ("driver", "slow"),
    [
        ("intel_pstate", False),
        ("amd-pstate-epp", False),
        ("amd_pstate_epp", False),
        ("intel_cpufreq", True),
        ("amd-pstate", True),
        ("acpi-cpufreq", True),
        ("acpi-cpufreq, intel_pstate", True),
        (None, True),
    ],
)
def test_powersave_is_no_fault_where_the_processor_chooses_its_frequency(driver, slow):
    host = replace(GOOD, governor="powersave", frequency_driver=driver)
    assert [each.check for each in found(inventory(host=host))] == ["governor"] * slow
    slower = replace(GOOD, governor="ondemand", frequency_driver=driver)
    assert the("governor", found(inventory(host=slower))).severity == "warn"


def test_what_is_set_already_is_not_advised():
    host = replace(GOOD, iommu="translating", command_line="ro iommu=pt")
    assert "boot with" not in the("iommu", found(inventory(host=host))).remedy[0]
