"""Whatever a machine's files hold, it is read, shown and kept; what is missing has a reason."""

import os
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz_kit import mutated
from linkgauge.backends.sim import SimBackend
from linkgauge.backends.sim.description import parse_description
from linkgauge.machine.capture import capture, read_machine
from linkgauge.machine.hardware import hardware_yaml
from linkgauge.machine.interfaces import INTERFACES
from linkgauge.machine.pci import DEVICES
from linkgauge.machine.record import Recorder
from linkgauge.machine.tree import ROOT, Captured
from linkgauge.model.machine import Machine
from linkgauge.report.formats import formats
from machine_kit import DMI, LIMITS, SWITCHED, dimm, reason, seen, table
from pci_kit import why
from sim_tree import tree_of, write

PORT = "sys/class/infiniband/mlx5_0/ports/1"
MORE = {
    DMI: table(dimm("A1", bank="CHANNEL A")),
    "proc/driver/nvidia/gpus/0/numa_status": b"Node:      9\n",
    "proc/net/if_inet6": b"20010db8000000000000000000000007 04 40 00 80 eth0\n" * 3,
    "proc/mounts": b"none /sys/fs/cgroup cgroup2 rw 0 0\n",
    "proc/self/cgroup": b"0::/a/b\n",
    "proc/self/limits": LIMITS.format("8388608").encode(),
    "proc/version": b"Linux version 6.8.0 (gcc)\n",
    "sys/fs/cgroup/a/memory.max": b"4096\n",
    f"{INTERFACES}/eth0/ifindex": b"2\n",
    f"{PORT}/state": b"4: ACTIVE\n",
    f"{PORT}/rate": b"400 Gb/sec (4X NDR)\n",
    f"{PORT}/link_layer": b"InfiniBand\n",
}


def whole():
    """What is read of a machine of every kind of part."""
    tree = tree_of(SimBackend(parse_description(SWITCHED)))
    recorder = Recorder(Captured({**tree.files, **MORE}, tree.links))
    seen(recorder)
    return recorder.kept()


WHOLE = whole()
GARBAGE = st.one_of(
    st.binary(max_size=300),
    st.sampled_from(
        [
            *(b"", b"\n", b"\0", b"-1\n", b"0\n", b"9" * 400, b"\xff\xfe", b"0-" + b"9" * 17),
            *(b"0-65534\n", b"inf Gb/sec", b"0x" + b"f" * 40, b"[" * 5000, b"0::/../..\n"),
        ]
    ),
)
TARGETS = st.sampled_from(
    ["", ".", "..", "/", "/sys/devices", "../../../..", "a\0b", *sorted(WHOLE.links)[:3]]
)
CHANGES = st.one_of(
    GARBAGE.map(lambda content: ("holds", content)),
    TARGETS.map(lambda target: ("leads to", target)),
    st.integers(0, 300).map(lambda size: ("is cut to", size)),
    st.integers(0, 1 << 32).map(lambda seed: ("is mutated by", seed)),
    st.sampled_from([("is gone", None), ("is a folder", None), ("leads to itself", None)]),
)


def changed(changes):
    """The tree with some of its files and links garbled."""
    files, links, folders = dict(WHOLE.files), dict(WHOLE.links), []
    for path, (how, value) in changes.items():
        content = files.pop(path, b"")
        links.pop(path, None)
        if how == "holds":
            files[path] = value
        elif how == "is cut to":
            files[path] = content[:value]
        elif how == "is mutated by":
            files[path] = mutated(content, Random(value))
        elif how == "is a folder":
            folders.append(path)
        elif how.startswith("leads to"):
            links[path] = path.rpartition("/")[2] if value is None else value
    return Captured(files, links, folders)


@given(st.dictionaries(st.sampled_from([*WHOLE.files, *WHOLE.links]), CHANGES, max_size=12))
def test_any_garbled_machine_is_read_shown_and_kept(changes):
    tree = changed(changes)
    machine = read_machine(tree)
    assert msgspec.json.decode(msgspec.json.encode(machine), type=Machine) == machine
    formats()["terminal"].write("machine", machine)
    assert hardware_yaml(machine)
    assert read_machine(capture(tree, machine)).inventory == machine.inventory
    capture(tree, machine, anonymous=True)
    for function in machine.inventory.pci:
        for field in ("vendor", "device", "class_code", "revision", "numa_node", "max_payload"):
            assert getattr(function, field) is not None or why(function, field)


def as_nobody(work):
    """The bytes that `work` gives, in a process without root's rights."""
    if os.geteuid():
        return work()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            with os.fdopen(writer, "wb") as stream:
                stream.write(work())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        answer = stream.read()
    os.waitpid(child, 0)
    return answer


def replace(place, how):
    place.unlink()
    if how == "folder":
        place.mkdir()
    elif how == "pipe":
        os.mkfifo(place)
    elif how == "loop":
        place.symlink_to(place.name)
    else:
        place.touch(0)


@pytest.mark.parametrize("how", ["folder", "pipe", "loop", "locked"])
def test_files_on_disk_that_are_none_are_taken_for_missing(how, tmp_path, monkeypatch):
    write(WHOLE, tmp_path)
    for path in WHOLE.files:
        replace(tmp_path / path, how)
    tmp_path.chmod(0o755)
    monkeypatch.chdir(tmp_path)  # the folders above it are locked, too
    machine = msgspec.json.decode(
        as_nobody(lambda: msgspec.json.encode(seen(Path()))), type=Machine
    )
    assert machine.inventory.pci == ()
    unread = [line for line in machine.inventory.unknown if "neither class nor config" in line]
    assert len(unread) == len([path for path in WHOLE.links if path.startswith(DEVICES)])
    assert [node.memory_total for node in machine.host.nodes] == [None]
    assert {"sockets", "cores", "instruction set", "kernel command line", "locked memory limit"} < {
        line.partition(":")[0] for line in machine.inventory.host.unknown
    }


def test_a_user_without_root_reads_this_machine_but_for_what_root_alone_may():
    mine = seen(ROOT)
    theirs = msgspec.json.decode(as_nobody(lambda: msgspec.json.encode(seen(ROOT))), type=Machine)
    assert theirs.host.cpu_model == mine.host.cpu_model
    assert theirs.host.memory_total == mine.host.memory_total
    for field in ("sockets", "cores", "isa", "caches", "distances", "hypervisor", "iommu"):
        assert getattr(theirs.inventory.host, field) == getattr(mine.inventory.host, field)
    ours = {function.address: function for function in mine.inventory.pci}
    for function in theirs.inventory.pci:
        lost = function.max_payload is None and ours[function.address].max_payload is not None
        assert not lost or "run as root" in why(function, "max_payload")
    if mine.inventory.host.memory_rate and not theirs.inventory.host.memory_rate:
        assert "run as root" in reason(theirs.inventory.host, "DIMM rate")
