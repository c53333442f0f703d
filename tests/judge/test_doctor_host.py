"""The doctor looks at the host: its memory, its CPUs, and what this process may use of them."""

import pytest
from msgspec.structs import replace

from doctor_kit import GOOD, found, gpu, inventory, measured, root, the, told
from linkgauge.judge import doctor
from linkgauge.judge.findings import Finding
from linkgauge.model.counters import Load

HOST = {
    "iommu": ({"iommu": "translating"}, "warn"),
    "governor": ({"governor": "powersave"}, "warn"),
    "transparent-huge-pages": ({"transparent_huge_pages": "always madvise [never]"}, "warn"),
    "huge-pages": ({"huge_pages": {2 << 20: (0, 0)}}, "note"),
    "memlock": ({"memlock_limit": 8 << 20}, "note"),
    "steal": ({"steal": 0.1}, "warn"),
}
MORE = [
    ("steal", {"steal": 0.03}, "note"),
    ("allowed", {"allowed_cpus": (2, 3)}, "fail"),
    ("allowed", {"allowed_nodes": (1,)}, "fail"),
    ("governor", {"governor": "performance, powersave"}, "warn"),
    ("huge-pages", {"huge_pages": {2 << 20: (0, 0), 1 << 30: (4, 4)}}, "note"),
]


@pytest.mark.parametrize(
    ("check", "changes", "severity"), [*((check, *each) for check, each in HOST.items()), *MORE]
)
def test_settings_of_the_host(check, changes, severity):
    findings = found(inventory(host=replace(GOOD, **changes)))
    assert told(findings) == [(check, severity)]
    assert findings[0].remedy


@pytest.mark.parametrize(
    "pages", [{2 << 20: (8, 0), 1 << 30: (0, 0)}, {512 << 20: (0, 0)}, {}, {2 << 20: (4, 4)}]
)
def test_huge_pages_that_are_there_or_unusual_are_no_matter(pages):
    assert found(inventory(host=replace(GOOD, huge_pages=pages))) == ()


def test_steal_is_of_the_run_not_since_boot():
    def after(steal):
        return inventory(host=replace(GOOD, steal=steal, cpu_ticks=1.1e6))

    before = inventory(host=replace(GOOD, steal=0.1, cpu_ticks=1e6))
    assert told(found(before, after(0.1))) == [("steal", "warn")]
    assert found(before, after(0.1 * 1e6 / 1.1e6)) == ()


def test_buffers_that_were_not_locked_make_the_limit_a_warning():
    host = replace(GOOD, memlock_limit=8 << 20)
    findings = found(inventory(host=host), None, measured(locked=False))
    assert the("memlock", findings).severity == "warn"


def test_a_device_of_a_node_without_memory_is_remote():
    finding = the("near-node", found(inventory(pci=(root(), gpu(numa_node=7)))))
    assert finding.severity == "warn"
    assert "cpuset" not in " ".join(finding.remedy)  # which would not give it any


@pytest.mark.parametrize(
    ("driver", "slow"),
    [
        ("intel_pstate", False), ("amd-pstate-epp", False), ("amd_pstate_epp", False),
        ("intel_cpufreq", True), ("amd-pstate", True), ("acpi-cpufreq, intel_pstate", True),
    ],
)  # fmt: skip
def test_powersave_is_no_fault_where_the_processor_chooses_its_frequency(driver, slow):
    host = replace(GOOD, governor="powersave", frequency_driver=driver)
    assert [each.check for each in found(inventory(host=host))] == ["governor"] * slow
    slower = replace(GOOD, governor="ondemand", frequency_driver=driver)
    assert the("governor", found(inventory(host=slower))).severity == "warn"


def test_what_is_set_already_is_not_advised():
    host = replace(GOOD, iommu="translating", command_line="ro iommu=pt")
    assert "boot with" not in the("iommu", found(inventory(host=host))).remedy[0]


CALM = Load(1.0, others=0.1, process="agent", pid=7)
BUSY = Load(1.0, others=2.88, process="python3", pid=8685)
"""Of four CPUs."""


def under(*loads, imprecise=0, lacks=False):
    """A result whose cells were measured under these loads."""
    (cell,) = measured().cells
    summary = replace(cell.summary, ci95=(0.6 * cell.summary.median, 1.1 * cell.summary.median))
    vague = {"stopped": "max-time", "summary": replace(summary, ci95=None) if lacks else summary}
    cells = tuple(
        replace(cell, column=str(n), load=load, **(vague if n < imprecise else {}))
        for n, load in enumerate(loads)
    )
    return replace(measured(), cells=cells)


class TestOtherPrograms:
    """What took the CPUs' time while cells were measured comes before what figures suggest."""

    def test_are_named_first_with_what_is_uncertain(self):
        failing = inventory(host=replace(GOOD, allowed_cpus=(2, 3)))
        first, second, *_ = found(failing, None, under(*[BUSY] * 33, imprecise=27))
        assert told((first, second)) == [("busy", "warn"), ("allowed", "fail")]
        for figure in (
            "python3 8685",
            "72%",
            "33 cells were",
            "27 of",
            "are uncertain (up to ±40%)",
        ):
            assert figure in first.found
        assert first.remedy[-1] == "ps -fp 8685"

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"imprecise": 1}, "1 cell was measured; its figure is uncertain (±40%)"),
            ({"imprecise": 1, "lacks": True}, "its figure is uncertain (it has no interval)"),
            ({}, "1 cell was measured; no figure missed its precision"),
        ],
    )
    def test_one_cell_is_one_and_without_a_missed_precision_it_is_no_warning(self, given, said):
        finding = the("busy", found(inventory(), None, under(BUSY, **given)))
        assert finding.severity == ("warn" if given else "note")
        assert finding.found.endswith(said)

    @pytest.mark.parametrize(
        "loads",
        [[CALM] * 10, [None] * 10, [*[CALM] * 19, BUSY], [Load(1.0, others=0.24)] * 10],
        ids=["own services", "unknown", "a job that came and went", "less than a quarter of a CPU"],
    )
    def test_that_are_few_make_no_machine_busy(self, loads):
        assert found(inventory(), None, under(*loads)) == ()

    def test_that_used_most_are_named_and_others_have_no_name(self):
        loads = [Load(1.0, others=2.0 + pid / 10, process="cc", pid=pid) for pid in range(1, 7)]
        assert "(cc 6, cc 5, cc 4)" in the("busy", found(inventory(), None, under(*loads))).found
        undetectable = the("busy", found(inventory(), None, under(Load(1.0, others=2.0))))
        assert undetectable.remedy[-1].startswith("ps -eo pcpu")

    @pytest.mark.parametrize("check", ["stall", "scatter"])
    @pytest.mark.parametrize("taken", ["busy", "steal"])
    def test_explain_what_is_unsteady_and_nothing_else(self, monkeypatch, check, taken):
        name = "host_to_device_memcpy_ce host:0 -> cuda:0"

        def unsteady(_):
            remedy = ("# Look:",)
            yield Finding(check, "warn", "cuda:0", "it varies", "why", remedy, (name,))
            yield Finding("slow", "warn", "cuda:0", "it is slow", "why", remedy, (name,))

        rest = doctor.checks_of
        monkeypatch.setattr(doctor, "checks_of", lambda known: (unsteady, *rest(known)))
        stolen = inventory(host=replace(GOOD, steal=0.3))
        before, load = (inventory(), BUSY) if taken == "busy" else (stolen, Load(1.0, stolen=2.0))
        findings = found(before, None, under(load))
        assert findings[0].check == taken
        assert the(check, findings).explained_by == (f"{taken} of host",)
        assert the("slow", findings).explained_by == ()
