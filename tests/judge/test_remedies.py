"""Every remedy is commands that can be pasted as they stand, and prose that is marked as such.

`remedy_kit.assert_pasteable` holds for whatever the tests of the doctor and of virtual machines
find; here what a shell makes of them is seen.
"""

import re
import shlex
import subprocess
from functools import cache

import pytest
from msgspec.structs import replace

from doctor_kit import FULL, GOOD, card, found, gpu, inventory, measured
from doctor_kit import root as root_port
from judge.test_doctor import PCI, TestSwitches, redirecting, switched
from judge.test_doctor_devices import CARDS, lost
from judge.test_doctor_host import BUSY, HOST, under
from judge.test_doctor_kernel_log import findings, line, xid
from judge.test_vm_host import CARD, HUGE, well
from judge.test_vm_host import machine as host
from linkgauge.report.words.remedies import CHANGING, LOOKING, SETTING, Command, WrittenFile, steps
from remedy_kit import unmarked
from vm_kit import compare, domain, hostdev, tree

SLOW = replace(FULL, speed=2.5)
GUEST = replace(GOOD, hypervisor="kvm")
INVENTORIES = (
    *(inventory(pci=PCI[check]) for check in PCI),
    *(inventory(cards=(card(**changes),)) for changes, _ in CARDS.values()),
    *(inventory(host=replace(GOOD, **changes)) for changes, _ in HOST.values()),
    *(inventory(pci=(root_port(), gpu(**changes)))
      for changes in ({"silent": True}, {"numa_node": 7}, {"link": replace(SLOW, width=4)})),
    inventory(host=replace(GOOD, iommu="translating", command_line="iommu=pt")),
    inventory(host=replace(GUEST, allowed_nodes=(1,))),
    inventory(pci=(root_port(link=replace(FULL, target=2.5)), gpu())),
    inventory(host=GUEST, pci=(root_port(link=replace(FULL, target=2.5)), gpu(link=SLOW))),
    inventory(cards=lost(1, 2)),
    redirecting(card(), card(memory="cuda:1", pci="0000:03:00.0")),
)  # fmt: skip
ENDS = {
    "peer": "skip", "imex": "error", "timeout": "timeout", "crash": "error", "lost": "error",
    "memory": "error", "wrong-bytes": "fail",
}  # fmt: skip


def of_domains():
    """Findings of virtual machines: domains that are wrong in several ways."""
    cells = "<cell id='0' cpus='0-1' memory='2' unit='GiB'/><cell id='1' cpus='1-9' memory='2'/>"
    wrong = (
        f"<cpu><topology sockets='2' cores='3' threads='1'/><numa>{cells}</numa></cpu>{HUGE}"
        "<cputune><vcpupin vcpu='9' cpuset='1'/><vcpupin vcpu='1' cpuset='0-31'/></cputune>"
    )
    asked = domain(wrong, devices=hostdev("0000:99:00.0", managed="no"), memory=999)
    yield from compare(asked, host(), "host").findings
    yield from compare(asked, tree(thp="never"), "guest").findings
    yield from compare(well(), host(cards=((CARD, 1),)), "host").findings


@cache
def driven():
    some = [finding for each in INVENTORIES for finding in found(each)]
    some += found(switched(8.0, 2.5, 2.5), None, TestSwitches.LOAD)
    some += found(inventory(), None, under(BUSY))
    for kind, status in ENDS.items():
        some += found(inventory(), None, measured(status=status, reason="so", kind=kind))
    some += findings(xid(79), line("aer", gravity="fatal"), line("out-of-memory", pci=None))
    return (*some, *of_domains())


@pytest.mark.parametrize(
    "line",
    ["see to its seat", "boot with iommu=pt", "sudo reboot", "linkgauge run it as before; look",
     "[x"],
)  # fmt: skip
def test_unmarked_prose_and_unknown_programs_are_noticed(line):
    assert list(unmarked(("# so:", line))) == [line]


def test_commands_start_with_a_known_program_and_prose_ends_as_sentences_do():
    for step in (step for finding in driven() for step in steps(finding.remedy)):
        if isinstance(step, Command):
            first, *rest = shlex.split(step.line)
            started = rest[0] if first == "sudo" else first
            assert started in LOOKING | CHANGING or step.line in SETTING
        elif not isinstance(step, WrittenFile):
            assert step.text[-1] in ".:>s"
            assert step.text[0].isupper()


def test_what_a_line_takes_from_a_variable_an_earlier_one_sets():
    used = 0
    for finding in driven():
        lines = [step.line for step in steps(finding.remedy) if isinstance(step, Command)]
        for at, own in enumerate(lines):
            for name in re.findall(r"\$\{?([A-Z]+)", own):
                assert any(before.startswith(f"{name}=") for before in lines[:at])
                used += 1
    assert used


def test_the_port_above_a_device_is_found_as_sysfs_nests_them(tmp_path):
    below = tmp_path / "sys/devices/pci0000:40" / "0000:40:01.1" / "0000:41:00.0"
    below.mkdir(parents=True)
    listed = tmp_path / "sys/bus/pci/devices"
    listed.mkdir(parents=True)
    (listed / below.name).symlink_to(below)
    (sets,) = {line for finding in driven() for line in finding.remedy if line.startswith("PORT=")}
    sets = sets.replace("/sys/", f"{tmp_path}/sys/")

    def port(device):
        line = f'DEVICE={device}\n{sets}\necho "${{PORT:?}}"'
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=30)
        return done.stdout.strip()

    assert port("0000:41:00.0") == "0000:40:01.1"
    for unknown in ("ADDRESS", "0000:99:00.0", ""):
        assert ":" not in port(unknown)  # setpci takes it for no address


def test_a_shell_reads_them_all():
    lines = {
        f"{step.line}  # {step.comment}"
        for finding in driven()
        for step in steps(finding.remedy)
        if isinstance(step, Command)
    }
    assert len(lines) > 40
    done = subprocess.run(
        ["bash", "-n"], input="\n".join(lines), capture_output=True, text=True, timeout=30
    )
    assert (done.returncode, done.stderr) == (0, "")
