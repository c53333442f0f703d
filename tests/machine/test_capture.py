"""A captured machine reads back as the machine, without its secrets and, if asked, its names."""

import io
import lzma
import subprocess
import sys
import tarfile
import zlib

import pytest

from command_kit import called
from linkgauge.machine.captures import archive
from linkgauge.machine.captures.archive import read_archive, tar_of, write_archive
from linkgauge.machine.captures.capture import capture, read_machine
from linkgauge.machine.host import read_host
from linkgauge.machine.tree import Captured
from linkgauge.model.errors import InputError
from linkgauge.model.hardware.machine import Device, Machine
from machine_kit import through_a_file


def test_devices_of_backends_come_along(tmp_path):
    device = Device("opencl:0", "Card", 1 << 30, 1 << 28, uuid="f00d" * 8)
    machine = Machine(
        host=read_host(Captured({})), devices={"opencl": (device,)}, unavailable={"cuda": "none"}
    )
    kept = read_machine(through_a_file(capture(Captured({}), machine), tmp_path))
    assert (kept.devices, kept.unavailable) == (machine.devices, machine.unavailable)
    hidden = read_machine(capture(Captured({}), machine, anonymous=True))
    assert hidden.devices["opencl"][0].uuid == "00000000000040008000000000000001"


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
from linkgauge.machine.captures.archive import read_archive
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
    return bytes.fromhex("28b52ffd") + bytes((0, (31 - 10) << 3)) + last_block_of_one_byte


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
    assert [tree.text(name) for name in ("proc/cmdline", "etc/link", "hard")] == ["ro"] * 3
    assert "sys" in tree.folders


def test_a_machine_one_folder_deeper_is_found(tmp_path):
    members = [("farm/README", b"", {}), ("farm/box/proc/cmdline", b"ro", {}),
               ("farm/notes/x", b"", {})]  # fmt: skip
    tree = read_archive(archived(tmp_path / "x", *members))
    assert tree.text("proc/cmdline") == "ro"
    assert set(tree.files) == {"proc/cmdline"}
    for name, content, _ in members:
        (tmp_path / "unpacked" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "unpacked" / name).write_bytes(content)
    told = called("devices", "--root", tmp_path / "unpacked", "--json").stdout
    assert '"command_line": "ro"' in told


def test_what_holds_no_machine_or_several_is_refused(tmp_path):
    none = archived(tmp_path / "none", ("photos/cat", b"", {}), ("a/b/c/d/proc/x", b"", {}))
    with pytest.raises(InputError, match="holds no machine"):
        read_archive(none)
    two = archived(tmp_path / "two", ("a/proc/cmdline", b"", {}), ("b/sys/x", b"", {}))
    with pytest.raises(InputError, match=r"holds 2 machines: give one of them \(a, b\)"):
        read_archive(two)
    (tmp_path / "empty").mkdir()
    assert "holds no machine" in called("devices", "--root", tmp_path / "empty").stderr


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../up", "a/../../up", "a/" * 70 + "deep", "x" * 1025]
)
def test_members_that_lead_elsewhere_are_refused(name, tmp_path):
    with pytest.raises(InputError) as caught:
        read_archive(archived(tmp_path / "x", (name, b"", {})))
    assert "\n" not in str(caught.value)


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


@pytest.mark.parametrize("content", [b"", b"text", b"\x1f\x8b", b"\x1f\x8b" + bytes(30), b"BZhx"])
def test_what_is_no_archive_is_refused_in_one_line(content, tmp_path):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_archive(tmp_path / "x")
    assert "\n" not in str(caught.value)


def test_what_cannot_be_read_or_written_says_so(tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        read_archive(tmp_path / "gone")
    with pytest.raises(InputError, match="cannot write"):
        write_archive(tmp_path / "gone" / "x.tgz", Captured({}))
