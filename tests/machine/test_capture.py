"""A captured machine reads back as the machine, without its secrets and, if asked, its names."""

import io
import os
import struct
import tarfile

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.backends.sim import simulate
from linkgauge.backends.sim.description import load, shipped
from linkgauge.backends.sim.render import Rendered, write
from linkgauge.machine import archive
from linkgauge.machine.anonymize import Anonymizer, anonymize
from linkgauge.machine.archive import pack, read_archive, write_archive
from linkgauge.machine.capture import MANIFEST, Manifest, capture, read_machine, read_manifest
from linkgauge.machine.host import read_host
from linkgauge.machine.inventory import read_inventory
from linkgauge.machine.memory import read_dimms
from linkgauge.machine.pci_config import decode, serial_number
from linkgauge.machine.secrets import REMOVED, command_line, without_secrets
from linkgauge.machine.tree import ROOT, Captured, read_text
from linkgauge.model.errors import InputError, ResultsError
from linkgauge.model.machine import Device, Machine
from linkgauge.model.result import EngineSettings, Simulation
from machine_kit import DMI, dimm, seen, table, through_a_file
from pci_kit import AER, Bus, config

SERIAL = bytes.fromhex("ccbbaaffff2db048")
UUID = "4c4c4544-0042-3010-8054-b4c04f4d3233"


def simulated(name):
    return simulate(Simulation(*load(name), ()), EngineSettings()).tree()


def without_uuids(inventory):
    return msgspec.structs.replace(
        inventory,
        accelerators=tuple(
            msgspec.structs.replace(one, uuid=None) for one in inventory.accelerators
        ),
    )


# The rack of 72 takes as long as all others together.
FULL = os.environ.get("LINKGAUGE_CAMPAIGN") == "full"
MACHINES = [name for name in shipped() if FULL or name != "gb200-nvl72"]


@pytest.mark.parametrize("name", MACHINES)
def test_a_simulated_machine_reads_back_the_same(name, tmp_path):
    tree = simulated(name)
    write(Rendered(tree.files, tree.links), tmp_path / "root")
    machine = seen(tmp_path / "root")
    kept = through_a_file(capture(tmp_path / "root", machine), tmp_path)
    assert read_inventory(kept) == machine.inventory == read_inventory(tree)
    assert read_machine(kept).host == machine.host


@pytest.mark.parametrize("name", MACHINES)
def test_anonymised_it_lacks_names_alone(name, tmp_path):
    tree = simulated(name)
    machine = seen(tree)
    kept = through_a_file(capture(tree, machine, anonymous=True), tmp_path)
    assert without_uuids(read_inventory(kept)) == without_uuids(machine.inventory)
    assert read_host(kept) == msgspec.structs.replace(machine.host, hostname="host-1")
    names = {one.uuid for one in machine.inventory.accelerators}
    pseudonyms = [one.uuid for one in read_inventory(kept).accelerators]
    assert len(set(pseudonyms)) == len(names)
    assert not names.intersection(pseudonyms)
    everything = pack(kept) and b"".join(kept.files.values()).decode(errors="replace")
    assert not [uuid for uuid in names if uuid in everything]


def test_this_machine_reads_back_the_same(tmp_path):
    machine = seen(ROOT)
    kept = through_a_file(capture(ROOT, machine, commands=()), tmp_path)

    def steady(inventory):
        """Without what counts up, and without what a command line may hide."""
        host = inventory.host
        secret = command_line((host.command_line or "").encode()).decode() or None
        host = msgspec.structs.replace(host, steal=None, cpu_ticks=None, command_line=secret)
        return msgspec.structs.replace(inventory, host=host)

    assert steady(read_inventory(kept)) == steady(machine.inventory)
    read_back = read_host(kept)
    assert (read_back.hostname, read_back.architecture) == (
        machine.host.hostname,
        machine.host.architecture,
    )


def test_devices_of_backends_come_along(tmp_path):
    device = Device("opencl:0", "Card", 1 << 30, 1 << 28, uuid="f00d" * 8)
    machine = Machine(
        host=read_host(Captured({})), devices={"opencl": (device,)}, unavailable={"cuda": "none"}
    )
    kept = read_machine(through_a_file(capture(Captured({}), machine), tmp_path))
    assert (kept.devices, kept.unavailable) == (machine.devices, machine.unavailable)
    hidden = read_machine(capture(Captured({}), machine, anonymous=True))
    assert hidden.devices["opencl"][0].uuid == "id-1"


@pytest.mark.parametrize("content", [b"", b"[1]", b"\xff", b"[" * 100_000, b'{"devices": 1}'])
def test_a_garbled_manifest_leaves_out_what_it_holds(content):
    assert read_manifest(Captured({MANIFEST: content})) == Manifest(linkgauge="")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("ro iommu.passthrough=1 iommu=pt", "ro iommu.passthrough=1 iommu=pt"),
        ("rd.luks.key=/a:b ro", f"rd.luks.key={REMOVED} ro"),
        ("rootpassword=x", f"rootpassword={REMOVED}"),
        ('x.SECRET="a b" ro', f"x.SECRET={REMOVED} ro"),
        ("systemd.setenv=API_TOKEN=abc", f"systemd.setenv={REMOVED}"),
        ("systemd.set_credential=wg:abc", f"systemd.set_credential={REMOVED}"),
        ("url=http://me:pw@host/x", f"url=http://{REMOVED}@host/x"),
    ],
)  # fmt: skip
def test_a_command_line_keeps_no_secrets(text, kept):
    assert command_line(text.encode()).decode() == kept


def test_files_keep_only_what_readers_need():
    kept = {
        "proc/1/environ": (b"PASSWORD=x\0container=podman\0", b"container=podman\0"),
        "proc/self/mounts": (
            b"overlay / overlay rw\n//nas/me /mnt cifs rw\nnone /cgroup cgroup2 rw\n",
            b"overlay / overlay rw\nnone /cgroup cgroup2 rw\n"),
        "proc/self/status": (b"Name:\tpython\nCpus_allowed_list:\t0-1\n",
                             b"Cpus_allowed_list:\t0-1\n"),
        "linkgauge/tools/nvidia-smi_-q.txt": (
            b"  Product Name : H200\n   Name    : python train.py --token x\n",
            b"  Product Name : H200\n   Name    : (removed)\n"),
    }  # fmt: skip
    for path, (content, wanted) in kept.items():
        assert without_secrets(path, content) == wanted


def test_of_smbios_only_dimms_are_kept():
    whole = table(dimm("DIMM_A1"), b"\x0b\x05\0\0\x01io.systemd.credential:x=y\0\0")
    kept = without_secrets(DMI, whole)
    assert b"credential" not in kept
    assert b"Vendor" not in kept
    assert read_dimms(Captured({DMI: kept})) == read_dimms(Captured({DMI: whole}))


def names_everywhere():
    """A machine whose names stand in files, links, registers and text."""
    bus = Bus()
    space = config(extended=(AER, (0x0003, SERIAL)))
    bus.add("pci0000:00/0000:00:01.0", space)
    smbios = bytearray(dimm("DIMM_A1"))
    smbios[0x18] = 3
    smbios[-1:] = b"H0B3A7C1\0\0"
    group = f"/kubepods/pod{UUID.replace('-', '_')}"
    files = {
        **bus.files,
        DMI: table(bytes(smbios)),
        "proc/sys/kernel/hostname": b"gpu07.lab.example.org\n",
        "proc/sys/kernel/osrelease": b"6.8.0.11\n",
        "proc/cmdline": f"root=UUID={UUID} nfsroot=10.1.2.3:/x ip=:10.1.2.3:gpu07 "
        "mac=0c:42:a1:00:00:07 BOOTIF=01-0c-42-a1-00-00-07 image=/vmlinuz-4.18.0.30-x"
        .encode(),
        "proc/cpuinfo": b"Hardware\t: BCM2835\nSerial\t\t: 10000000abcdef01\n",
        "proc/self/cgroup": f"0::{group}\n".encode(),
        f"sys/fs/cgroup{group}/memory.max": b"1073741824\n",
        "linkgauge/tools/uname_-a.txt": b"Linux gpu07 6.8.0\n",
        "linkgauge/tools/lspci_-vvv.txt":
            b"\tCapabilities: [100] Device Serial Number 48-b0-2d-ff-ff-aa-bb-cc\n"
            b"\t\t[SN] Serial number: MT2116X09299\n\t\t[PN] Part number: MCX653105A\n"
            b"\t\t[V3] Vendor specific: 0c42a1beef\n0000:1b:00.0 3D controller: Serial 12:34:56\n",
        "linkgauge/tools/nvidia-smi_-q.txt":
            f"    Driver Version : 570.13.20.1\n GPU UUID : GPU-{UUID}\n"
            "    Chassis Serial Number : 1650522011\n    Serial Number : N/A\n".encode(),
        "linkgauge/tools/ibstat.txt":
            b"\tNode GUID: 0x0c42a10300000007\n\tport fe80::e42:a1ff:fe00:7 0c42:a103:0000:0007\n",
    }  # fmt: skip
    return Captured(files, bus.links)


def test_names_become_pseudonyms_everywhere():
    tree = anonymize(names_everywhere())
    everything = b"\n".join([*tree.files.values(), *(path.encode() for path in tree.files)])
    for name in (b"gpu07", b"example", b"10.1.2.3", b"0c:42:a1", b"0c-42-a1", b"00-07", b"0c42",
                 b"c04f4d", b"MT2116X", b"10000000abcdef01", b"1650522011", b"H0B3A7C1",
                 b"aa-bb-cc", b"fe80", b"4c4c4544", SERIAL):  # fmt: skip
        assert name not in everything, name
    for kept in (b"570.13.20.1", b"MCX653105A", b"0000:1b:00.0", b"12:34:56", b"N/A", b"DIMM_A1",
                 b"6.8.0.11", b"BCM2835", b"vmlinuz-4.18.0.30-x"):  # fmt: skip
        assert kept in everything, kept
    assert read_text(tree, "proc/sys/kernel/hostname") == "host-1"
    assert read_text(tree, "linkgauge/tools/uname_-a.txt") == "Linux host-1 6.8.0"


def test_the_same_value_has_the_same_pseudonym():
    tree = anonymize(names_everywhere())
    uuid = read_text(tree, "proc/cmdline").split()[0].removeprefix("root=UUID=")
    assert f"GPU-{uuid}" in read_text(tree, "linkgauge/tools/nvidia-smi_-q.txt")
    assert read_inventory(tree).host.memory_limit == 1 << 30
    registers = tree.files["sys/devices/pci0000:00/0000:00:01.0/config"]
    serial = registers[serial_number(registers)][::-1].hex("-")
    assert f"Number {serial}\n" in read_text(tree, "linkgauge/tools/lspci_-vvv.txt")
    assert decode(registers) == decode(config(extended=(AER, (0x0003, SERIAL))))


def test_a_host_named_like_a_node_keeps_its_nodes():
    tree = simulated("rbln-32")
    named = Captured({**tree.files, "proc/sys/kernel/hostname": b"node0\n"}, tree.links)
    hidden = anonymize(named)
    assert read_inventory(hidden).host == read_inventory(tree).host
    assert read_host(hidden).hostname == "host-1"


@given(st.text(), st.text(st.sampled_from("0123456789abcdef-:. \n/Serial"), max_size=80))
def test_any_text_is_anonymised_the_same_again(hostname, text):
    assert Anonymizer(hostname).prose(text) == Anonymizer(hostname).prose(text)


@given(st.binary(max_size=600), st.sampled_from([DMI, "sys/devices/x/config", "proc/cmdline"]))
def test_garbled_files_are_no_trouble(content, path):
    tree = Captured({path: without_secrets(path, content)})
    assert list(anonymize(tree).files) == [path]


def test_an_archive_is_the_same_whenever_it_is_written(tmp_path):
    tree = simulated("ppu-8")
    backwards = Captured(dict(reversed(tree.files.items())), dict(reversed(tree.links.items())))
    assert pack(tree) == pack(backwards)
    kept = through_a_file(tree, tmp_path)
    assert (kept.files, kept.links) == (tree.files, tree.links)
    assert pack(kept) == pack(tree)


def test_empty_folders_come_along(tmp_path):
    tree = through_a_file(Captured({}, {}, ["sys/kernel/iommu_groups"]), tmp_path)
    assert read_inventory(tree).host.iommu == "off"


def archived(path, *members, mode="w:gz"):
    with tarfile.open(path, mode) as tar:
        for name, content, changes in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            for field, value in changes.items():
                setattr(member, field, value)
            tar.addfile(member, io.BytesIO(content))
    return path


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_a_tree_may_lie_in_a_folder_of_the_archive(mode, tmp_path):
    path = archived(
        tmp_path / "x",
        ("machine/proc/cmdline", b"ro", {}),
        ("machine/sys", b"", {"type": tarfile.DIRTYPE}),
        ("machine/etc/link", b"", {"type": tarfile.SYMTYPE, "linkname": "../proc/cmdline"}),
        ("machine/hard", b"", {"type": tarfile.LNKTYPE, "linkname": "machine/proc/cmdline"}),
        mode=mode,
    )
    tree = read_archive(path)
    assert [read_text(tree, name) for name in ("proc/cmdline", "etc/link", "hard")] == ["ro"] * 3
    assert "sys" in tree.folders


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../up", "a/../../up", "a/" * 70 + "deep", "x" * 1025]
)
def test_members_that_lead_elsewhere_are_refused(name, tmp_path):
    with pytest.raises(InputError) as caught:
        read_archive(archived(tmp_path / "x", (name, b"", {})))
    assert "\n" not in str(caught.value)


def test_links_that_lead_outside_stay_within(tmp_path):
    (tmp_path / "secret").write_text("of the machine that reads")
    out = {"type": tarfile.SYMTYPE, "linkname": str(tmp_path / "secret")}
    tree = read_archive(archived(tmp_path / "x", ("sys/a", b"", out), ("sys/b", b"x", {})))
    assert read_text(tree, "sys/a") is None


def test_archives_that_unpack_to_too_much_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "MOST_BYTES", 1 << 16)
    monkeypatch.setattr(archive, "MOST_MEMBERS", 3)
    bombs = {
        "one": [("a", bytes(1 << 17), {})],
        "sum": [(f"a{number}", bytes(1 << 15), {}) for number in range(3)],
        "count": [(f"a{number}", b"", {}) for number in range(5)],
        "header": [("a", b"", {"pax_headers": {"comment": "x" * (1 << 17)}})],
    }
    for name, members in bombs.items():
        with pytest.raises(InputError, match="no captured machine does"):
            read_archive(archived(tmp_path / name, *members))


def test_a_sparse_member_counts_as_what_it_unpacks_to(tmp_path):
    header = bytearray(tarfile.TarInfo("a").tobuf(tarfile.GNU_FORMAT))
    header[156:157] = tarfile.GNUTYPE_SPARSE
    header[483:495] = b"%011o\0" % (1 << 32)
    header[148:156] = b"%06o\0 " % (sum(header[:148]) + 8 * 32 + sum(header[156:]))
    (tmp_path / "x").write_bytes(bytes(header) + bytes(1024))
    with pytest.raises(InputError, match="no captured machine does"):
        read_archive(tmp_path / "x")


@pytest.mark.parametrize("content", [b"", b"text", b"\x1f\x8b", b"\x1f\x8b" + bytes(30), b"BZhx"])
def test_what_is_no_archive_is_refused_in_one_line(content, tmp_path):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_archive(tmp_path / "x")
    assert "\n" not in str(caught.value)


def test_a_cut_archive_is_refused(tmp_path):
    path = tmp_path / "machine.tgz"
    path.write_bytes(pack(simulated("ppu-8"))[:-500])
    with pytest.raises(InputError, match="damaged"):
        read_archive(path)


def test_what_cannot_be_read_or_written_says_so(tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        read_archive(tmp_path / "gone")
    with pytest.raises(ResultsError, match="cannot write"):
        write_archive(tmp_path / "gone" / "x.tgz", Captured({}))


def test_a_serial_number_is_cut_with_its_registers():
    space = config(extended=((0x0003, SERIAL),))
    assert struct.unpack("<Q", space[serial_number(space)]) == struct.unpack("<Q", SERIAL)
    assert serial_number(space[:264]) == slice(260, 264)
    assert serial_number(space[:64]) is None
