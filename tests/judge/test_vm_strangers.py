"""Definitions that belong to no virtual machine here, and what a guest's own copies tell."""

import json

import pytest
import yaml
from msgspec.structs import replace

from command_kit import called
from linkgauge.backends.sim.description import load
from linkgauge.cli.doctor import of_run
from linkgauge.machine.captures.archive import pack
from linkgauge.machine.tree import Captured
from linkgauge.rooms.vm.domain import CpuTopology, GuestNode
from vm_kit import GIB, domain, host_bus, hostdev, tree

PINS = "<cputune><vcpupin vcpu='0' cpuset='4'/></cputune>"
PREFERRED = "<numatune><memory mode='preferred' nodeset='0'/></numatune>"


def asked(folder, xml, machine, *words, name="domain.xml"):
    (folder / "machine.tgz").write_bytes(pack(machine))
    (folder / name).write_bytes(xml)
    done = called("vm", folder / name, "--root", folder / "machine.tgz", "--json", *words)
    return json.loads(done.stdout)


def checks(told, *severities):
    return {one["check"] for one in told["findings"] if one["severity"] in severities}


def test_definition_of_a_friend_is_judged_by_itself(tmp_path):
    """This machine is a guest with another number of CPUs, and shows no UUID."""
    told = asked(tmp_path, domain(PINS + PREFERRED, vcpus=8), tree(cores=2))
    assert told["role"] == "neither"
    assert checks(told, "fail", "warn") == set()
    assert {"memory-policy", "huge-pages-none", "unpinned"} <= checks(told, "note")
    compared = asked(tmp_path, domain(PINS, vcpus=8), tree(cores=2), "--as", "guest")
    assert (compared["role"], "vcpus" in checks(compared, "fail")) == ("guest", True)


@pytest.mark.parametrize(("first", "role"), [("11111111", "guest"), ("99999999", "neither")])
def test_uuid_of_the_firmware_decides(first, role, tmp_path):
    uuid = {"sys/class/dmi/id/product_uuid": f"{first}-2222-4333-8444-555555555555\n".encode()}
    guest = tree(cores=2)
    machine = Captured(guest.files | uuid, guest.links)
    assert asked(tmp_path, domain(vcpus=8), machine)["role"] == role


@pytest.mark.parametrize(
    ("address", "role"), [("0000:17:00.0", "host"), ("0000:99:00.0", "neither")]
)
def test_host_with_none_of_the_devices_is_a_stranger(address, role, tmp_path):
    machine = tree(guest=False, cores=8, bus=host_bus(("0000:17:00.0", 0)))
    assert asked(tmp_path, domain(devices=hostdev(address)), machine)["role"] == role


PROXMOX = b"""cores: 4
sockets: 2
memory: 8192
numa: 1
ostype: l26
hostpci0: 0000:17:00,pcie=1
hostpci1: mapping=gpu2,pcie=1
hostpci2: 0000:18:00.0,mdev=nvidia-63
"""


def test_mapping_of_proxmox_is_a_whole_card(tmp_path):
    machine = tree(guest=False, cores=8, bus=host_bus(("0000:17:00.0", 0)))
    told = asked(tmp_path, PROXMOX, machine, "--as", "host", name="102.conf")
    unknown = {one["check"]: one["found"] for one in told["findings"]}
    assert "whole device" in unknown["mapped"]
    assert unknown["mediated"].startswith("1 mediated device")


# Sockets follow cells.


def cells(*sizes):
    ends = [sum(sizes[: n + 1]) for n in range(len(sizes))]
    return [GuestNode(n, tuple(range(e - s, e)), GIB)
            for n, (e, s) in enumerate(zip(ends, sizes, strict=True))]  # fmt: skip


@pytest.mark.parametrize(
    ("sizes", "threads", "sockets"),
    [((4, 4), 1, 2), ((4, 4), 2, 2), ((3, 5), 1, 1), ((1, 1), 1, 2), ((4, 8), 1, 3), ((8,), 1, 1)],
)
def test_sockets_follow_cells_and_no_vcpu_is_a_socket_alone(sizes, threads, sockets):
    whole = CpuTopology(cores=sum(sizes) // threads, threads=threads)
    made = whole.fitted(cells(*sizes))
    assert (made.sockets, made.vcpus, made.threads) == (sockets, sum(sizes), threads)


def test_threads_of_a_core_in_two_cells_fit_no_topology():
    assert CpuTopology(cores=4, threads=2).fitted(cells(3, 5)) is None


# Copies of a guest.


def slow_guest(folder, share):
    """A guest whose links train as they should, and whose copies reach this share of them."""
    about = yaml.safe_load(load("dgx-h200-8")[1])
    about["host"]["hypervisor"] = "KVM"
    for kind in about["link_kinds"].values():
        if kind["kind"] == "pcie":
            kind |= {"efficiency": {"read": share, "write": share}}
    (folder / "guest.yml").write_text(yaml.safe_dump(about))
    words = ("host_to_device_memcpy_ce", "device_to_host_memcpy_ce", "--profile", "quick")
    called("run", *words, "--machine", folder / "guest.yml", cwd=folder)
    (file,) = folder.rglob("run.json")
    return of_run(file)[2].found


@pytest.mark.parametrize(("share", "is_told"), [(0.44, True), (0.86, False)])
def test_guest_whose_copies_are_all_at_half_is_told_of_pinning_and_iommu(share, is_told, tmp_path):
    found = [one for one in slow_guest(tmp_path, share) if one.check == "guest-copies"]
    assert bool(found) == is_told
    for one in found:
        assert "Pin each vCPU" in "\n".join(one.remedy)
        assert "iommu=pt" in "\n".join(one.remedy)
        assert replace(one, cells=()).severity == "warn"
