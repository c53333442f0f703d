"""What the doctor says of lines that the kernel logged during a run."""

import pytest
from msgspec.structs import replace

from doctor_kit import GPU, ROOT, card, gpu, inventory, machine, measured, root, the
from linkgauge.judge.doctor import diagnose
from linkgauge.judge.findings import Evidence
from linkgauge.judge.outcome import outcome_of
from linkgauge.judge.xids import BROKEN
from linkgauge.model.inventory import Adapter
from linkgauge.model.kernel_log import KernelLog, LogLine
from linkgauge.model.notation import parse_transfers
from linkgauge.model.result import Run
from linkgauge.model.settings import Settings

SUBJECT = f"cuda:0 ({GPU})"
OTHER = "0000:03:00.0"
TWO = inventory(
    pci=(root(), gpu(), gpu(address=OTHER)), cards=(card(), card(memory="cuda:1", pci=OTHER))
)


def line(kind, text="x", *, pci=GPU, seconds=1.5, level=3, **more):
    return LogLine(seconds, text, kind, pci, level, **more)


def xid(number, pci=GPU, seconds=1.5, **more):
    text = f"NVRM: Xid (PCI:{pci[:-2]}): {number}, x"
    return line("xid", text, pci=pci, seconds=seconds, code=number, **more)


def findings(*lines, results=(), here=None, **log):
    evidence = Evidence(machine(here or inventory()), None, results, log=KernelLog(lines, **log))
    return diagnose(evidence)


def logged(*lines, **more):
    return the("kernel-log", findings(*lines, **more))


@pytest.mark.parametrize("number", sorted(BROKEN))
def test_xids_of_broken_devices_and_links_are_failures(number):
    finding = logged(xid(number))
    assert (finding.severity, finding.subject) == ("fail", SUBJECT)
    assert f"Xid {number} ({BROKEN[number]})" in finding.found
    assert finding.lines == (f"1.500 s: NVRM: Xid (PCI:0000:02:00): {number}, x",)


def test_the_table_of_broken_devices_has_what_nvidia_resets_them_for():
    # Resolution buckets RESET_GPU, RESTART_BM, CHECK_MECHANICALS and the workflows of 48 and 74.
    reset = {46, 48, 54, 62, 64, 74, 79, 95, 109, 110, 119, 120, 136, 140, 143, 156, 158}
    assert reset < BROKEN.keys()
    assert BROKEN.keys().isdisjoint({8, 13, 14, 31, 32, 43, 45, 69, 106, 107, 137, 154, 155})


@pytest.mark.parametrize(
    ("number", "gravity", "severity"),
    [
        (13, None, "warn"),
        (31, None, "warn"),
        (43, None, "note"),
        (45, None, "note"),
        (154, None, "warn"),
        (999, None, "warn"),
        (145, "fatal", "fail"),
        (145, "uncorrected", "warn"),
        (13, "fatal", "warn"),
    ],
)
def test_other_xids_are_of_programs_or_pass(number, gravity, severity):
    assert logged(xid(number, gravity=gravity)).severity == severity


@pytest.mark.parametrize(
    ("one", "severity"),
    [
        (line("aer", gravity="corrected"), "warn"),
        (line("aer", gravity="uncorrected"), "fail"),
        (line("aer", gravity="fatal"), "fail"),
        (line("aer"), "warn"),
        (line("sxid", gravity="fatal", code=20034), "fail"),
        (line("sxid", gravity="uncorrected", code=12028), "warn"),
        (line("hardware", gravity="corrected"), "warn"),
        (line("hardware", gravity="uncorrected"), "fail"),
        (line("hotplug"), "warn"),
        (line("iommu"), "warn"),
        (line("driver", level=4), "warn"),
        (line("driver", level=6), "note"),
    ],
)
def test_other_lines_are_as_grave_as_they_say(one, severity):
    finding = logged(one)
    assert (finding.severity, finding.subject) == (severity, SUBJECT)


def test_lines_of_no_device_are_of_the_host():
    finding = logged(line("out-of-memory", "Out of memory: Killed process 7 (python)", pci=None))
    assert (finding.severity, finding.subject) == ("warn", "host")


def test_a_ports_lines_about_its_link_are_of_the_device_below_it():
    assert logged(line("aer", pci=ROOT)).subject == SUBJECT
    assert logged(line("hotplug", pci=ROOT)).subject == SUBJECT
    assert logged(line("driver", pci=ROOT)).subject == ROOT


def test_adapters_are_called_by_their_names_and_strangers_by_their_addresses():
    nic = gpu(address="0000:05:00.0", class_code=0x020700)
    adapter = Adapter(name="mlx5_0", pci="0000:05:00.0")
    here = inventory(pci=(root(), gpu(), nic), adapters=(adapter,))
    assert logged(line("aer", pci=adapter.pci), here=here).subject == "mlx5_0 (0000:05:00.0)"
    assert logged(line("aer", pci="0000:77:00.0"), here=here).subject == "0000:77:00.0"


def test_the_lines_of_one_device_are_one_finding_the_gravest_first():
    lines = (xid(45, seconds=1.0), line("aer", "a", seconds=2.0), xid(79, seconds=3.0))
    finding = logged(*lines)
    assert finding.severity == "fail"
    assert [text.partition(" s")[0] for text in finding.lines] == ["3.000", "2.000", "1.000"]
    assert "AER" not in finding.found


def test_each_device_has_a_finding_of_its_own():
    found = [f for f in findings(xid(79), xid(31, pci=OTHER), here=TWO) if f.check == "kernel-log"]
    assert [(f.severity, f.subject) for f in found] == [
        ("fail", SUBJECT), ("warn", f"cuda:1 ({OTHER})"),
    ]  # fmt: skip


def test_a_log_that_cannot_be_read_is_unknown():
    finding = logged(unknown=("kernel log: /dev/kmsg: Operation not permitted: run as root",))
    assert (finding.severity, finding.subject) == ("unknown", "host")
    assert "during the run: /dev/kmsg: Operation not permitted: run as root" in finding.found


@pytest.mark.parametrize(
    ("log", "says"),
    [({"more": 412}, "412 more lines"), ({"lost": True}, "overwrote before they were read")],
)
def test_what_is_not_kept_is_said(log, says):
    finding = logged(**log)
    assert (finding.severity, says in finding.found) == ("note", True)


def test_a_quiet_log_and_none_are_no_finding():
    assert findings() == ()
    assert diagnose(Evidence(machine(inventory()))) == ()


LOST = measured(status="error", reason="gone", kind="lost")
(CELL,) = LOST.cells
PEERS = replace(
    LOST, cells=(replace(CELL, transfers=parse_transfers("cuda:0 -> cuda:1 by cuda:0.ce")),)
)


class TestWhatIsKnownOtherwise:
    def test_is_confirmed_and_stays_the_first_cause(self):
        lost, own = findings(xid(79), results=(LOST,))
        assert (lost.check, own.check, own.severity) == ("lost", "kernel-log", "fail")
        assert own.why.endswith("; it confirms lost of cuda:0")
        assert lost == diagnose(Evidence(machine(inventory()), None, (LOST,)))[0]

    def test_is_not_confirmed_by_lines_of_another_device(self):
        first = {f.check: f for f in findings(xid(31, pci=OTHER), results=(LOST,), here=TWO)}
        assert "confirms" not in first["kernel-log"].why

    def test_is_not_confirmed_by_what_followed_from_it(self):
        assert "confirms" not in logged(xid(45), results=(LOST,)).why

    @pytest.mark.parametrize(("pci", "name"), [(GPU, "cuda:0"), (OTHER, "cuda:1")])
    def test_names_the_device_that_lines_call_broken_where_cells_tell_none(self, pci, name):
        lost = the("lost", findings(xid(79, pci=pci), results=(PEERS,), here=TWO))
        assert lost.subject == name

    def test_names_the_link_where_lines_call_that_broken(self):
        lost = the("lost", findings(line("aer", gravity="fatal"), results=(LOST,)))
        assert lost.subject == "PCIe link of cuda:0"
        corrected = the("lost", findings(line("aer", gravity="corrected"), results=(LOST,)))
        assert corrected.subject == "cuda:0"


def run_with(*lines):
    return Run(id="1", label="l", command=(), started="s", finished="f",
               machine=machine(TWO), settings=Settings(sizes=()), results=(measured(),),
               kernel_log=KernelLog(lines))  # fmt: skip


def test_a_run_fails_for_lines_about_what_it_measured_alone():
    assert outcome_of(run_with()).code == 0
    assert outcome_of(run_with(xid(79))).code == 1
    elsewhere = outcome_of(run_with(xid(79, pci=OTHER)))
    assert (elsewhere.code, elsewhere.findings) == (0, ())
    assert [finding.check for finding in elsewhere.found] == ["kernel-log"]
    assert outcome_of(run_with(xid(31))).code == 0
