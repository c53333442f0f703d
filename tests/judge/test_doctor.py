"""Each check of the doctor, on evidence made by hand: what it says, and that it says nothing of
what is well or unknown."""

import re
from pathlib import Path

import pytest
from msgspec import NODEFAULT
from msgspec.structs import fields, replace

from doctor_kit import (
    FULL,
    GOOD,
    GPU,
    PORT,
    ROOT,
    card,
    found,
    gpu,
    inventory,
    machine,
    measured,
    reading,
    root,
    the,
)
from linkgauge.judge.doctor import CHECKS, diagnose, failed
from linkgauge.judge.findings import Evidence, evidence_of
from linkgauge.judge.outcome import outcome_of
from linkgauge.model.inventory import (
    Adapter,
    HostDetails,
    Inventory,
    PciFunction,
    PciLink,
)
from linkgauge.model.notation import parse_transfers
from linkgauge.model.result import Run
from linkgauge.model.settings import Settings


def test_a_machine_that_is_well_gives_no_finding():
    assert found(inventory(), inventory(), measured(reading(link_speed=32.0, link_width=16))) == ()


def test_a_machine_of_which_nothing_is_known_gives_no_failure():
    findings = diagnose(Evidence(replace(machine(Inventory()), inventory=None)))
    assert not failed(findings)
    assert {finding.severity for finding in findings} == {"unknown"}


@pytest.mark.parametrize(
    "field", [f.name for f in fields(PciFunction) if f.default is not NODEFAULT]
)
def test_what_is_unknown_of_a_function_fails_nothing(field):
    default = next(f.default for f in fields(PciFunction) if f.name == field)
    findings = found(inventory(pci=(root(**{field: default}), gpu(**{field: default}))))
    assert not failed(findings)


def test_a_link_that_is_slow_under_load_fails():
    slow = replace(FULL, speed=8.0)
    findings = found(
        inventory(pci=(root(link=slow), gpu(link=slow))), None,
        measured(reading(link_speed=8.0, link_width=16)),
    )  # fmt: skip
    finding = the("link-speed", findings)
    assert (finding.severity, finding.subject) == ("fail", f"cuda:0 ({GPU})")
    assert "8 GT/s under load; both ends support 32" in finding.found


def test_a_link_that_rests_while_idle_is_a_note():
    idle = replace(FULL, speed=2.5)
    findings = found(
        inventory(pci=(root(link=idle), gpu(link=idle))), None,
        measured(reading(link_speed=2.5), reading(link_speed=32.0, link_width=16)),
    )  # fmt: skip
    assert the("link-speed", findings).severity == "note"
    assert not failed(findings)


def test_a_link_that_fell_in_mid_run_is_slow():
    fallen = [*[32.0] * 4, *[8.0] * 3]
    load = measured(*(reading(link_speed=speed, link_width=16) for speed in fallen))
    finding = the("link-speed", found(inventory(), None, load))
    assert finding.severity == "fail"
    assert "8 GT/s under load, after 32 earlier" in finding.found


def test_what_a_link_does_while_others_are_in_use_is_no_load():
    """A copy within a device leaves its link at rest."""
    idle = replace(FULL, speed=2.5)
    load = measured(reading(link_speed=2.5))
    within = tuple(
        replace(c, transfers=parse_transfers("cuda:0 -> cuda:0 by ce")) for c in load.cells
    )
    findings = found(
        inventory(pci=(root(link=idle), gpu(link=idle))), None, replace(load, cells=within)
    )
    assert the("link-speed", findings).severity == "warn"


def test_without_a_run_a_slow_link_may_be_idle():
    idle = replace(FULL, speed=2.5)
    finding = the("link-speed", found(inventory(pci=(root(link=idle), gpu(link=idle)))))
    assert finding.severity == "warn"
    assert "saving power" in finding.found


def test_the_highest_speed_is_what_both_ends_support():
    """A Gen 5 card in a Gen 4 slot is as fast as it can be: the slot is what is told of."""
    old = PciLink(speed=16.0, width=16, max_speed=16.0, max_width=16, target=16.0)
    findings = found(inventory(pci=(root(link=old), gpu(link=replace(FULL, speed=16.0)))))
    assert [finding.check for finding in findings] == ["bridge"]
    assert "16 GT/s x16" in findings[0].found


def test_where_pci_shows_nothing_the_library_tells_of_the_link():
    """A container without /sys/bus/pci."""
    told = card(link=replace(FULL, speed=8.0))
    load = measured(reading(link_speed=8.0, link_width=16))
    findings = found(inventory(pci=(), cards=(told,)), None, load)
    assert the("link-speed", findings).severity == "fail"
    assert {finding.check for finding in findings} == {"link-speed", "payload"}


def test_fewer_lanes_fail():
    narrow = replace(FULL, width=4)
    finding = the("link-width", found(inventory(pci=(root(link=narrow), gpu(link=narrow)))))
    assert finding.severity == "fail"
    assert finding.found == "the link runs at x4; both ends support x16"


def test_where_only_the_lower_end_tells_the_slot_may_be_no_better():
    """A card of x16 in a slot of x8 that says nothing is as it should be."""
    half = replace(FULL, width=8, speed=16.0)
    silent = root(link=PciLink())
    load = measured(reading(link_speed=16.0, link_width=8))
    for check in ("link-width", "link-speed"):
        finding = the(check, found(inventory(pci=(silent, gpu(link=half))), None, load))
        assert finding.severity == "warn"
        assert "the upper end is unknown" in finding.found


def test_what_reads_as_ones_has_fallen_off_the_bus():
    gone = gpu(silent=True, link=PciLink(), max_payload=None, max_read_request=None)
    finding = the("silent", found(inventory(pci=(root(), gone))))
    assert (finding.severity, finding.subject) == ("fail", f"cuda:0 ({GPU})")


def test_the_newest_speed_can_be_trained_for():
    newest = PciLink(speed=8.0, width=16, max_speed=128.0, max_width=16, target=8.0)
    finding = the("target-speed", found(inventory(pci=(root(link=newest), gpu(link=newest)))))
    assert f"sudo setpci -s {ROOT} CAP_EXP+30.w=7:f" in "\n".join(finding.remedy)


def test_a_virtual_machines_addresses_are_not_its_hosts():
    slow = replace(FULL, speed=2.5, target=2.5)
    host = replace(GOOD, hypervisor="QEMU")
    findings = found(inventory(host=host, pci=(root(link=slow), gpu(link=slow))))
    lines = "\n".join(the("target-speed", findings).remedy)
    assert 'setpci -s "${PORT:?}" CAP_EXP+30.w=5:f' in lines
    assert lines.index("DEVICE=") < lines.index("PORT=") < lines.index("sudo setpci")
    assert ROOT not in lines
    assert GPU not in lines


def test_a_guest_reads_the_register_of_an_emulated_port_which_proves_little():
    slow = replace(FULL, speed=2.5, target=2.5)
    host = replace(GOOD, hypervisor="QEMU")
    findings = found(inventory(host=host, pci=(root(link=slow), gpu(link=slow))))
    finding = the("target-speed", findings)
    assert f"the emulated port above it, {ROOT}, asks for 2.5 GT/s" in finding.found
    assert "which a guest cannot read: it is likely to" in finding.why
    assert "emulated" in the("payload", findings).found


def test_a_link_that_its_port_holds_down_is_explained_by_that():
    slow = replace(FULL, speed=2.5, target=2.5)
    run = measured(reading(link_speed=2.5))
    findings = found(inventory(pci=(root(link=slow), gpu(link=slow))), None, run)
    cause, effect = the("target-speed", findings), the("link-speed", findings)
    assert effect.explained_by == (cause.name,)
    assert findings.index(cause) < findings.index(effect)


def test_a_pinned_target_speed_gives_the_lines_that_retrain():
    slow = replace(FULL, speed=2.5, target=2.5)
    old = replace(slow, max_speed=16.0)
    finding = the("target-speed", found(inventory(pci=(root(link=old), gpu(link=slow)))))
    assert finding.severity == "fail"
    lines = "\n".join(finding.remedy)
    assert f"sudo setpci -s {ROOT} CAP_EXP+30.w=4:f" in lines  # the highest that both support
    assert f"sudo setpci -s {ROOT} CAP_EXP+10.w=20:20" in lines
    assert f"ExecStart=/usr/bin/env setpci -s {ROOT} CAP_EXP+30.w=4:f" in lines
    assert f"setpci -s {GPU}" not in lines  # the port above decides, not the card
    assert "First stop the virtual machines" in lines
    assert "0x0060" in lines
    assert lines.index("+30.w") < lines.index("+10.w")


def test_in_a_virtual_machine_without_a_port_the_lines_point_to_the_host():
    slow = replace(FULL, speed=2.5)
    vm = replace(GOOD, hypervisor="KVM")
    findings = found(
        inventory(host=vm, pci=(gpu(link=slow, parent=None),)), None,
        measured(reading(link_speed=2.5)),
    )  # fmt: skip
    lines = the("link-speed", findings).remedy
    assert "virtual machine's host" in lines[0]
    assert any('setpci -s "${PORT:?}" CAP_EXP+30.w=5:f' in line for line in lines)


def test_what_a_virtual_machine_hides_is_unknown():
    host = HostDetails(hypervisor="KVM", unknown=("IOMMU: no /sys/kernel/iommu_groups",))
    hidden = gpu(
        parent=None,
        link=PciLink(),
        numa_node=None,
        max_payload=None,
        errors=None,
        unknown=("link: config space: only 64 bytes are readable: run as root",),
    )
    findings = found(inventory(host=host, pci=(hidden,)))
    assert {finding.severity for finding in findings} == {"unknown"}
    assert {"link-speed", "link-width", "near-node", "iommu", "governor"} <= {
        finding.check for finding in findings
    }
    assert "run as root" in the("link-speed", findings).found
    assert "a virtual machine hides it" in the("near-node", findings).found


def test_a_made_up_port_of_a_virtual_machine_fails_nothing():
    vm = replace(GOOD, hypervisor="KVM")
    made_up = root(
        max_payload=128, link=PciLink(speed=16.0, width=32, max_speed=16.0, max_width=32)
    )
    findings = found(
        inventory(host=vm, pci=(made_up, gpu())), None,
        measured(reading(link_speed=32.0, link_width=16)),
    )  # fmt: skip
    assert not failed(findings)
    assert the("payload", findings).severity == "unknown"


def test_bridges_that_a_hypervisor_made_up_are_not_blamed():
    """They neither explain a slow link nor excuse one."""
    vm = replace(GOOD, hypervisor="QEMU")
    oldest = PciLink(speed=2.5, width=1, max_speed=2.5, max_width=1, target=2.5)
    made_up = root(link=oldest, max_payload=128, acs=("request redirect",))
    worse = replace(made_up, errors={"correctable": 5, "fatal": 0})
    well = measured(reading(link_speed=32.0, link_width=16))
    findings = found(
        inventory(host=vm, pci=(made_up, gpu())), inventory(host=vm, pci=(worse, gpu())), well
    )
    assert [(each.check, each.severity) for each in findings] == [("payload", "unknown")]
    assert "the port above it is emulated" in findings[0].found
    slow = measured(reading(link_speed=8.0, link_width=16))
    assert the("link-speed", found(inventory(host=vm, pci=(made_up, gpu())), None, slow))


PCI = {
    "payload": (root(max_payload=128), gpu()),
    "read-request": (root(), gpu(max_read_request=128)),
}


@pytest.mark.parametrize(("check", "severity"), [("payload", "fail"), ("read-request", "warn")])
def test_packets_of_the_wrong_size(check, severity):
    assert the(check, found(inventory(pci=PCI[check]))).severity == severity


def test_redirection_matters_on_a_path_between_two_devices():
    other = "0000:03:00.0"
    ports = [
        PciFunction(address=address, class_code=0x060400, port="downstream port", parent=PORT,
                    link=FULL, max_payload=256, acs=acs)
        for address, acs in (("0000:01:01.0", ("P2P Request Redirect",)), ("0000:01:02.0", ()))
    ]  # fmt: skip
    switch = PciFunction(address=PORT, class_code=0x060400, port="upstream port", parent=ROOT,
                         link=FULL, max_payload=256)  # fmt: skip
    cards = (gpu(parent="0000:01:01.0"), gpu(address=other, parent="0000:01:02.0"))
    both = (card(), card(memory="cuda:1", pci=other))
    finding = the("acs", found(inventory(pci=(root(), switch, *ports, *cards), cards=both)))
    assert finding.subject == "0000:01:01.0"
    assert "cuda:0-cuda:1" in finding.found
    alone = found(inventory(pci=(root(), switch, *ports, cards[0])))
    assert "acs" not in {finding.check for finding in alone}


def test_counters_that_rose_are_told():
    after = inventory(pci=(root(), gpu(errors={"correctable": 12, "fatal": 0})))
    finding = the("link-errors", found(inventory(), after))
    assert (finding.severity, finding.subject) == ("warn", f"cuda:0 ({GPU})")
    assert "correctable +12" in finding.found
    fatal = inventory(pci=(root(), gpu(errors={"correctable": 0, "fatal": 1})))
    assert the("link-errors", found(inventory(), fatal)).severity == "fail"
    replays = inventory(cards=(card(pcie_replays=7),))
    finding = the("link-errors", found(inventory(cards=(card(pcie_replays=5),)), replays))
    assert "2 packets" in finding.found


@pytest.mark.parametrize(
    ("check", "status", "kind"),
    [
        ("peer-access", "skip", "peer"),
        ("imex", "error", "imex"),
        ("hang", "timeout", "timeout"),
        ("crash", "error", "crash"),
        ("lost", "error", "lost"),
        ("out-of-memory", "error", "memory"),
    ],
)
def test_cells_that_were_not_measured(check, status, kind):
    one = measured(status=status, reason="in whatever words", kind=kind)
    finding = the(check, found(inventory(), None, one))
    assert finding.severity == "fail"
    assert finding.cells


def test_wrong_bytes_are_told_with_the_part():
    wrong = measured(status="fail", reason="wrong at byte 0", verified=False, kind="wrong-bytes")
    assert "1 cell copied wrong bytes" in the("wrong-bytes", found(inventory(), None, wrong)).found


def test_adapters_are_looked_at_like_accelerators():
    nic = gpu(address="0000:05:00.0", class_code=0x020700, link=replace(FULL, width=8))
    adapter = Adapter(name="mlx5_0", pci="0000:05:00.0")
    findings = found(inventory(pci=(root(), gpu(), nic), adapters=(adapter,)))
    assert the("link-width", findings).subject == "mlx5_0 (0000:05:00.0)"


def test_failures_come_first():
    bad = inventory(host=replace(GOOD, governor="powersave"), cards=(card(remap_pending=True),))
    assert [finding.severity for finding in found(bad)] == ["fail", "warn"]


def run_on(what, result, unavailable=None):
    return Run(id="1", label="l", command=(), started="s", finished="f",
               machine=machine(what, unavailable), settings=Settings(sizes=()),
               results=(result,))  # fmt: skip


def test_after_a_run_only_trouble_is_told():
    what = inventory(host=replace(GOOD, governor="powersave"))
    assert outcome_of(run_on(what, measured())).findings == ()
    low = run_on(what, measured(verdict="low"))
    assert [finding.check for finding in outcome_of(low).findings] == ["governor"]


def test_after_a_run_warnings_about_what_it_measured_are_told_too():
    what = inventory(cards=(card(locked_clock=1e9, max_clock=2e9),))
    assert [finding.check for finding in outcome_of(run_on(what, measured())).findings] == [
        "locked-clock"
    ]


def test_after_a_run_a_failure_of_a_part_that_it_left_out_is_not_told():
    other = card(memory="cuda:1", pci="0000:03:00.0", remap_pending=True)
    what = inventory(cards=(card(), other))
    mismatch = {"rocm": "driver/library version mismatch"}
    alone = evidence_of(run_on(what, measured(), mismatch))
    assert {f.check for f in diagnose(alone) if f.severity == "fail"} == {"row-remap", "driver"}
    assert outcome_of(run_on(what, measured(), mismatch)).findings == ()
    broken = inventory(cards=(card(remap_pending=True),))
    assert [f.check for f in outcome_of(run_on(broken, measured())).findings] == ["row-remap"]


def test_every_finding_has_a_row_in_the_documentation():
    here = Path(__file__).parents[2]
    paths = (here / "src/linkgauge/judge").rglob("*.py")
    sources = [path.read_text() for path in paths if path.parent.name != "vm"]
    names = {
        name
        for text in sources
        for pattern in (r'Finding\(\s*"([a-z-]+)"', r'_(?:unmeasured|found)\(\s*"([a-z-]+)"')
        for name in re.findall(pattern, text)
    }
    rows = set(
        re.findall(r"^\| `([a-z-]+)` \|", (here / "docs/doctor.md").read_text(), re.MULTILINE)
    )
    assert names == rows - {"fail", "warn", "note", "unknown"}
    assert len(names) > 40
    assert len(set(CHECKS)) == len(CHECKS)


def test_a_finding_of_28_cells_carries_them_all():
    one = measured(status="timeout", reason="late", kind="timeout")
    (cell,) = one.cells
    cells = tuple(replace(cell, column=str(column)) for column in range(28))
    finding = the("hang", found(inventory(), None, replace(one, cells=cells)))
    assert len(finding.cells) == 28
