"""Finds the git commit of linkgauge, if it runs from a checkout."""

from __future__ import annotations

import re
from pathlib import Path

from .tree import Disk, Root

_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def commit(package: Path) -> str | None:
    """Returns the checkout's commit; None for a wheel. Uncommitted changes do not show."""
    for folder in package.resolve().parents:
        if (folder / ".git").is_dir():
            return _head(Disk(folder / ".git"))
    return None


def _head(git: Root) -> str | None:
    head = git.text("HEAD") or ""
    name = head.removeprefix("ref: ") if head.startswith("ref: ") else None
    found = head if name is None else git.text(name) or _packed(git, name)
    return found if found and _HASH.fullmatch(found) else None


def _packed(git: Root, name: str) -> str | None:
    found = re.search(rf"^(\S+) {re.escape(name)}$", git.text("packed-refs") or "", re.MULTILINE)
    return found[1] if found else None
