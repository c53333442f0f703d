"""The folders in which Python looks for packages. Plug-ins cannot shadow what this file imports."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.machinery import PathFinder
from pathlib import Path

GROUP = "linkgauge.rooms"
"""The group of entry points of plug-ins."""
_LAST: list[str] = []
"""The folders that were moved to the end."""


def plugins_last() -> None:
    """Moves plug-ins' folders of PYTHONPATH to the end of `sys.path`, where they shadow nothing."""
    for named in filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)):
        folder = os.path.abspath(named)  # noqa: PTH100  # as Python makes it, links included
        holds = any(entry_points(Path(folder))) and not Path(folder, "linkgauge").is_dir()
        if holds and folder in sys.path:
            sys.path.remove(folder)
            sys.path.append(folder)
            _LAST.append(folder)


def entry_points(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yields the file of entry points, and its text, for each plug-in in a folder."""
    with suppress(OSError):
        for file in folder.glob("*-info/entry_points.txt"):
            if f"[{GROUP}]" in (text := text_of(file)):
                yield file, text


def hiding(about: Path) -> Iterator[Path]:
    """Yields a plug-in's modules that shadow other packages. `about` is the plug-in's metadata."""
    folder, record = about.parent, text_of(about / "RECORD")
    for file in sorted(folder.iterdir()) if str(folder) in _LAST else ():
        if file.suffix in ("", ".py") and (not record or file.name in record):
            found = PathFinder.find_spec(file.stem)
            if found and found.origin and folder not in Path(found.origin).parents:
                yield file


def text_of(file: Path) -> str:
    """Returns a file's text, or no text if it is unreadable. Replaces bytes that are not UTF-8."""
    with suppress(OSError):
        return file.read_text("utf-8", "replace")
    return ""
