"""Reads from network drivers what ethtool shows, by SIOCETHTOOL (uapi/linux/ethtool.h)."""

from __future__ import annotations

import ctypes
import fcntl
import re
import socket
import struct
from collections.abc import Iterable, Iterator

from .tools import FOLDER
from .tree import ROOT, Root, number

_SIOCETHTOOL = 0x8946
_REQUEST = struct.Struct("16sQ16x")
"""struct ifreq with the interface's name and a pointer to the command."""
_STRINGS, _STATISTICS, _RINGS, _CHANNELS, _FEC = 0x1B, 0x1D, 0x10, 0x3C, 0x50
_SET_SIZE, _LINK = 0x37, 0x4C
_STATISTICS_SET, _MODES_SET = 1, 9
_LINK_BYTES = 48
"""The bytes of struct ethtool_link_settings before its masks of modes."""
_NAME = 32
"""The bytes of a counter's name."""
_MOST = 1 << 14
"""The most counters that are read: an adapter with 64 queues has some thousands."""
_QUEUE = re.compile(r"^(\[|rx|tx|ch|queue_|[rt]x_queue_|[rt]xq|[rt]x-)[0-9]+(?=[]_.:])")
"""The number of a queue in a counter's name: `[3]: rx_discards` (bnxt_en), `rx3_packets` (mlx5),
`queue_3_rx_cnt` (ena), `rx_queue_3_drops` (virtio_net), `tx-3.packets` (i40e)."""
_FECS = ("none", "auto", "off", "rs", "baser", "llrs")
"""Modes of FEC by their bit."""
_OFFLOADS = {
    "tso": (0x1E, "tcp-segmentation-offload"), "gro": (0x2B, "generic-receive-offload"),
    "rx": (0x14, "rx-checksumming"), "tx": (0x16, "tx-checksumming"),
    "sg": (0x18, "scatter-gather"),
}  # fmt: skip
"""Offloads, by their command and by the name in the output of ethtool -k."""
_MODE = re.compile(r"([0-9]+)base\w+/Full")
_MEGABIT = 1e6 / 8


class Drivers:
    """Reads facts from network drivers or, in a capture, from the output of ethtool."""

    def __init__(self, root: Root = ROOT) -> None:
        self._root = root
        self._names: dict[str, tuple[str, ...]] = {}

    def counters(self, interface: str) -> dict[str, int]:
        """Returns counters by name, summed over queues. N in a name stands for a queue's number."""
        found: Iterable[tuple[str, int]] = _counted(self._text("-S", interface))
        if self._root == ROOT:
            found = zip(self._named(interface), self._values(interface), strict=False)
        total: dict[str, int] = {}
        for name, value in found:
            summed = _QUEUE.sub(r"\1N", name)
            total[summed] = total.get(summed, 0) + value
        return total

    def rings(self, interface: str) -> tuple[int, int, int, int] | None:
        """Returns the sizes of the receive and transmit ring, then both maxima; None if unknown."""
        if self._root == ROOT:
            rx_most, _, _, tx_most, rx, _, _, tx = self._ask(interface, _RINGS, "8I") or (0,) * 8
            return (rx, tx, rx_most, tx_most) if rx_most else None
        most, now = _sections(self._text("-g", interface))
        values = [each.get(name) for each in (now, most) for name in ("RX", "TX")]
        return None if None in values else tuple(values)  # type: ignore[return-value]

    def channels(self, interface: str) -> tuple[int, int] | None:
        """Returns the number of queues in use and the largest possible number; None if unknown."""
        if self._root == ROOT:
            found = self._ask(interface, _CHANNELS, "8I")
            if found is None:
                return None
            rx_most, tx_most, _, both_most, rx, tx, _, both = found
            return max(rx, tx, both), max(rx_most, tx_most, both_most)
        most, now = _sections(self._text("-l", interface))
        used, able = (max((of.get(n, 0) for n in ("RX", "TX", "Combined")), default=0)
                      for of in (now, most))  # fmt: skip
        return (used, able) if able else None

    def fec(self, interface: str) -> str | None:
        """Returns the active forward error correction, such as `rs`; None if unknown."""
        if self._root == ROOT:
            active = (self._ask(interface, _FEC, "3I") or (0, 0, 0))[0]
            return next((mode for bit, mode in enumerate(_FECS) if active >> bit & 1), None)
        match = re.search(r"Active FEC encodings?: (\w+)", self._text("--show-fec", interface))
        return match[1].lower() if match else None

    def off(self, interface: str) -> tuple[str, ...]:
        if self._root == ROOT:
            asked = {name: self._ask(interface, code, "I") for name, (code, _) in _OFFLOADS.items()}
            return tuple(name for name, on in asked.items() if on == (0,))
        text = self._text("-k", interface)
        return tuple(name for name, (_, said) in _OFFLOADS.items() if f"{said}: off\n" in text)

    def able(self, interface: str) -> float | None:
        """Returns the highest rate in bytes/s that both ends support; None if there is none."""
        if self._root == ROOT:
            ours, theirs = self._modes(interface)
        else:
            link = self._text("", interface)
            heads = ("Supported link modes", "Link partner advertised link modes")
            said = (re.search(rf"{head}:((?:.*base.*\n)+)", link) for head in heads)
            ours, theirs = (_MODE.findall(found[1]) if found else [] for found in said)
        both = {*ours} & {*theirs}
        return max(map(int, both)) * _MEGABIT if both else None

    def _modes(self, interface: str) -> tuple[list[str], list[str]]:
        """Returns the rates in Mb/s that this end and the other end of the link support."""
        first = self._call(interface, struct.pack("I", _LINK), _LINK_BYTES - 4)
        words = -struct.unpack_from("=b", first, 18)[0] if first else 0
        if words <= 0:
            return [], []
        asked = struct.pack("I14xb", _LINK, words)
        found = self._call(interface, asked, _LINK_BYTES - len(asked) + 12 * words)
        names = self._strings(interface, _MODES_SET)
        places = (_LINK_BYTES + 4 * words * n for n in (0, 2))
        masks = [int.from_bytes((found or b"")[at:][: 4 * words], "little") for at in places]
        ours, theirs = (
            _MODE.findall(" ".join(name for bit, name in enumerate(names) if mask >> bit & 1))
            for mask in masks
        )
        return ours, theirs

    def _text(self, option: str, interface: str) -> str:
        words = filter(None, ("ethtool", option, interface))
        return self._root.text(f"{FOLDER}/{'_'.join(words)}.txt") or ""

    def _named(self, interface: str) -> tuple[str, ...]:
        if self._size(interface, _STATISTICS_SET) != len(self._names.get(interface, ())):
            self._names[interface] = self._strings(interface, _STATISTICS_SET)
        return self._names.get(interface, ())

    def _strings(self, interface: str, of: int) -> tuple[str, ...]:
        count = self._size(interface, of)
        asked = struct.pack("3I", _STRINGS, of, count)
        found = self._call(interface, asked, _NAME * count) or b""
        texts = (found[12 + _NAME * n :][:_NAME] for n in range(count))
        return tuple(text.split(b"\0")[0].decode(errors="replace").strip() for text in texts)

    def _size(self, interface: str, of: int) -> int:
        found = self._call(interface, struct.pack("2IQ", _SET_SIZE, 0, 1 << of), 4)
        has = found is not None and struct.unpack_from("=Q", found, 8)[0]
        return min(_MOST, struct.unpack_from("=I", found, 16)[0]) if found and has else 0

    def _values(self, interface: str) -> tuple[int, ...]:
        count = len(self._names.get(interface, ()))
        found = self._call(interface, struct.pack("2I", _STATISTICS, count), 8 * count)
        return struct.unpack_from(f"={count}Q", found, 8) if found and count else ()

    def _ask(self, interface: str, command: int, form: str) -> tuple[int, ...] | None:
        length = struct.calcsize(form)
        found = self._call(interface, struct.pack("I", command), length)
        return struct.unpack_from(form, found, 4) if found else None

    def _call(self, interface: str, asked: bytes, more: int) -> bytes | None:
        data = ctypes.create_string_buffer(asked, len(asked) + more)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            try:
                packed = _REQUEST.pack(interface.encode(), ctypes.addressof(data))
                fcntl.ioctl(any_socket, _SIOCETHTOOL, packed)
            except (OSError, struct.error):
                return None
        return data.raw


def _counted(text: str) -> Iterator[tuple[str, int]]:
    for line in text.splitlines():
        name, _, value = line.strip().rpartition(":")
        if name and (found := number(value)) is not None:
            yield name, found


def _sections(text: str) -> tuple[dict[str, int], dict[str, int]]:
    most, _, now = text.partition("Current hardware settings")
    return dict(_counted(most)), dict(_counted(now))
