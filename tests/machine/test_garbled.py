"""Whatever a machine's files hold, it is read, shown and kept; what is missing has a reason."""

from random import Random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from fuzz_kit import mutated
from linkgauge.backends.sim.backend import SimBackend
from linkgauge.backends.sim.description import parse_description
from linkgauge.backends.sim.machine import parts_of
from linkgauge.machine.captures.capture import capture, read_machine
from linkgauge.machine.tree import Captured
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.notation import decode_hook, encode_hook
from machine_kit import DMI, LIMITS, SWITCHED, dimm, seen, table
from pci_kit import why
from sim_tree import tree_of

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
    "sys/class/net/eth0/ifindex": b"2\n",
    f"{PORT}/state": b"4: ACTIVE\n",
    f"{PORT}/rate": b"400 Gb/sec (4X NDR)\n",
    f"{PORT}/link_layer": b"InfiniBand\n",
}


def whole():
    """What is kept of a machine of every kind of part."""
    tree = tree_of(SimBackend(parts_of(parse_description(SWITCHED))))
    tree = Captured({**tree.files, **MORE}, tree.links)
    return capture(tree, seen(tree))


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
    kept = msgspec.json.encode(machine, enc_hook=encode_hook)
    assert msgspec.json.decode(kept, type=Machine, dec_hook=decode_hook()) == machine
    assert read_machine(capture(tree, machine)).inventory == machine.inventory
    capture(tree, machine, anonymous=True)
    for function in machine.inventory.pci:
        for field in ("vendor", "device", "class_code", "revision", "numa_node", "max_payload"):
            assert getattr(function, field) is not None or why(function, field)
