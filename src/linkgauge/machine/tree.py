"""Reads text files below a filesystem root, so that a captured tree reads like the machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

ROOT = Path("/")


class Captured:
    """A machine's files held in memory, by their paths without the first slash."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = files
        self.folders: dict[str, dict[str, None]] = {}
        for path in files:
            folder, _, name = path.rpartition("/")
            # A name that is known has been entered in the folders above it, too.
            while name and name not in (names := self.folders.setdefault(folder, {})):
                names[name] = None
                folder, _, name = folder.rpartition("/")


Root = Path | Captured
"""Where a machine is read from: a folder (this machine's is ROOT) or files held in memory."""


def read_text(root: Root, path: str) -> str | None:
    """The file's text without its last newline; None where it cannot be read."""
    path = path.lstrip("/")
    if isinstance(root, Captured):
        content = root.files.get(path)
        return None if content is None else content.decode(errors="replace").rstrip("\n")
    try:
        return (root / path).read_text(errors="replace").rstrip("\n")
    except OSError:
        return None


def names_in(root: Root, folder: str) -> list[str]:
    """Names of what lies in a folder; none where it cannot be read."""
    if isinstance(root, Captured):
        return list(root.folders.get(folder, ()))
    try:
        return [path.name for path in (root / folder).iterdir()]
    except OSError:
        return []


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """CPUs of the kernel's list format (`0-3,8`), ascending. Garbled pieces are left out."""
    cpus: set[int] = set()
    for piece in text.split(","):
        first, _, last = piece.strip().partition("-")
        if first.isdecimal() and (last.isdecimal() or not last):
            low, high = int(first), int(last or first)
            if high - low < 1 << 16:
                cpus.update(range(low, high + 1))
    return tuple(sorted(cpus))


def parse_meminfo(text: str) -> dict[str, int]:
    """Bytes by name, of /proc/meminfo or a node's meminfo (`Node 0 MemTotal: 1 kB`)."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if words and words[0].isdecimal():
            found[name.split()[-1]] = int(words[0]) * (1024 if words[1:] == ["kB"] else 1)
    return found
