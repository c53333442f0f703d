"""How compiled kernels and tuned settings are cached on disk. A lost file is made again."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TypeVar

import msgspec

Value = TypeVar("Value")


def cache_folder() -> Path:
    """Returns $XDG_CACHE_HOME/linkgauge, or ~/.cache/linkgauge if that is no absolute path."""
    base = os.environ.get("XDG_CACHE_HOME") or ""
    # The XDG specification requires relative paths to be ignored.
    if base.startswith("/"):
        return Path(base) / "linkgauge"
    try:
        return Path.home() / ".cache" / "linkgauge"
    except RuntimeError:  # a user without a home: nothing is cached
        return Path("/nonexistent/linkgauge")


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file so that readers see its old or new content, never a part. Raises OSError."""
    import tempfile

    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def tuned_file(words: str, folder: Path | None = None) -> Path:
    slug = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")
    return (folder or cache_folder() / "tuned") / f"{slug}.json"


def load(path: Path, of: type[dict[str, Value]]) -> dict[str, Value]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=of)
    except (OSError, ValueError, RecursionError, msgspec.MsgspecError):
        return {}


def store(path: Path, values: dict[str, Value]) -> None:
    write_whole(path, msgspec.json.format(msgspec.json.encode(values), indent=2) + b"\n")
