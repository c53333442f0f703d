"""`linkgauge vm` from the command line: a verdict or one clear error, whatever it is given."""

import json
import subprocess
import sys

import pytest

from command_kit import called
from linkgauge.machine.captures.archive import pack
from vm_kit import FULL, GIB, domain, guest_bus, host_bus, hostdev, root_port, tree

CARDS = (("0000:17:00.0", 0), ("0000:ca:00.0", 1))
XML = domain(
    "<iothreads>1</iothreads><cputune><shares>2048</shares><vcpupin vcpu='0' cpuset='9'/>"
    "<vcpupin vcpu='1' cpuset='1'/></cputune><memoryBacking><hugepages/></memoryBacking>"
    "<cpu mode='host-passthrough'><topology sockets='1' dies='1' cores='4' threads='2'/></cpu>",
    vcpus=8, memory=16,
    devices=root_port(1, 2) + root_port(2, 3)
    + hostdev("0000:17:00.0", (1, 0, 0)) + hostdev("0000:ca:00.0", (2, 0, 0)),
)  # fmt: skip


@pytest.fixture(scope="module")
def machines(tmp_path_factory):
    """A host with two cards, one link of which trained too low, and a guest that has only one."""
    folder = tmp_path_factory.mktemp("machines")
    slow = tree(guest=False, cores=16, memory=64 * GIB, bus=host_bus(*CARDS))
    place = "sys/devices/pci0000:81/0000:81:01.0/0000:ca:00.0/current_link_speed"
    slow.files[place] = b"2.5 GT/s PCIe\n"
    bus = guest_bus("pci0000:00/0000:00:02.0/0000:01:00.0")
    guest = tree(sockets=8, cores=1, memory=15 * GIB, bus=bus, thp="never")
    for name, root in (("host", slow), ("guest", guest)):
        (folder / f"{name}.tgz").write_bytes(pack(root))
    (folder / "gpu-vm.xml").write_bytes(XML)
    return folder


def run(*words):
    done = called("vm", *words)
    return done.returncode, done.stdout


def test_a_name_does_not_move_the_cursor(machines, tmp_path):
    path = tmp_path / "domain.xml"
    path.write_bytes(domain(name="a&#155;31m&#10;b\u202ec$(d)").replace(b"a&", "ü&".encode()))
    _, out = run(path, "--root", machines / "host.tgz")
    first, _, _ = out.partition("\n")
    assert first.startswith("domain ü�31m�b�c$(d), compared with this machine as its host")
    assert "virsh edit NAME;" in out
    assert all(c.isprintable() or c == "\n" for c in out)


def test_a_host_without_a_domain_says_how_to_get_one(tmp_path):
    scope = "sys/fs/cgroup/machine.slice/machine-qemu\\x2d1\\x2dgpu\\x2dvm.scope/libvirt"
    files = {f"{scope}/vcpu0/cpuset.cpus": b"3\n", "etc/libvirt/qemu/db.xml": b"<domain/>"}
    (tmp_path / "host.tgz").write_bytes(pack(tree(guest=False, files=files)))
    code, out = run("--root", tmp_path / "host.tgz")
    assert code == 0
    assert "virsh dumpxml NAME > NAME.xml" in out
    assert "running here (names as shortened by systemd): gpu-vm" in out
    assert "defined here: /etc/libvirt/qemu/db.xml" in out


def test_a_domain_that_runs_is_compared_as_it_runs(tmp_path):
    scope = "sys/fs/cgroup/machine.slice/machine-qemu\\x2d1\\x2dgpu\\x2dvm.scope/libvirt"
    root = tree(cores=8, bus=host_bus(("0000:17:00.0", 0), link=FULL),
                files={f"{scope}/vcpu0/cpuset.cpus": b"3\n"})  # fmt: skip
    (tmp_path / "nested.tgz").write_bytes(pack(root))
    path = tmp_path / "gpu-vm.xml"
    path.write_bytes(domain("<cputune><vcpupin vcpu='0' cpuset='5'/></cputune>"))
    code, out = run(path, "--root", tmp_path / "nested.tgz")
    assert code == 1
    why = "the domain runs here (control group of 'gpu-vm')"
    assert f"compared with this machine as its host ({why})" in " ".join(out.split())
    assert "fail live-pins  vCPU 0: pinned to CPU 5, but runs on 3" in out


def test_a_domain_from_a_pipe(machines):
    command = [sys.executable, "-m", "linkgauge", "vm", "-", "--root", machines / "guest.tgz"]
    done = subprocess.run([*command, "--json"], input=XML, capture_output=True, check=False)
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["domain"]["name"] == "gpu-vm"
