"""On the host: devices that are passed through, and CPUs that are not the host's own."""

import pytest

import doctor_kit as kit
from doctor_kit import GPU, card
from judge.test_doctor import redirecting
from judge.test_vm_host import CARD, CPU, machine, well
from linkgauge.model.hardware.virtual import Virtual
from linkgauge.rooms.vm.checks.comparison import DomainEvidence
from linkgauge.rooms.vm.checks.host_devices import check_acs
from linkgauge.rooms.vm.domain import Domain, HostDevice
from vm_kit import compare

AMD = {"vendor": "AuthenticAMD"}
KVM = {"sys/module/kvm_amd/parameters/nested": b"1\n"}
SLEEPS = "sys/devices/pci0000:80/0000:80:01.0/0000:17:00.0"


def found(xml, root):
    return {(one.severity, one.check) for one in compare(xml, root, "host").findings}


def of(check, xml, root):
    (one,) = (one for one in compare(xml, root, "host").findings if one.check == check)
    return one


def beside(**texts):
    """The host with more files of the card."""
    root = machine()
    root.files.update({f"{SLEEPS}/{name}": f"{text}\n".encode() for name, text in texts.items()})
    return root


@pytest.mark.parametrize("state", ["D3hot", "D0"])
def test_a_link_that_rests_is_a_note_without_a_script(state):
    root = beside(power_state=state, current_link_speed="2.5 GT/s PCIe")
    assert found(well(), root) == {("note", "link-rest")}
    assert not any("setpci" in line for line in of("link-rest", well(), root).remedy)


def test_a_link_that_lost_lanes_is_no_rest():
    assert ("fail", "link-width") in found(well(), beside(current_link_width="4"))


def test_another_device_of_the_group_that_the_host_uses():
    root = machine(cards=((CARD, 0), ("0000:18:00.0", 0)))
    links = {at: link for at, link in root.links.items() if at.endswith("18:00.0/iommu_group")}
    (place,) = links
    root.links[place] = "../../../../kernel/iommu_groups/0"
    assert found(well(), root) == set()  # VFIO has it
    root.links[place.replace("iommu_group", "driver")] = "../../../../bus/pci/drivers/nvme"
    one = of("device-group", well(), root)
    assert (one.severity, one.about) == ("fail", CARD)
    assert "0000:18:00.0, which has the driver nvme" in one.found


@pytest.mark.parametrize(
    ("bits", "is_small"), [("0000000000000100", False), ("7f00", True), ("x", False)]
)
def test_a_window_that_could_be_larger(bits, is_small):
    line = "0x00000000e0000000 0x00000000efffffff 0x000000000014220c"
    root = beside(resource=f"{line}\n{line}", resource1_resize=bits)
    assert (("note", "rebar") in found(well(), root)) == is_small
    if is_small:
        assert "1 (BAR) has 256 MiB and can have 16 GiB" in of("rebar", well(), root).found


@pytest.mark.parametrize(
    ("iommu", "severity"),
    [
        (b"<iommu model='intel'><driver caching_mode='on'/></iommu>", "note"),
        (b"<iommu model='intel'/>", "fail"),
        (b"<iommu model='smmuv3'/>", "note"),
    ],
)
def test_an_iommu_of_the_guest(iommu, severity):
    xml = well().replace(b"</devices>", iommu + b"</devices>")
    assert found(xml, machine()) == {(severity, "guest-iommu")}


@pytest.mark.parametrize(
    ("kind", "arch", "files", "right"),
    [
        ("kvm", "x86_64", KVM, set()),
        ("qemu", "x86_64", KVM, {("fail", "emulation"), ("fail", "refused")}),
        ("qemu", "x86_64", {}, {("warn", "emulation"), ("fail", "refused")}),
        ("qemu", "riscv64", KVM, {("fail", "refused")}),
        ("kvm", "riscv64", KVM, {("fail", "emulation")}),
    ],
)
def test_who_runs_the_cpu(kind, arch, files, right):
    root = machine()
    root.files.update(files)
    xml = well().replace(b"type='kvm'", f"type='{kind}'".encode(), 1)
    assert found(xml.replace(b"x86_64", arch.encode()), root) == right


@pytest.mark.parametrize(
    ("cpu", "right"),
    [
        ("mode='host-passthrough'>", {("warn", "threads-hidden")}),
        ("mode='host-passthrough'><feature policy='require' name='topoext'/>", set()),
        ("mode='host-model'>", set()),
        ("mode='host-model'><feature policy='disable' name='topoext'/>",
         {("warn", "threads-hidden")}),
        ("mode='custom'><model>EPYC-Rome</model>", set()),
        ("mode='custom'><model>kvm64</model>",
         {("warn", "threads-hidden"), ("note", "cpu-model")}),
    ],
)  # fmt: skip
def test_threads_that_amd_hides(cpu, right):
    root = machine(**AMD)
    xml = well(cpu=CPU.replace("mode='host-passthrough'>", cpu))
    assert found(xml, root) == right
    for other in (xml, xml.replace(b"x86_64", b"riscv64")):
        assert ("warn", "threads-hidden") not in found(other, machine())
    assert ("warn", "threads-hidden") not in found(other, root)
    emulated = xml.replace(b"type='kvm'", b"type='qemu'", 1)
    assert ("warn", "threads-hidden") not in found(emulated, root)  # its vendor is the model's


V3 = "lm cx16 lahf_lm pni popcnt sse4_1 sse4_2 ssse3 abm avx avx2 bmi1 bmi2 f16c fma movbe xsave"
V4 = f"{V3} avx512bw avx512cd avx512dq avx512f avx512vl"


@pytest.mark.parametrize(
    ("cpu", "flags", "lacks"),
    [
        ("<model>qemu64</model>", V3, "no AVX, no AVX2, no pages of 1 GiB"),
        ("<model>qemu64</model><feature name='avx' policy='require'/>", V3,
         "no AVX2, no pages of 1 GiB"),
        ("<model>Nehalem-IBRS</model>", V3, "no AVX, no AVX2"),
        ("<model>IvyBridge</model>", V4, "no AVX2"),
        ("<model>Cascadelake-Server</model>", V4, None),
        ("<model>Cascadelake-Server</model><feature name='avx512f' policy='disable'/>", V4,
         "no AVX-512"),
        ("<model>Cascadelake-Server</model><feature name='avx512f' policy='disable'/>", V3, None),
        ("<model>qemu64</model>", "lm cx16", None),
    ],
)  # fmt: skip
def test_what_a_model_hides_of_the_host(cpu, flags, lacks):
    root = machine()
    root.files["proc/cpuinfo"] = (
        f"processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: {flags}\n".encode()
    )
    xml = well(cpu=CPU.replace("mode='host-passthrough'>", f"mode='custom'>{cpu}"))
    notes = [one for one in compare(xml, root, "host").findings if one.check == "cpu-model"]
    assert [one.found.partition(" has ")[2] for one in notes] == ([lacks] if lacks else [])


def test_redirection_between_two_devices_that_are_both_passed_through():
    cards = card(), card(memory="cuda:1", pci="0000:03:00.0")
    beside = kit.machine(redirecting(*cards))

    def noted(*sources):
        devices = tuple(HostDevice(source) for source in sources)
        case = DomainEvidence(
            domain=Domain(name="x", devices=devices), machine=beside, virtual=Virtual()
        )
        return [(one.severity, one.about.name) for one in check_acs(case)]

    assert noted(GPU, "0000:03:00.0") == [("note", "0000:01:01.0")]
    assert noted(GPU) == []
