"""Finds the git commit of linkgauge, if it runs from a checkout."""

from __future__ import annotations

import re
from pathlib import Path

from .search_path import text_of

_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_BRANCH = re.compile(r"ref: (refs/[^\s\0]+)")


def commit(package: Path) -> str | None:
    """Returns the checkout's commit; None for a wheel. Uncommitted changes do not show."""
    for folder in package.resolve().parents:
        if (git := folder / ".git").is_dir():
            found = text_of(git / "HEAD").strip()
            if branch := _BRANCH.fullmatch(found):
                found = text_of(git / branch[1]).strip() or _packed(git, branch[1])
            return found if _HASH.fullmatch(found) else None
    return None


def _packed(git: Path, name: str) -> str:
    found = re.search(rf"^(\S+) {re.escape(name)}$", text_of(git / "packed-refs"), re.MULTILINE)
    return found[1] if found else ""
