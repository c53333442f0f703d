"""Definitions that are not libvirt's own, beside the host of the cases, and any text at all."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_kit import called
from linkgauge.model.errors import InputError
from linkgauge.rooms.vm.domain_xml import read_domain
from linkgauge.rooms.vm.readers import parser_of, proxmox, qemu

FOLDER = Path(__file__).parents[1] / "data" / "definitions"
HOST = FOLDER.parent / "vm" / "host.tgz"
FAR = {("warn", "cell-spans"), ("warn", "memory-remote"), ("warn", "pins-across")}


def found(name):
    words = (FOLDER / name, "--as", "host", "--root", HOST, "--json")
    findings = json.loads(called("vm", *words).stdout)["findings"]
    return {(one["severity"], one["check"]) for one in findings}


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("proxmox.conf", FAR | {("warn", "device-node")}),
        ("qemu.txt", {("warn", "cell-spans"), ("unknown", "unpinned")}),
        ("openstack.xml", {("warn", "emulator")}),
        ("kubevirt.xml", {("warn", "cell-spans"), ("note", "huge-pages-none")}),
    ],
)
def test_definitions_of_other_tools(name, right):
    assert found(name) == right


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("openstack.xml", ["--property hw:cpu_policy=dedicated", "hw:mem_page_size=large"]),
        ("kubevirt.xml", ["dedicatedCpuPlacement: true", "guestMappingPassthrough: {}"]),
        ("proxmox.conf", ["affinity: ", "numa0: cpus=", "policy=bind"]),
    ],
)
def test_who_writes_the_xml_is_asked_for_the_placement(name, asked, tmp_path):
    """Without pins, a placement is wanted; a change of the XML by virsh would be lost."""
    path = tmp_path / name
    path.write_text(re.sub("<vcpupin [^>]*>", "", (FOLDER / name).read_text()))
    told = json.loads(called("vm", path, "--as", "host", "--root", HOST, "--json").stdout)
    assert told["xml"]
    settings = "\n".join(told["settings"])
    assert all(one in settings for one in asked)
    assert bool(settings) == bool(asked)
    screen = called("vm", path, "--as", "host", "--root", HOST).stdout
    assert ("To ask " in screen) == bool(asked)


def test_what_is_read_of_them():
    one, other = (read_domain(FOLDER / name) for name in ("proxmox.conf", "qemu.txt"))
    for domain in (one, other):
        assert (domain.name, domain.vcpus, domain.bytes, domain.cpu) == (
            "gamer", 8, 16 << 30, "host-passthrough"
        )  # fmt: skip
        assert [cell.vcpus for cell in domain.cells] == [(0, 1, 2, 3), (4, 5, 6, 7)]
        assert [domain.policy_of(cell).nodes for cell in (0, 1)] == [(0,), (1,)]
        assert [device.source for device in domain.devices] == ["0000:01:00.0"]
    assert (one.topology.threads, other.topology.threads) == (1, 2)
    assert other.cell_of(other.devices[0]) == 0


@pytest.mark.parametrize(
    ("smp", "vcpus", "cores"),
    [("4", 4, 4), ("cores=4", 4, 4), ("cores=4,threads=2", 8, 4), ("8,sockets=2", 8, 4)],
)
def test_qemu_counts_vcpus_by_the_topology_if_none_are_given(smp, vcpus, cores):
    domain = qemu.parse(f"qemu-system-x86_64 -smp {smp} -m 4G")
    assert (domain.vcpus, domain.topology.cores) == (vcpus, cores)


WORDS = st.sampled_from([
    "qemu-system-x86_64", "-smp", "8,sockets=2", "0,cores=0", "-m", "16G", "x", "-numa",
    "node,cpus=0-3", "node,nodeid=0", "dist,src=0", "-object", '{"qom-type":[1],"size":{}}', "{",
    "memory-backend-ram,id=a", "-device", "vfio-pci,host=01:00.0", "vfio-pci,host=zz",
    "pxb-pcie,id=b,numa_node=9,addr=0x40",
    "cores: 8\n", "sockets: 99999999\n", "numa0: cpus=9-1,hostnodes=x\n", "hostpci0: 01:00;zz\n",
    "memory: -1\n", "'", "\0", "[", "affinity: 0-99999999\n", "vcpus: 0\n", "hugepages: any\n",
])  # fmt: skip


@given(st.one_of(st.text(max_size=80), st.lists(WORDS, max_size=14).map(" ".join)))
def test_any_text_is_a_domain_or_one_clear_line(text):
    parser_of(text)
    for parse in (proxmox.parse, qemu.parse):
        try:
            parse(text)
        except InputError as error:
            assert "\n" not in str(error)
