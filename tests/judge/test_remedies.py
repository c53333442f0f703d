"""Every remedy is commands that can be pasted as they stand, and prose that is marked as such.

`remedy_kit.assert_pasteable` holds for whatever the tests of the doctor and of virtual machines
find; here each check of the doctor is seen to give its remedy, and a shell reads all of them.
"""

import re
import shlex
import subprocess
from functools import cache
from pathlib import Path

import pytest
from msgspec.structs import replace

from doctor_kit import FULL, GOOD, PORT, ROOT, card, gpu, inventory, machine, measured, reading
from doctor_kit import root as root_port
from judge.test_doctor import PCI
from judge.test_doctor_busy import BUSY, under
from judge.test_doctor_devices import CARDS, nvlinks
from judge.test_doctor_host import HOST
from judge.test_doctor_kernel_log import line, xid
from judge.test_doctor_switches import switched
from judge.test_shape import cell, found, noisy, pairs, result, to_host
from judge.test_vm_host import CARD, well
from judge.test_vm_host import machine as host
from linkgauge.judge import slow_parts, steadiness
from linkgauge.judge.doctor import CHECKS, diagnose
from linkgauge.judge.findings import Evidence
from linkgauge.judge.remedies import PORT_ABOVE
from linkgauge.model.inventory import PciFunction
from linkgauge.model.kernel_log import KernelLog, LogKind
from linkgauge.model.modes import Mode
from linkgauge.report.remedies import CHANGING, LOOKING, SETTING, Command, WrittenFile, steps
from remedy_kit import assert_pasteable, unmarked
from vm_kit import compare, domain, hostdev, tree

SOURCES = Path(__file__).parents[2] / "src/linkgauge/judge"
WITHOUT = {"plateau", "knee", "classes", "directions"}
"""Checks of patterns in figures, which nothing is to be done about."""
ENDS = {
    "peer": "skip", "imex": "error", "timeout": "timeout", "crash": "error", "lost": "error",
    "memory": "error", "wrong-bytes": "fail",
}  # fmt: skip


def of_machines():
    """Findings of what was read of machines, before and after runs."""
    inventories = [inventory(pci=PCI[check]) for check in PCI]
    inventories += [inventory(cards=(card(**changes),)) for changes, _ in CARDS.values()]
    inventories += [inventory(host=replace(GOOD, **changes)) for changes in HOST.values()]
    inventories += [
        inventory(pci=(root_port(), gpu(**changes)))
        for changes in (
            {"silent": True}, {"numa_node": 7}, {"numa_node": None},
            {"link": replace(FULL, speed=2.5, width=4)}, {"link": replace(FULL, max_width=None)},
        )
    ]  # fmt: skip
    inventories += [
        inventory(host=replace(GOOD, iommu="translating", command_line="iommu=pt")),
        inventory(host=replace(GOOD, iommu=None, governor=None)),
        inventory(host=replace(GOOD, allowed_nodes=(1,), hypervisor="kvm")),
        inventory(pci=(root_port(link=replace(FULL, target=2.5)), gpu())),
        inventory(host=replace(GOOD, hypervisor="kvm"), pci=(gpu(link=replace(FULL, speed=2.5)),)),
        inventory(pci=(root_port(link=replace(FULL, max_speed=8.0)), gpu())),
        inventory(cards=(card(links=nvlinks(True, False)),)),
        acs(),
    ]
    for each in inventories:
        yield from diagnose(Evidence(machine(each)))
    slow = measured(*(reading(memory, link_speed=8.0) for memory in ("cuda:1", "cuda:2")))
    yield from diagnose(Evidence(machine(switched(8.0, 2.5, 2.5)), None, (slow,)))
    for before, after in (
        (inventory(), inventory(pci=(root_port(), gpu(errors={"fatal": 1})))),
        (inventory(), inventory(cards=(card(ecc_errors=2),))),
        *((inventory(cards=(card(links=nvlinks(True, errors=n)),)) for n in (0, 3)),),
    ):
        yield from diagnose(Evidence(machine(before), after))


def acs():
    """Two cards below a switch, one behind a port that redirects."""
    ports = [
        PciFunction(address=address, port="downstream port", parent=PORT, link=FULL, acs=control)
        for address, control in (("0000:01:01.0", ("request redirect",)), ("0000:01:02.0", ()))
    ]
    switch = PciFunction(address=PORT, port="upstream port", parent=ROOT, link=FULL)
    cards = gpu(parent="0000:01:01.0"), gpu(address="0000:03:00.0", parent="0000:01:02.0")
    both = card(), card(memory="cuda:1", pci="0000:03:00.0")
    return inventory(pci=(root_port(), switch, *ports, *cards), cards=both)


def of_runs():
    """Findings of cells and samples, and of the kernel's log."""
    here = machine(inventory())
    for kind, status in ENDS.items():
        one = measured(status=status, reason="as it may be", kind=kind)
        yield from diagnose(Evidence(here, None, (one,)))
    one = measured()
    modes = (Mode(50e9, 4, 9), Mode(25e9, 4, 9))
    shown = replace(one, cells=tuple(replace(each, modes=modes) for each in one.cells))
    yield from diagnose(Evidence(here, None, (shown,)))
    lines = [xid(79), *(line(kind, gravity="fatal") for kind in LogKind.__args__)]
    for each in lines:
        yield from diagnose(Evidence(here, log=KernelLog((each,))))
    yield from diagnose(Evidence(here, log=KernelLog(unknown=("kernel log: unreadable",), more=9)))
    yield from found(slow_parts.CHECKS, pairs(lambda r, c: 2e11 if 2 in (r, c) else 4e11))
    numbers = iter(range(99))
    yield from found(slow_parts.CHECKS, pairs(lambda r, c: 4e11 * 0.98 ** next(numbers)))
    stalled = [100.0, 100.1, 60.0, 99.9, 100.0, 60.0, 100.1, 100.0, 60.0]
    for samples in ([4e9 * each for each in stalled], noisy(4e11, 0.08)):
        copies = [
            cell(str(r), str(c), f"sim:{r} -> sim:{c} by ce",
                 samples if 1 in (r, c) else noisy(4e11, seed=r * 7 + c))
            for r in range(4) for c in range(4) if r != c
        ]  # fmt: skip
        writes = result("device_to_device_memcpy_write_ce", copies)
        yield from found(steadiness.CHECKS, to_host(lambda d: 50e9), writes)
    yield from diagnose(Evidence(machine(inventory()), None, (under(BUSY),)))


def of_domains():
    """Findings of virtual machines: domains that are wrong in several ways."""
    cells = "<cell id='0' cpus='0-1' memory='2' unit='GiB'/><cell id='1' cpus='1-9' memory='2'/>"
    numa = f"<cpu><topology sockets='2' cores='3' threads='1'/><numa>{cells}</numa></cpu>"
    spilling = "<numatune><memory mode='preferred' nodeset='0'/></numatune>"
    far = spilling.replace("preferred", "strict").replace("'0'", "'7'")
    huge = "<memoryBacking><hugepages><page size='1' unit='GiB'/></hugepages></memoryBacking>"
    pins = "<cputune><vcpupin vcpu='9' cpuset='1'/><vcpupin vcpu='1' cpuset='0-31'/></cputune>"
    lost = hostdev("0000:99:00.0", managed="no")
    for body in (numa, spilling, far, huge, pins, pins + numa + huge):
        for devices in (hostdev(CARD), lost):
            asked = domain(body, devices=devices, memory=999)
            yield from compare(asked, host(), "host").findings
            yield from compare(asked, tree(thp="never"), "guest").findings
    yield from compare(well(), host(cards=((CARD, 1),)), "host").findings


@cache
def driven():
    return (*of_machines(), *of_runs(), *of_domains())


def test_each_check_of_the_doctor_is_driven():
    texts = [path.read_text() for path in SOURCES.rglob("*.py") if path.parent.name != "vm"]
    patterns = (r'Finding\(\s*"([a-z-]+)"', r'_(?:unmeasured|found)\(\s*"([a-z-]+)"')
    names = {name for text in texts for pattern in patterns for name in re.findall(pattern, text)}
    assert {each.check for each in driven() if each.remedy} >= names - WITHOUT
    assert len(CHECKS) > 30


def test_all_lines_are_commands_or_marked_as_prose():
    assert_pasteable(driven())


@pytest.mark.parametrize(
    "line",
    [
        "see to its seat",
        "boot with iommu=pt",
        "sudo reboot",
        "linkgauge run it as before; look",
        "[x",
    ],
)
def test_unmarked_prose_and_unknown_programs_are_noticed(line):
    assert list(unmarked(("# so:", line))) == [line]


def test_commands_start_with_a_known_program_and_prose_ends_as_sentences_do():
    for finding in driven():
        for step in steps(finding.remedy):
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
    sets = PORT_ABOVE.replace("/sys/", f"{tmp_path}/sys/")

    def port(device):
        line = f'DEVICE={device}\n{sets}\necho "${{PORT:?}}"'
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=30)
        return done.stdout.strip()

    assert port("0000:41:00.0") == "0000:40:01.1"
    for unknown in ("ADDRESS", "0000:99:00.0", ""):
        assert ":" not in port(unknown)  # setpci takes it for no address


def test_a_shell_reads_them_all():
    lines = {
        line
        for finding in driven()
        for step in steps(finding.remedy)
        if isinstance(step, Command)
        for line in [f"{step.line}  # {step.comment}"]
    }
    assert len(lines) > 40
    done = subprocess.run(
        ["bash", "-n"], input="\n".join(lines), capture_output=True, text=True, timeout=30
    )
    assert (done.returncode, done.stderr) == (0, "")
