"""Replaces host names, UUIDs, GUIDs, MAC and IP addresses, container ids and serial numbers by
pseudonyms. A name always gets the same pseudonym. Words that linkgauge looks for stay."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from itertools import chain
from typing import NamedTuple

from ..kernel_options import REMOVED
from .shared import SharedTexts

_UNITS = "service|scope|slice|socket|mount|swap|metal"
"""Endings after a dot that are no domains, such as those of systemd's units."""
_COMMON = re.compile(
    rf"""{_UNITS}
    # Options of the kernel, and what readers look for in files.
    |root|console|quiet|splash|debug|iommu|passthrough|pt|off|on|ro|rw|linux|localhost|tcp|o2ib
    |proc|sys|dev|fs|cgroup2?|cpuset|memory|systemd
    |docker|kubepods|libpod|podman|crio|containerd|lxc|machine
    |vmware|virtualbox|innotek|parallels|hyperv|microsoft|corporation|virtual|nutanix|xen
    |amazon|ec2|google|compute|engine|alibaba|cloud|openstack|bochs|qemu|kvm
    |dummy|virt|dummy-virt|riscv|virtio|riscv-virtio
    # What tools speak of, and pseudonyms.
    |cpu|gpu|pci|node|device|driver|version|cuda|hip|nvidia|amd|intel|host|id|sn
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Common words. A host whose name is a common word is replaced only in files and fields that hold
nothing but a name."""
_HEX = "[0-9a-fA-F]"
_ID = re.compile(
    rf"{_HEX}{{8}}(?:[-_]{_HEX}{{4}}){{3}}[-_]{_HEX}{{12}}"
    rf"|(?:(?<=pod)|(?<!po)(?<!{_HEX})){_HEX}{{32,}}"
)
"""A pattern of UUIDs and of the longer ids of containers and pods."""
_DEVICE = re.compile(rf"(?:[A-Z]{{3}}-)?(?:{_ID.pattern})")
_V4 = r"(?<![\w.])(?<![a-z]-)[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?!\.?\w)"
_DOTTED = re.compile(
    rf"(?P<v4>{_V4})|(?<![\w.])(?P<mac>{_HEX}{{4}}(?:\.{_HEX}{{4}}){{2}})(?!\.?\w)"
)
_SERIAL = rf"{_HEX}{{2}}(?:-{_HEX}{{2}}){{7}}"
_PLAIN = re.compile(
    rf"(?<![\w.])(?:(?<=Serial Number )(?P<serial>{_SERIAL})"
    rf"|(?P<long>{_HEX}{{2}}(?:[:-]{_HEX}{{2}}){{7}}(?:(?::{_HEX}{{2}}){{12}})?)"
    rf"|(?P<mac>{_HEX}{{2}}(?:[:-]{_HEX}{{2}}){{5}})"
    rf"|(?<!:)(?:(?P<guid>{_HEX}{{4}}(?::{_HEX}{{4}}){{3}})"
    rf"|(?P<v6>(?:{_HEX}{{0,4}}:){{2,7}}{_HEX}{{0,4}})))(?![\w:-])"
)
_BY_ADDRESS = re.compile(
    r"(?<![a-zA-Z0-9])(?P<kind>(?:en|ib|iw|opa|roce|usnic|wl|ww)x)(?P<digits>[0-9a-f]{10,16})"
    r"(?![a-zA-Z0-9])"
)
"""A pattern of network interfaces that udev named by their MAC address or GUID."""
_NAMED = re.compile(
    r"(?i)(?P<name>(?:(?<![a-z])serial(?:[ _-]?(?:number|num|no\.?))?|(?<![a-z0-9])s/?n|[gu]uid"
    r"|\bpdi|(?:chassis|host|machine|unique)[ _-]?id|asset[ _-]?tag|(?:vendor|system) specific"
    r"|\[(?:sn|v[0-9a-z]|y[0-9a-z])\][^:\n]{0,40})"
    # `Serial: x`, `"sn": "x"`, `Serial # : x`, `| Serial | x1 |`; after a bare space a long value.
    r"""["']?[ \t]*\#?[ \t]*(?:[:=][ \t]*["']?|\|[ \t]*(?=[^\s|]*[0-9])"""
    r"|(?<=[ \t])(?=[\w-]*[0-9])(?=[\w-]{7}))"
    r"|\biqn\.[0-9]{4}-[0-9]{2}\.)"
    r"""(?P<value>[^\s,;|"']+(?: [^\s,;|"']+)*)"""
)
_MAIL = re.compile(
    r"(?<![\w.+-])[a-zA-Z][\w.+-]{0,63}@[a-zA-Z][\w-]{0,62}(?:\.[a-zA-Z][\w-]{0,62}){1,8}"
)
_NEVER = "(?!)"
"""A pattern that no text matches."""
_VERSION = re.compile(r"version|vbios|firmware|driver", re.IGNORECASE)
_DOCUMENTED = {4: ipaddress.IPv4Address("198.18.0.0"), 6: ipaddress.IPv6Address("2001:db8::")}
"""Addresses that are reserved for tests or documentation (RFC 2544, RFC 3849)."""
_NOTHING = {"n/a", "0", "none", "null", "not specified", "unknown", "to be filled by o.e.m.",
            "[n/a]", REMOVED}  # fmt: skip


class Anonymizer:
    """Replaces names by numbered pseudonyms such as `host-1`. `known` maps a kind of pseudonym
    (such as `id`) to words that are replaced everywhere. `others` are the names of other hosts."""

    def __init__(
        self, hostname: str, known: Mapping[str, Iterable[str]], others: Iterable[str] = ()
    ) -> None:
        self._numbers: dict[str, dict[str, int]] = {}
        self._once = cache(lambda change, text: change(self, text))
        self.known = {
            word.lower(): self.name(kind, word)
            for kind, words in known.items()
            for word in words
            if not _ID.search(word)
        }
        words = sorted(self.known, key=lambda word: (-len(word), word))
        either = "|".join(map(re.escape, words)) or _NEVER
        self._known = re.compile(rf"(?<![a-z0-9])(?:{either})(?![a-z0-9])", re.IGNORECASE)
        ids = {
            one.lower(): self.ids(one) for one in chain(*known.values()) if _DEVICE.fullmatch(one)
        }
        self.texts = SharedTexts(named=self.known | ids)
        short = hostname.partition(".")[0]
        # A name that is a common word is recognized with its domain.
        name = short if is_distinctive(short) else hostname
        self._host = "" if short in ("", "localhost") else self.name("host", name)
        rest = {other for other in others if other.partition(".")[0].lower() != name.lower()}
        names = {*rest, name} if self._host else rest
        self._names = sorted(filter(is_distinctive, names), key=lambda name: (-len(name), name))
        self.hosts = _hosts(self._names)

    def identifiers(self, text: str) -> str:
        for pattern, change, but in RULES:
            replaced = partial(pattern.sub, partial(change, self))
            text = "\n".join(
                line if but is not None and but.search(line) else replaced(line)
                for line in (text.split("\n") if but is not None else (text,))
            )
        return text

    def ids(self, text: str) -> str:
        """Replaces only UUIDs, and ids of containers and pods (32 or more hexadecimal digits)."""
        return _ID.sub(partial(_id, self), text)

    def prose(self, text: str) -> str:
        """Removes e-mail addresses from prose, and replaces names and identifiers."""
        return self.names(_MAIL.sub(REMOVED, text))

    def names(self, text: str) -> str:
        """Replaces names and identifiers as `prose` does, but keeps e-mail addresses."""
        return self.named(self.identifiers(self.words(text)))

    def named(self, text: str) -> str:
        return self.hosts.sub(
            lambda found: self.name("host", self._names[(found.lastindex or 1) - 1]), text
        )

    def words(self, text: str) -> str:
        return self._known.sub(lambda found: self.known[found[0].lower()], text)

    def hostname(self, text: str) -> str:
        """Replaces the whole text of a file that holds only the host's name."""
        return text.replace(text.strip("\0\n"), self._host) if self._host else text

    def steps(self, path: str, *, named: bool = True) -> str:
        """Replaces identifiers in each component of a path. If `named`, replaces names as well."""
        change = Anonymizer.prose if named else Anonymizer.identifiers
        return "/".join(self._once(change, step) for step in path.split("/"))

    def number(self, kind: str, value: str) -> int:
        numbers = self._numbers.setdefault(kind, {})
        return numbers.setdefault(value.lower(), len(numbers) + 1)

    def name(self, kind: str, value: str) -> str:
        """Returns the pseudonym of a value, such as `host-1`."""
        return f"{kind}-{self.number(kind, value)}"

    def equivalent(self, kind: str, value: str, begin: str = "") -> str:
        """Returns a pseudonym of the value's length and form that begins with `begin`."""
        digits = re.sub("[^0-9a-fA-F]", "", value)
        if not digits.strip("0"):
            return value  # as in registers that hold no number
        number = self.number(kind, digits)
        new = iter(f"{begin}{number:0{len(digits) - len(begin)}x}")
        return re.sub(_HEX, lambda _: next(new), value)


class TextRule(NamedTuple):
    """Replaces matches of `pattern` by what `change` returns, except on lines that match `but`."""

    pattern: re.Pattern[str]
    change: Callable[[Anonymizer, re.Match[str]], str]
    but: re.Pattern[str] | None = None


def _value(who: Anonymizer, match: re.Match[str]) -> str:
    value = match["value"]
    if (
        value.lower() in _NOTHING
        or not re.search(r"\w", value)
        or _ID.search(value)
        or re.fullmatch(_SERIAL, value)
    ):
        return match[0]
    return match["name"] + who.name("sn", value)


def _id(who: Anonymizer, match: re.Match[str]) -> str:
    digits = re.sub("[-_]", "", match[0])
    if len(digits) > 32:
        return who.equivalent("hex", match[0])
    return who.equivalent("uuid", match[0], "00000000000040008000")


def _adapter(who: Anonymizer, match: re.Match[str]) -> str:
    digits = match["digits"]
    if len(digits) == 12:
        return match["kind"] + who.equivalent("mac", digits, "02")
    return match["kind"] + who.equivalent("guid", digits.zfill(16))


def _address(who: Anonymizer, match: re.Match[str]) -> str:
    kind = str(match.lastgroup)
    if kind not in ("v4", "v6"):
        return who.equivalent(kind, match[0], "02" if kind in ("mac", "long") else "")
    try:
        address = ipaddress.ip_address(match[0])
    except ValueError:
        return match[0]
    if address.is_unspecified or address.is_loopback:
        return match[0]
    number = who.number(f"v{address.version}", address.exploded)
    return str(_DOCUMENTED[address.version] + number)


RULES = (
    TextRule(_NAMED, _value),
    TextRule(_BY_ADDRESS, _adapter),
    TextRule(_PLAIN, _address),
    TextRule(_DOTTED, _address, but=_VERSION),
    TextRule(_ID, _id),
)


def is_distinctive(name: str) -> bool:
    """Whether a host's name can be replaced safely: it is neither a common word nor a number."""
    return len(name) > 1 and not _COMMON.fullmatch(name) and bool(re.search("[a-zA-Z]", name))


def _hosts(names: list[str]) -> re.Pattern[str]:
    r"""Matches hosts' names. Their dashes may be written twice (LVM) or as \x2d (systemd)."""
    dash = r"(?:--?|_|\\x2d)"
    either = "|".join(f"({dash.join(map(re.escape, name.split('-')))})" for name in names) or _NEVER
    domain = rf"(?:\.(?!(?:{_UNITS})(?![a-z0-9]))[a-z][a-z0-9-]*)*"
    return re.compile(
        rf"(?:(?<![a-z0-9])|(?<=\\x2d))(?:{either}){domain}(?![a-z0-9])", re.IGNORECASE
    )
