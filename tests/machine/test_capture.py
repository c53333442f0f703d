"""A captured machine reads back as the machine, without its secrets and, if asked, its names."""

import io
import lzma
import struct
import subprocess
import sys
import tarfile
import zlib

import msgspec
import pytest

from linkgauge.cli.devices import open_root
from linkgauge.machine import archive, zstd
from linkgauge.machine.archive import pack, read_archive, tar_of, write_archive
from linkgauge.machine.capture import MANIFEST, Manifest, capture, read_machine, read_manifest
from linkgauge.machine.host import read_host
from linkgauge.machine.pci_config import serial_number
from linkgauge.machine.read_inventory import read_inventory
from linkgauge.machine.secrets import command_line
from linkgauge.machine.tree import ROOT, Captured, read_text
from linkgauge.model.errors import InputError
from linkgauge.model.machine import Device, Machine
from machine_kit import MACHINES, seen, simulated, through_a_file
from pci_kit import config
from sim_tree import write

SERIAL = bytes.fromhex("ccbbaaffff2db048")


@pytest.mark.parametrize("name", MACHINES)
def test_a_simulated_machine_reads_back_the_same(name, tmp_path):
    tree = simulated(name)
    write(tree, tmp_path / "root")
    machine = seen(tmp_path / "root")
    kept = through_a_file(capture(tmp_path / "root", machine), tmp_path)
    assert read_inventory(kept) == machine.inventory == read_inventory(tree)
    assert read_machine(kept).host == machine.host


def test_this_machine_reads_back_the_same(tmp_path):
    machine = seen(ROOT)
    kept = through_a_file(capture(ROOT, machine, commands=()), tmp_path)

    def steady(inventory):
        """Without what counts up, and without what a command line may hide."""
        host = inventory.host
        secret = command_line((host.command_line or "").encode()).decode() or None
        host = msgspec.structs.replace(host, steal=None, cpu_ticks=None, command_line=secret)
        interfaces = tuple(map(of_files, inventory.interfaces))
        return msgspec.structs.replace(inventory, host=host, interfaces=interfaces)

    def of_files(interface):
        """No file shows which interface has an address of IPv4."""
        addresses = tuple(address for address in interface.addresses if ":" in address)
        return msgspec.structs.replace(interface, addresses=addresses)

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
    assert hidden.devices["opencl"][0].uuid == "00000000000040008000000000000001"


@pytest.mark.parametrize("content", [b"", b"[1]", b"\xff", b"[" * 100_000, b'{"devices": 1}'])
def test_a_garbled_manifest_leaves_out_what_it_holds(content):
    assert read_manifest(Captured({MANIFEST: content})) == Manifest(linkgauge="")


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


HUNGRY = """
import re, sys
from pathlib import Path
from linkgauge.machine.archive import read_archive
from linkgauge.model.errors import InputError
try:
    read_archive(Path(sys.argv[1]))
except InputError as error:
    print(error)
status = Path("/proc/self/status").read_text()  # getrusage counts the process that started this
print(int(re.search("VmHWM:(.*) kB", status)[1]) >> 10)
"""


def xz_that_asks_for_much():
    """A tar whose dictionary has 1.5 GiB, of which it uses next to nothing."""
    tar = tar_of(Captured({"proc/cmdline": b"ro"}))
    # To compress takes memory for a dictionary, too: the size that is asked for is written later.
    small = lzma.compress(tar, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 20}])
    header = bytearray(small[12:24])
    assert header[:4] == bytes((2, 0, 0x21, 1)), "one filter, LZMA2, of one byte: the size"
    header[4] = 37  # 1.5 GiB
    header[8:] = zlib.crc32(header[:8]).to_bytes(4, "little")
    return small[:12] + bytes(header) + small[24:]


def zstd_that_asks_for_much():
    """A frame whose window has 2 GiB: its descriptor is the exponent above 10."""
    last_block_of_one_byte = (1 << 3 | 1).to_bytes(3, "little") + b"x"
    return zstd.MAGIC + bytes((0, (31 - 10) << 3)) + last_block_of_one_byte


@pytest.mark.parametrize("packed", [xz_that_asks_for_much(), zstd_that_asks_for_much()])
def test_no_archive_takes_the_memory_that_it_asks_for(packed, tmp_path):
    path = tmp_path / "machine.tar"
    path.write_bytes(packed)
    done = subprocess.run(
        [sys.executable, "-c", HUNGRY, path], capture_output=True, text=True, check=True
    )
    said, most = done.stdout.splitlines()
    assert f"{path} is not an archive, or is damaged (" in said
    assert "emory" in said
    assert int(most) < 300


def test_an_xz_of_several_streams_is_read_and_one_that_is_cut_off_is_not(tmp_path):
    tar = tar_of(Captured({"proc/cmdline": b"ro" * 50_000}))
    path = tmp_path / "machine.tar.xz"
    whole = lzma.compress(tar[:1000]) + bytes(8) + lzma.compress(tar[1000:])
    path.write_bytes(whole + bytes(4))
    assert read_archive(path).files == {"proc/cmdline": b"ro" * 50_000}
    path.write_bytes(whole[: len(whole) * 2 // 3])
    with pytest.raises(InputError, match="is damaged"):
        read_archive(path)


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


def test_a_machine_one_folder_deeper_is_found(tmp_path):
    members = [("farm/README", b"", {}), ("farm/box/proc/cmdline", b"ro", {}),
               ("farm/notes/x", b"", {})]  # fmt: skip
    tree = read_archive(archived(tmp_path / "x", *members))
    assert read_text(tree, "proc/cmdline") == "ro"
    assert set(tree.files) == {"proc/cmdline"}
    for name, content, _ in members:
        (tmp_path / "unpacked" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "unpacked" / name).write_bytes(content)
    assert read_text(open_root(tmp_path / "unpacked"), "proc/cmdline") == "ro"


def test_what_holds_no_machine_or_several_is_refused(tmp_path):
    none = archived(tmp_path / "none", ("photos/cat", b"", {}), ("a/b/c/d/proc/x", b"", {}))
    with pytest.raises(InputError, match="holds no machine"):
        read_archive(none)
    two = archived(tmp_path / "two", ("a/proc/cmdline", b"", {}), ("b/sys/x", b"", {}))
    with pytest.raises(InputError, match=r"holds 2 machines: give one of them \(a, b\)"):
        read_archive(two)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no machine"):
        open_root(tmp_path / "empty")


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
        with pytest.raises(InputError, match="it is not a captured machine"):
            read_archive(archived(tmp_path / name, *members))


def test_a_sparse_member_counts_as_what_it_unpacks_to(tmp_path):
    header = bytearray(tarfile.TarInfo("a").tobuf(tarfile.GNU_FORMAT))
    header[156:157] = tarfile.GNUTYPE_SPARSE
    header[483:495] = b"%011o\0" % (1 << 32)
    header[148:156] = b"%06o\0 " % (sum(header[:148]) + 8 * 32 + sum(header[156:]))
    (tmp_path / "x").write_bytes(bytes(header) + bytes(1024))
    with pytest.raises(InputError, match="it is not a captured machine"):
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
    with pytest.raises(InputError, match="cannot write"):
        write_archive(tmp_path / "gone" / "x.tgz", Captured({}))


def test_a_serial_number_is_cut_with_its_registers():
    space = config(extended=((0x0003, SERIAL),))
    assert struct.unpack("<Q", space[serial_number(space)]) == struct.unpack("<Q", SERIAL)
    assert serial_number(space[:264]) == slice(260, 264)
    assert serial_number(space[:64]) is None
