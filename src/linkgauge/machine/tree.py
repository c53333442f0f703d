"""Reads text files below a filesystem root, so that a captured tree reads like the machine."""

from __future__ import annotations

from pathlib import Path

ROOT = Path("/")


def read_text(root: Path, path: str) -> str | None:
    """The file's text without its last newline; None where it cannot be read."""
    try:
        return (root / path.lstrip("/")).read_text(errors="replace").rstrip("\n")
    except OSError:
        return None


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
