"""Replaces values that identify a machine or its owner, each value always by the same pseudonym.

These values are host names, UUIDs, GUIDs, MAC and IP addresses, ids of containers, and serial
numbers of devices, boards and DIMMs. Text that readers look for stays, so that the rest of a tree
reads the same."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache

import msgspec

from .dimms import ENTRIES, TABLE, split_table
from .pci_config import PLACES, serial_number
from .secrets import OPTION, REMOVED
from .tree import Captured, read_text

_HOSTNAME = "proc/sys/kernel/hostname"
# Versions, which look like addresses, and text that is the same everywhere.
_AS_IT_IS = ("etc/os-release", "usr/lib/os-release", "proc/sys/kernel/osrelease", *PLACES)
_VERSIONS = re.compile(
    r"sys/module/[^/]+/(?:src)?version|usr/local/cuda[^/]*/version\.json|opt/.*/(?:\.info/version"
    r"|version\.json)|linkgauge/(?:software\.json|tools/dkms_status.*)"
)
_DKMS = re.compile(r"/?(?:var/lib/dkms|usr/src)(?:/|$)")
"""Modules, their versions and kernels, as names of folders."""
_FIXED = re.compile(r"/?(?:etc|linkgauge|opt|proc|run|usr|var|sys(?!/fs/cgroup))(?:/|$)")
"""Folders without names chosen by people; control groups are elsewhere."""

_UNITS = "service|scope|slice|socket|mount|swap|metal"
"""What follows a dot without being a domain: systemd's units, clouds' bare-metal machines."""
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
"""Common words: a host with such a name is replaced only where nothing but a name can be."""
_FREE = {"unknown", "notes", "problem", "unavailable"}
_PATHS = {"command", "file", "errors"}
"""Fields of linkgauge's own JSON that hold sentences, and those that hold paths or what paths are
made of."""
_COMMIT = "commit"
"""Which linkgauge it was: an id of the program, not of the machine."""

_HEX = "[0-9a-fA-F]"
_ID = re.compile(
    rf"{_HEX}{{8}}(?:[-_]{_HEX}{{4}}){{3}}[-_]{_HEX}{{12}}"
    rf"|(?:(?<=pod)|(?<!po)(?<!{_HEX})){_HEX}{{32,}}"
)
"""UUIDs and longer ids of containers, also a pod's in the name of its group."""
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
"""Adapters that udev named after their MAC address or GUID."""
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
_NEVER = "(?!)"
"""A pattern that no text matches."""
_VERSION = re.compile(r"version|vbios|firmware|driver", re.IGNORECASE)
_NOTHING = {"n/a", "0", "none", "null", "not specified", "unknown", "to be filled by o.e.m.",
            "[n/a]", REMOVED}  # fmt: skip


class Anonymizer:
    """Pseudonyms of one machine, numbered in order of appearance. `known` are values to replace
    whatever their form, such as vendors' names for single devices; `others` are names of other
    hosts."""

    def __init__(
        self, hostname: str, known: Iterable[str] = (), others: Iterable[str] = ()
    ) -> None:
        self._numbers: dict[str, dict[str, int]] = {}
        self._step = cache(self._replaced)
        ids = sorted({re.escape(one) for one in known if not _ID.search(one)}, reverse=True)
        self._ids = re.compile(rf"(?<!\w)(?:{'|'.join(ids) or _NEVER})(?!\w)")
        short = hostname.partition(".")[0]
        # A name that is a common word is recognized with its domain.
        name = short if is_distinctive(short) else hostname
        self._host = "" if short in ("", "localhost") else self._name("host", name)
        rest = {other for other in others if other.partition(".")[0].lower() != name.lower()}
        names = {*rest, name} if self._host else rest
        self._words = sorted(filter(is_distinctive, names), key=lambda name: (-len(name), name))
        self._hosts = _hosts(self._words)

    def text(self, text: str) -> str:
        """A text in which everything that looks like a unique identifier is replaced."""
        text = _NAMED.sub(self._value, text)
        text = _BY_ADDRESS.sub(self._adapter, text)
        text = _PLAIN.sub(self._address, text)
        text = "\n".join(
            line if _VERSION.search(line) else _DOTTED.sub(self._address, line)
            for line in text.split("\n")
        )
        return _ID.sub(self._id, text)

    def prose(self, text: str) -> str:
        """A text in which names are replaced, too. Not for sysfs, since a host may be called
        node0."""
        return self._named(self.text(self._known(text)))

    def path(self, path: str) -> str:
        """A path in which each step is replaced as it would be alone."""
        return path if _DKMS.match(path) else self.steps(path, named=not _FIXED.match(path))

    def steps(self, path: str, *, named: bool = True) -> str:
        """A path with its steps replaced; `named` says whether people chose the names."""
        return "/".join(self._step(step, named) for step in path.split("/"))

    def _replaced(self, step: str, named: bool) -> str:
        return self.prose(step) if named else self.text(step)

    def hostname(self, text: str) -> str:
        """The content of the file that holds only the host's name."""
        return text.replace(text.strip("\0\n"), self._host) if self._host else text

    def uname(self, text: str) -> str:
        """The output of `uname -a`, whose second word is the host's name, whatever it is."""
        return self.prose(
            re.sub(r"^Linux \S+", f"Linux {self._host}", text) if self._host else text
        )

    def options(self, text: str) -> str:
        """The kernel's command line, in which options have their own names."""
        return OPTION.sub(lambda match: self._option(self.text(match[0])), text)

    def _option(self, text: str) -> str:
        name, equals, value = text.partition("=")
        if not equals or self._hosts.fullmatch(name):
            return self._named(text)
        return f"{name}={self._named(value)}"

    def groups(self, text: str) -> str:
        """The control groups of a process, with the paths at the ends of lines replaced."""
        return re.sub(r"/.*", lambda match: self.steps(match[0]), text)

    def mounts(self, text: str) -> str:
        """The mounts, with their sources and places replaced; kinds and options stay, because
        readers look for them."""
        return re.sub(
            r"(?m)^(\S+) (\S+)(.*)$",
            lambda line: f"{self.steps(line[1])} {self.path(line[2])}{self.text(line[3])}",
            text,
        )

    def version(self, text: str) -> str:
        """The kernel's version, without the person and host that built it."""
        return self.text(re.sub(r"\(\S+@\S+\)", REMOVED, text))

    def own(self, text: str) -> str:
        """linkgauge's own JSON. Names of fields stay, and so do words outside sentences."""
        try:
            value = self._json(msgspec.json.decode(text), free=False)
            return msgspec.json.format(msgspec.json.encode(value)).decode()
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return self.prose(text)  # readers cannot parse it either

    def _json(self, value: object, *, free: bool) -> object:
        if isinstance(value, str):
            return self.prose(value) if free else _ID.sub(self._id, self._known(value))
        if isinstance(value, list):
            return [self._json(part, free=free) for part in value]
        if isinstance(value, dict):
            return {key: self._field(key, part, free) for key, part in value.items()}
        return value

    def _field(self, key: str, value: object, free: bool) -> object:
        if key == _COMMIT:
            return value
        if key in _PATHS and isinstance(value, str):
            return self.steps(value, named=False)
        return self._json(value, free=free or key in _FREE)

    def config_space(self, content: bytes) -> bytes:
        """A PCI function's registers with its serial number replaced."""
        place = serial_number(content)
        if place is None or not any(content[place]):
            return content
        serial = content[place][::-1].hex()
        number = self._number("serial", serial).to_bytes(8, "little")
        return content[: place.start] + number[: len(content[place])] + content[place.stop :]

    def dimms(self, table: bytes) -> bytes:
        """An SMBIOS table with serial numbers and asset tags of its DIMMs replaced (7.18)."""
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
        return numbers.setdefault(value.lower(), len(numbers) + 1)

    def _name(self, kind: str, value: str) -> str:
        return f"{kind}-{self._number(kind, value)}"

    def _known(self, text: str) -> str:
        return self._ids.sub(lambda found: self._name("id", found[0]), text)

    def _named(self, text: str) -> str:
        return self._hosts.sub(
            lambda found: self._name("host", self._words[(found.lastindex or 1) - 1]), text
        )

    def _value(self, match: re.Match[str]) -> str:
        """Replaces the value after a name such as `Serial Number:`, except UUIDs and serial numbers
        in the form of registers, which other patterns recognize."""
        value = match["value"]
        if (
            value.lower() in _NOTHING
            or not re.search(r"\w", value)
            or _ID.search(value)
            or re.fullmatch(_SERIAL, value)
        ):
            return match[0]
        return match["name"] + self._name("sn", value)

    def _id(self, match: re.Match[str]) -> str:
        digits = re.sub("[-_]", "", match[0])
        if len(digits) > 32:
            return self._alike("hex", match[0])
        return self._alike("uuid", match[0], "00000000000040008000")

    def _adapter(self, match: re.Match[str]) -> str:
        digits = match["digits"]
        if len(digits) == 12:
            return match["kind"] + self._alike("mac", digits, "02")
        return match["kind"] + self._alike("guid", digits.zfill(16))

    def _address(self, match: re.Match[str]) -> str:
        kind = str(match.lastgroup)
        if kind in ("v4", "v6"):
            return self._documented(match[0])
        return self._alike(kind, match[0], "02" if kind in ("mac", "long") else "")

    def _alike(self, kind: str, value: str, begin: str = "") -> str:
        """A number in the form of the value, because kernels and vendors use different
        separators."""
        digits = re.sub("[^0-9a-fA-F]", "", value)
        if not digits.strip("0"):
            return value  # as in registers that hold no number
        number = self._number(kind, digits)
        new = iter(f"{begin}{number:0{len(digits) - len(begin)}x}")
        return re.sub(_HEX, lambda _: next(new), value)

    def _documented(self, value: str) -> str:
        """The address replaced by one that is reserved for tests or documentation (RFC 2544, RFC
        3849)."""
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


def is_distinctive(name: str) -> bool:
    """Whether a host's name can be distinguished from words and numbers."""
    return len(name) > 1 and not _COMMON.fullmatch(name) and bool(re.search("[a-zA-Z]", name))


def _hosts(names: list[str]) -> re.Pattern[str]:
    """A pattern that matches the names in either case, each as a group, with the domain after it.
    LVM doubles a dash, and systemd writes it as \\x2d."""
    dash = r"(?:--?|_|\\x2d)"
    either = "|".join(f"({dash.join(map(re.escape, name.split('-')))})" for name in names) or _NEVER
    domain = rf"(?:\.(?!(?:{_UNITS})(?![a-z0-9]))[a-z][a-z0-9-]*)*"
    return re.compile(
        rf"(?:(?<![a-z0-9])|(?<=\\x2d))(?:{either}){domain}(?![a-z0-9])", re.IGNORECASE
    )


def _servers(tree: Captured) -> Iterator[str]:
    """The hosts that appear in mounts and on the kernel's command line, as in `nfs7:/srv`,
    `mon1:6789,mon2:6789:/`, `//nas/share` and `http://repo/x`."""
    for path in ("proc/self/mounts", "proc/mounts", "proc/cmdline"):
        text = read_text(tree, path) or ""
        yield from re.findall(r"(?m)(?:^|:)//(?:[^\s/@]*@)?([\w.-]+)", text)
        for sources in re.findall(r"(?m)^([^\s/=]+):/", text):
            yield from re.findall(r"[a-zA-Z][\w.-]+", sources)


def anonymize(tree: Captured, known: Iterable[str] = ()) -> Captured:
    """The tree with pseudonyms in files, links and paths. Anonymizer describes `known`."""
    who = Anonymizer(read_text(tree, _HOSTNAME) or "", known, _servers(tree))
    # Paths come first, sorted, so that numbered pseudonyms keep their order.
    paths = {
        path: _path(who, path, is_file=path in tree.files)
        for path in sorted({*tree.files, *tree.links, *tree.folders})
    }
    return Captured(
        {paths[path]: _content(who, path, tree.files[path]) for path in sorted(tree.files)},
        {
            paths[path]: target
            if _DKMS.match(path)
            else who.steps(target, named=not _FIXED.match(path))
            for path, target in sorted(tree.links.items())
        },
        [paths[path] for path in sorted(tree.folders) if path],
    )


def _path(who: Anonymizer, path: str, *, is_file: bool) -> str:
    """The path with pseudonyms. The kernel names all files, even in a control group that a person
    named."""
    if not is_file:
        return who.path(path)
    if _DKMS.match(path):
        return path
    folder, slash, name = path.rpartition("/")
    return f"{who.path(folder)}{slash}{who.steps(name, named=False)}"


_TEXTS: tuple[tuple[str, Callable[[Anonymizer, str], str]], ...] = (
    (_HOSTNAME, Anonymizer.hostname),
    (r"proc/cmdline", Anonymizer.options),
    (r"proc/(?:self|[0-9]+)/(?:cgroup|cpuset)", Anonymizer.groups),
    (r"proc/(?:self/|[0-9]+/)?mounts", Anonymizer.mounts),
    (r"proc/version|proc/driver/nvidia/version", Anonymizer.version),
    (r"linkgauge/[^/]*\.json", Anonymizer.own),
    (r"linkgauge/tools/uname.*", Anonymizer.uname),
    (r"linkgauge/.*|sys/(?:class|devices/virtual)/dmi/.*", Anonymizer.prose),
)


def _content(who: Anonymizer, path: str, content: bytes) -> bytes:
    if path in _AS_IT_IS or _VERSIONS.fullmatch(path):
        return content
    if path.endswith("/config"):
        return who.config_space(content)
    if path == TABLE or path.startswith(f"{ENTRIES}/"):
        return who.dimms(content)
    change = next((change for form, change in _TEXTS if re.fullmatch(form, path)), Anonymizer.text)
    text = content.decode(errors="surrogateescape")
    return change(who, text).encode(errors="surrogateescape")
