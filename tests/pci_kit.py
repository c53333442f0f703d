"""Builds the PCI part of a machine: config spaces, and trees of functions in files or memory."""

import struct

from linkgauge.machine.read_inventory import read_inventory
from linkgauge.machine.tree import Captured
from sim_tree import write

ROOT_PORT, ENDPOINT = 4, 0
PORT = "pci0000:00/0000:00:01.0"
CARD = f"{PORT}/0000:01:00.0"


def config(
    vendor=0x10DE,
    device=0x2335,
    class_code=0x030200,
    revision=0xA1,
    size=4096,
    capabilities=((0x01, b"\x03\x00"), (0x05, b""), (0x10, None)),
    extended=(),
    header=0,
    **registers,
):
    """A config space. A capability is (id, what follows its 2 bytes), 0x10's None made from
    `registers`; an extended one is (id, what follows its 4 bytes)."""
    space = bytearray(4096)
    struct.pack_into("<HHHHB", space, 0, vendor, device, 6, 0x10 if capabilities else 0, revision)
    space[9:12] = class_code.to_bytes(3, "little")
    space[0x0E] = header
    pointer, at = 0x34, 0x40
    for number, content in capabilities:
        body = express(**registers) if content is None else content
        space[pointer] = at
        space[at : at + 2 + len(body)] = bytes([number, 0]) + body
        pointer, at = at + 1, (at + 2 + len(body) + 3) & ~3
    at, last = 0x100, None
    for number, content in extended:
        if last is not None:
            space[last + 2 : last + 4] = (at << 4 | 1).to_bytes(2, "little")
        space[at : at + 4 + len(content)] = struct.pack("<HH", number, 1) + content
        last, at = at, at + 4 + len(content)
    return bytes(space[:size])


def express(
    version=2,
    port=ENDPOINT,
    speed=5,
    width=16,
    max_speed=5,
    max_width=16,
    speeds=None,
    target=5,
    payload=1,
    payload_supported=2,
    request=2,
):
    """The PCI Express capability behind its id and pointer; speeds and sizes as their codes."""
    speeds = (1 << max_speed) - 1 if speeds is None else speeds
    first = struct.pack(
        "<HIHHIHH",
        port << 4 | version,
        payload_supported,
        payload << 5 | request << 12,
        0,
        max_speed | max_width << 4,
        0,
        speed | width << 4,
    )
    second = bytes(24) + struct.pack("<IHH", speeds << 1, target, 0)
    return first + second if version >= 2 else first


def acs(control):
    return 0x000D, struct.pack("<HH", 0x7F, control)


AER = (0x0001, bytes(0x28))


class Bus:
    """Functions by their folders below sys/devices; `files` and `links` make a tree of them."""

    def __init__(self):
        self.files = {}
        self.links = {}

    def add(self, path, space=None, **attributes):
        """`path`: pci0000:00/0000:00:01.0/0000:01:00.0; attributes: text, None to leave out."""
        address = path.rpartition("/")[2]
        self.links[f"sys/bus/pci/devices/{address}"] = f"../../../devices/{path}"
        folder = f"sys/devices/{path}"
        texts = {"vendor": "0x10de", "device": "0x2335", "class": "0x030200", "numa_node": "0"}
        for name, text in (texts | attributes).items():
            if text is not None:
                self.files[f"{folder}/{name}"] = f"{text}\n".encode()
        if space is not None:
            self.files[f"{folder}/config"] = space
        return folder

    def bridge(self, path, space=None, **attributes):
        return self.add(path, space, **({"class": "0x060400"} | attributes))

    def write(self, folder):
        write(self, folder)


def read(bus):
    """What is read of a tree in memory, by address, and what could not be."""
    found = read_inventory(Captured(bus.files, bus.links))
    return {function.address: function for function in found.pci}, found.unknown


def why(function, field):
    """The reason why a field is null."""
    return next(gap.why for gap in function.unknown if field in gap.fields)
