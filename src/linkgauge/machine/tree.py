"""Reads files below a root. Symbolic links never lead outside it, as with chroot."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

NODES = "sys/devices/system/node"
PCI = "sys/bus/pci/devices"
INTERFACES = "sys/class/net"
ADDRESS = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
"""The address of a PCI function."""
_MOST_LINKS = 40
"""The largest number of links in one path, as in Linux. More links count as a loop."""
_MOST_CPUS = 1 << 16


class Root(ABC):
    """A machine's files, on disk or in memory. Paths may begin with a slash."""

    @abstractmethod
    def content(self, path: str) -> bytes | None:
        """Returns the file's bytes, or None if it cannot be read."""

    @abstractmethod
    def listed(self, folder: str) -> list[str] | None:
        """Returns the names in a folder, or None if it cannot be read."""

    @abstractmethod
    def link_target(self, path: str) -> str | None:
        """Returns a link's target as written, or None if there is no link."""

    @abstractmethod
    def exists(self, real: str) -> bool:
        """Whether there is a file or a folder at a path that contains no links."""

    @abstractmethod
    def is_folder(self, path: str) -> bool: ...

    def text(self, path: str) -> str | None:
        """Returns the text without newlines and zero bytes at its end, None if unreadable."""
        content = self.content(path)
        return None if content is None else content.decode(errors="replace").rstrip("\n\0")

    def line(self, path: str) -> str | None:
        """Returns the text without blanks around it, None if it is empty or unreadable."""
        return (self.text(path) or "").strip() or None

    def number(self, path: str) -> int | None:
        return number(self.text(path))

    def node(self, folder: str) -> int | None:
        """Returns the NUMA node of a device, or None if the kernel does not know it."""
        node = self.number(f"{folder}/numa_node")
        return None if node is None or node < 0 else node

    def cpu_list(self, *places: str) -> tuple[int, ...]:
        """Returns the CPUs (or NUMA nodes) in the first of these files that lists some."""
        found = (parse_cpu_list(self.text(place) or "") for place in places)
        return next(filter(None, found), ())

    def cpus(self, listed: str, masked: str) -> tuple[int, ...]:
        """Returns the CPUs in `listed` (list format), or else in `masked` (mask format)."""
        return self.cpu_list(listed) or parse_cpu_mask(self.text(masked) or "")

    def choice(self, place: str) -> str | None:
        """Returns the choice that the kernel marks: `always [madvise] never` is madvise."""
        match = re.search(r"\[(\w+)\]", self.text(place) or "")
        return match[1] if match else None

    def names(self, folder: str) -> list[str]:
        return self.listed(folder) or []

    def numbered(self, folder: str, begin: str) -> tuple[int, ...]:
        """Returns the sorted numbers after `begin` in the names of a folder: 0 for `cpu0`."""
        found = (re.fullmatch(rf"{begin}([0-9]{{1,6}})", name) for name in self.names(folder))
        return tuple(sorted(int(match[1]) for match in found if match))

    def link_name(self, path: str) -> str | None:
        """Returns the last name of a link's target. No folder in `path` may be a link."""
        target = self.link_target(path.lstrip("/"))
        if target is None:
            return None
        # A name on disk may not be valid text.
        name = target.rstrip("/").rpartition("/")[2]
        return name.encode(errors="surrogateescape").decode(errors="replace")

    def resolve(self, path: str) -> str | None:
        """Returns the path behind all links, without leading slash; None if it does not exist."""
        real = self.followed(path)
        return real if real is not None and self.exists(real) else None

    def followed(self, path: str) -> str | None:
        """Returns the path behind all links, even if nothing is there; None if links loop."""
        here: list[str] = []
        ahead = path.split("/")[::-1]
        links = 0
        while ahead:
            name = ahead.pop()
            if name == "..":
                here = here[:-1]
            elif name not in ("", "."):
                target = self.link_target("/".join([*here, name]))
                if target is None:
                    here.append(name)
                    continue
                links += 1
                if links > _MOST_LINKS:
                    return None
                here = [] if target.startswith("/") else here
                ahead.extend(target.split("/")[::-1])
        return "/".join(here)


@dataclass(frozen=True)
class Disk(Root):
    folder: Path

    def content(self, path: str) -> bytes | None:
        place = self._place(path.lstrip("/"))
        with suppress(OSError, ValueError):
            # Reading a captured pipe would block forever.
            if place and (self == ROOT or os.path.isfile(place)):  # noqa: PTH113
                # Counters are read before and after each cell; Path takes several times as long.
                with open(place, "rb", buffering=0) as file:  # noqa: PTH123
                    return file.read()
        return None

    def listed(self, folder: str) -> list[str] | None:
        place = self._place(folder)
        with suppress(OSError, ValueError):
            return os.listdir(place) if place else None  # noqa: PTH208
        return None

    def link_target(self, path: str) -> str | None:
        with suppress(OSError, ValueError):
            # Asked for each step of each path; Path takes seven times as long.
            return os.readlink(f"{self.folder}/{path}")  # noqa: PTH115
        return None

    def exists(self, real: str) -> bool:
        return os.path.lexists(f"{self.folder}/{real}")

    def is_folder(self, path: str) -> bool:
        return (self.folder / path).is_dir()

    def _place(self, path: str) -> str | None:
        real = path if self == ROOT else self.resolve(path)
        return None if real is None else f"{self.folder}/{real}"


ROOT = Disk(Path("/"))
"""This machine."""


class Captured(Root):
    """The files of a captured machine in memory, by paths without a leading slash."""

    def __init__(
        self,
        files: Mapping[str, bytes],
        links: Mapping[str, str] | None = None,
        empty: Iterable[str] = (),
    ) -> None:
        """Takes symbolic `links` with their targets, and folders that may be `empty`."""
        self.files = files
        self.links: Mapping[str, str] = links or {}
        folders: dict[str, dict[str, None]] = {path: {} for path in empty}
        for path in chain(files, self.links, tuple(folders)):
            folder, _, name = path.rpartition("/")
            # A known name has already been entered in the folders above it.
            while name and name not in (names := folders.setdefault(folder, {})):
                names[name] = None
                folder, _, name = folder.rpartition("/")
        self.folders: Mapping[str, Iterable[str]] = folders

    def content(self, path: str) -> bytes | None:
        path = path.lstrip("/")
        return self.files.get(path if path in self.files else self.resolve(path) or "")

    def listed(self, folder: str) -> list[str] | None:
        if folder not in self.folders:
            # Not whether it exists: of what is no folder, a capture would keep the content.
            folder = self.followed(folder) or folder
        names = self.folders.get(folder)
        return None if names is None else list(names)

    def link_target(self, path: str) -> str | None:
        return self.links.get(path)

    def exists(self, real: str) -> bool:
        return real in self.files or real in self.folders

    def is_folder(self, path: str) -> bool:
        return path in self.folders


def number(text: str | None) -> int | None:
    match = re.fullmatch(r"\s*(-?[0-9]{1,18})\s*", text or "", re.ASCII)
    return int(match[1]) if match else None


def hexadecimal(text: str | None, digits: int = 8) -> int | None:
    """Returns the number in a text such as `0x10de`; None for another text, or for more digits."""
    match = re.fullmatch(rf"0x([0-9a-fA-F]{{1,{digits}}})", text or "")
    return int(match[1], 16) if match else None


def least(*values: int | None) -> int | None:
    return min((value for value in values if value is not None), default=None)


def labelled(text: str, label: str) -> str | None:
    """Returns the text after `label:` on the first line that begins so; None if no line does."""
    match = re.search(rf"^{label}[ \t]*:(.*)$", text, re.MULTILINE)
    return match[1].strip() if match else None


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """Returns the CPUs in the kernel's list format (`0-3,8`), sorted. Ignores unreadable parts."""
    cpus: set[int] = set()
    for piece in text.split(","):
        first, _, last = piece.strip().partition("-")
        low, high = number(first), number(last or first)
        if low is not None and high is not None and high - low + len(cpus) < _MOST_CPUS:
            cpus.update(range(low, high + 1))
    return tuple(sorted(cpus))


def parse_cpu_mask(text: str) -> tuple[int, ...]:
    """Returns the CPUs in a kernel's mask, `0000,00000011`. The last group is for CPUs 0 to 31."""
    groups = text.strip().split(",")
    if len(groups) > 1 << 11 or not all(re.fullmatch(r"[0-9a-fA-F]{1,8}", one) for one in groups):
        return ()
    mask = int("".join(group.zfill(8) for group in groups), 16)
    return tuple(cpu for cpu in range(mask.bit_length()) if mask >> cpu & 1)


def ranges(numbers: Iterable[int]) -> str:
    """Returns numbers in the kernel's list format: `0-3,8`."""
    known = set(numbers)
    starts = sorted(n for n in known if n - 1 not in known)
    ends = sorted(n for n in known if n + 1 not in known)
    return ",".join(
        f"{first}-{last}" if last > first else str(first)
        for first, last in zip(starts, ends, strict=True)
    )


def parse_meminfo(text: str) -> dict[str, int]:
    """Returns the values of /proc/meminfo, or of a NUMA node's meminfo: bytes, or page counts."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        size = number(words[0]) if words and name.strip() else None
        if size is not None and size >= 0:
            found[name.split()[-1]] = size * (1024 if words[1:] == ["kB"] else 1)
    return found
