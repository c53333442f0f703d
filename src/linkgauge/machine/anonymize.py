"""Replaces what tells whose machine it is: the same value by the same pseudonym, everywhere.

Host names, UUIDs, GUIDs, MAC and IP addresses, serial numbers of devices, boards and DIMMs.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable

from .memory import ENTRIES, TABLE, split_table
from .pci_config import serial_number
from .pci_names import PLACES
from .tree import Captured, read_text

_HOSTNAME = "proc/sys/kernel/hostname"
_PROSE = (_HOSTNAME, "proc/cmdline", "linkgauge/")
# Versions, which look like addresses, and text that is the same everywhere.
_AS_IT_IS = ("etc/os-release", "usr/lib/os-release", "proc/sys/kernel/osrelease", *PLACES)
_UUID = r"[0-9a-fA-F]{8}(?:[-_][0-9a-fA-F]{4}){3}[-_][0-9a-fA-F]{12}"
_MAC = r"[0-9a-fA-F]{2}(?:[:-][0-9a-fA-F]{2}){5}"
_LONG_MAC = r"[0-9a-fA-F]{2}(?:[:-][0-9a-fA-F]{2}){7}(?:(?::[0-9a-fA-F]{2}){12})?"
_GUID = r"[0-9a-fA-F]{4}(?::[0-9a-fA-F]{4}){3}"
_V4 = re.compile(r"(?<![\w.])(?<![a-z]-)[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?!\.?\w)")
_V6 = r"(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{0,4}"
_PLAIN = re.compile(
    r"(?<![\w.:])(?:(?<=Serial Number )(?P<serial>[0-9a-f]{2}(?:-[0-9a-f]{2}){7})"
    rf"|(?P<uuid>{_UUID})|(?P<long>{_LONG_MAC})|(?P<mac>{_MAC})"
    rf"|(?P<guid>{_GUID})|(?P<v6>{_V6}))(?![\w:-])"
)
_LOOSE_UUID = re.compile(_UUID)
_SERIAL_WORDS = (
    r"serial(?: number| num| no\.?)?|s/n|\w*guid|\w*uuid|pdi|chassis id|host id|asset tag"
    r"|vendor specific|system specific"
)
_NAMED = re.compile(
    rf"(?im)^(?P<name>.*?(?:\b(?:{_SERIAL_WORDS})|\[(?:SN|V[0-9A-Z]|Y[0-9A-Z])\][^:\n]*)\s*:[ \t]*)"
    r"(?P<value>[^\s,](?:[^\n]*\S)?)"
)
_VERSION = re.compile(r"version|vbios|firmware|driver", re.IGNORECASE)
_NOTHING = {"n/a", "0", "none", "not specified", "unknown", "to be filled by o.e.m.", "[n/a]"}


class Anonymizer:
    """Pseudonyms of one machine, numbered as they come up. `known` are values to replace whatever
    they look like: names of devices by their vendors."""

    def __init__(self, hostname: str, known: Iterable[str] = ()) -> None:
        self._numbers: dict[str, dict[str, int]] = {}
        words = {value: "id" for value in known if not _LOOSE_UUID.search(value)}
        if hostname not in ("", "localhost"):
            words |= dict.fromkeys((hostname.partition(".")[0], hostname), "host")
        self._words = words
        longest = sorted(map(re.escape, words), key=len, reverse=True)
        self._known = re.compile(rf"(?<![\w])(?:{'|'.join(longest)})(?!\w)") if words else None

    def text(self, text: str) -> str:
        """A text with what looks like a name of one thing alone replaced."""
        text = _NAMED.sub(self._value, text)
        text = _PLAIN.sub(self._replacement, text)
        text = "\n".join(
            line if _VERSION.search(line) else _V4.sub(lambda match: self._address(match[0]), line)
            for line in text.split("\n")
        )
        return _LOOSE_UUID.sub(lambda match: self._uuid(match[0]), text)

    def prose(self, text: str) -> str:
        """A text in which names stand, too. Files of sysfs are none: a host may be called node0."""
        text = self.text(text)
        if self._known is None:
            return text
        return self._known.sub(lambda match: self._name(self._words[match[0]], match[0]), text)

    def config_space(self, content: bytes) -> bytes:
        """A PCI function's registers, without its serial number."""
        place = serial_number(content)
        if place is None or not any(content[place]):
            return content
        serial = content[place][::-1].hex()
        number = self._number("serial", serial).to_bytes(8, "little")
        return content[: place.start] + number[: len(content[place])] + content[place.stop :]

    def dimms(self, table: bytes) -> bytes:
        """An SMBIOS table, without serial numbers and asset tags of its DIMMs (7.18)."""
        return b"".join(map(self._dimm, split_table(table)))

    def _dimm(self, structure: bytes) -> bytes:
        length = structure[1]
        if structure[0] != 17 or min(length, len(structure)) < 0x1A:
            return structure
        strings = structure[length:].split(b"\0")
        for index in {structure[0x18], structure[0x19]} - {0}:
            if index <= len(strings):
                strings[index - 1] = self._name("sn", strings[index - 1].hex()).encode()
        return structure[:length] + b"\0".join(strings)

    def _number(self, kind: str, value: str) -> int:
        numbers = self._numbers.setdefault(kind, {})
        return numbers.setdefault(value, len(numbers) + 1)

    def _name(self, kind: str, value: str) -> str:
        if kind == "host":
            value = value.partition(".")[0]
        return f"{kind}-{self._number(kind, value)}"

    def _value(self, match: re.Match[str]) -> str:
        """The value behind a name such as `Serial Number:`; UUIDs are seen as such."""
        value = match["value"]
        plain = value.strip("\"'").lower()
        if plain in _NOTHING or _LOOSE_UUID.search(value) or not re.search(r"\w", plain):
            return match[0]
        if value.startswith("sn-"):
            return match[0]
        return match["name"] + self._name("sn", plain)

    def _uuid(self, value: str) -> str:
        """Keeps the separators, by which kernels and vendors differ."""
        if value.startswith("00000000"):
            return value
        number = f"{self._number('uuid', re.sub('[-_]', '', value).lower()):012x}"
        mark = value[8]
        return mark.join(("00000000", "0000", "4000", "8000", number))

    def _replacement(self, match: re.Match[str]) -> str:
        kind, value = str(match.lastgroup), match[0]
        if kind == "uuid":
            return value  # wherever one stands, it is replaced later
        if kind == "v6":
            return self._address(value)
        digits = re.sub("[:-]", "", value).lower()
        if not digits.strip("0"):
            return value  # as registers without one
        number = self._number(kind, digits)
        if kind == "serial":
            return number.to_bytes(8, "big").hex("-")
        if kind == "guid":
            digits = f"{number:016x}"
            return ":".join(digits[at : at + 4] for at in range(0, 16, 4))
        mark, count = value[2], (len(value) + 1) // 3
        return (2 << 8 * (count - 1) | number).to_bytes(count, "big").hex(mark)

    def _address(self, value: str) -> str:
        """Addresses of documentation (RFC 2544, RFC 3849) for those of machines."""
        try:
            address = ipaddress.ip_address(value)
        except ValueError:
            return value
        if address.is_unspecified or address.is_loopback:
            return value
        number = self._number(f"v{address.version}", address.exploded)
        if address.version == 4:
            return str(ipaddress.IPv4Address("198.18.0.0") + number)
        return str(ipaddress.IPv6Address("2001:db8::") + number)


def anonymize(tree: Captured, known: Iterable[str] = ()) -> Captured:
    """The tree with pseudonyms in files, links and paths. `known`: see Anonymizer."""
    who = Anonymizer(read_text(tree, _HOSTNAME) or "", known)
    return Captured(
        {who.text(path): _content(who, path, tree.files[path]) for path in sorted(tree.files)},
        {who.text(path): who.text(target) for path, target in sorted(tree.links.items())},
        [who.text(path) for path in sorted(tree.folders) if path],
    )


def _content(who: Anonymizer, path: str, content: bytes) -> bytes:
    if path in _AS_IT_IS:
        return content
    if path.endswith("/config"):
        return who.config_space(content)
    if path == TABLE or path.startswith(f"{ENTRIES}/"):
        return who.dimms(content)
    text = content.decode(errors="surrogateescape")
    is_prose = path.startswith(_PROSE)
    return (who.prose(text) if is_prose else who.text(text)).encode(errors="surrogateescape")
