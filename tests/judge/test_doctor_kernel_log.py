"""What the doctor says of lines that the kernel logged during a run."""

import pytest
from msgspec.structs import replace

from doctor_kit import GPU, ROOT, card, gpu, inventory, machine, measured, root, the
from linkgauge.judge.doctor import diagnose
from linkgauge.judge.findings import Evidence
from linkgauge.judge.outcome import outcome_of
from linkgauge.model.documents.result import Run
from linkgauge.model.hardware.inventory import Adapter, Gap
from linkgauge.model.joining import joined_known
from linkgauge.model.kernel_log import KernelLog, LogLine
from linkgauge.model.notation import parse_transfers
from linkgauge.model.settings import Settings
from remedy_kit import assert_pasteable

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
    found = diagnose(evidence)
    assert_pasteable(found)
    return found


def logged(*lines, **more):
    return the("kernel-log", findings(*lines, **more))


# Resolution buckets RESET_GPU, RESTART_BM, CHECK_MECHANICALS and the workflows of 48 and 74.
RESET = {46, 48, 54, 62, 64, 74, 79, 95, 109, 110, 119, 120, 136, 140, 143, 156, 158}


@pytest.mark.parametrize("number", sorted(RESET))
def test_xids_of_broken_devices_and_links_are_failures(number):
    finding = logged(xid(number))
    assert (finding.severity, finding.subject) == ("fail", SUBJECT)
    assert finding.lines == (f"1.500 s: NVRM: Xid (PCI:0000:02:00): {number}, x",)
    assert len(finding.remedy) == len(logged(xid(13)).remedy) + 1  # a reset


@pytest.mark.parametrize(
    ("number", "gravity", "severity"),
    [
        *((number, None, "warn") for number in (8, 13, 14, 32, 69, 106, 107, 137, 155)),
        (31, None, "warn"), (43, None, "note"), (45, None, "note"), (154, None, "warn"),
        (999, None, "warn"), (145, "fatal", "fail"), (145, "uncorrected", "warn"),
        (13, "fatal", "warn"),
    ],
)  # fmt: skip
def test_other_xids_are_of_programs_or_pass(number, gravity, severity):
    assert logged(xid(number, gravity=gravity)).severity == severity


@pytest.mark.parametrize(
    ("one", "severity"),
    [
        (line("aer", gravity="corrected"), "warn"), (line("aer", gravity="uncorrected"), "fail"),
        (line("aer", gravity="fatal"), "fail"), (line("aer"), "warn"),
        (line("sxid", gravity="fatal", code=20034), "fail"),
        (line("sxid", gravity="uncorrected", code=12028), "warn"),
        (line("hardware", gravity="corrected"), "warn"),
        (line("hardware", gravity="uncorrected"), "fail"), (line("hotplug"), "warn"),
        (line("iommu"), "warn"), (line("driver", level=4), "warn"),
        (line("driver", level=6), "note"),
    ],
)  # fmt: skip
def test_other_lines_are_as_grave_as_they_say(one, severity):
    finding = logged(one)
    assert (finding.severity, finding.subject) == (severity, SUBJECT)


NIC = inventory(
    pci=(root(), gpu(), gpu(address="0000:05:00.0", class_code=0x020700)),
    adapters=(Adapter(name="mlx5_0", pci="0000:05:00.0"),),
)


@pytest.mark.parametrize(
    ("kind", "pci", "subject"),
    [
        ("out-of-memory", None, "host"),
        # A port's lines about its link are of the device below it.
        ("aer", ROOT, SUBJECT), ("hotplug", ROOT, SUBJECT), ("driver", ROOT, ROOT),
        ("aer", "0000:05:00.0", "mlx5_0 (0000:05:00.0)"),
        ("aer", "0000:77:00.0", "0000:77:00.0"),
    ],
)  # fmt: skip
def test_lines_are_of_the_part_that_they_name(kind, pci, subject):
    assert logged(line(kind, pci=pci), here=NIC).subject == subject


def test_the_lines_of_one_device_are_one_finding_the_gravest_first():
    lines = (xid(45, seconds=1.0), line("aer", "a", seconds=2.0), xid(79, seconds=3.0))
    finding = logged(*lines)
    assert finding.severity == "fail"
    assert [text.partition(" s")[0] for text in finding.lines] == ["3.000", "2.000", "1.000"]
    assert "AER" not in finding.found


@pytest.mark.parametrize(
    ("log", "severity"),
    [({"unknown": (Gap("/dev/kmsg: not permitted"),)}, "unknown"), ({"more": 412}, "note"),
     ({"lost": True}, "note")],
)  # fmt: skip
def test_what_is_not_read_or_kept_is_said(log, severity):
    finding = logged(**log)
    assert (finding.severity, finding.subject) == (severity, "host")


def test_logs_are_joined_in_their_order_and_a_reason_is_given_once():
    one, two = line("xid"), line("aer")
    logs = (
        KernelLog((one,), 3, unknown=("a", "b")),
        KernelLog((two,), 4, lost=True, unknown=("b",)),
    )
    assert joined_known(logs) == KernelLog((one, two), 7, lost=True, unknown=("a", "b"))
    assert (joined_known(()), joined_known((KernelLog(),))) == (None, KernelLog())


LOST = measured(status="error", reason="gone", kind="lost")
(CELL,) = LOST.cells
PEERS = replace(
    LOST, cells=(replace(CELL, transfers=parse_transfers("cuda:0 -> cuda:1 by cuda:0.ce")),)
)


class TestWhatIsKnownOtherwise:
    def test_is_confirmed_and_stays_the_first_cause(self):
        lost, own = findings(xid(79), results=(LOST,))
        assert (lost.check, own.check, own.severity) == ("lost", "kernel-log", "fail")
        assert "confirms lost of cuda:0" in own.why
        assert lost == diagnose(Evidence(machine(inventory()), None, (LOST,)))[0]

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
