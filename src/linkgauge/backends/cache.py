"""Where the backend keeps what it can make again: compiled kernels, tuned settings."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def cache_folder() -> Path:
    """Where linkgauge keeps what it can make again: $XDG_CACHE_HOME, else ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME") or ""
    # The specification says that a relative path is to be ignored.
    if base.startswith("/"):
        return Path(base) / "linkgauge"
    try:
        return Path.home() / ".cache" / "linkgauge"
    except RuntimeError:  # a user without a home: nothing is kept
        return Path("/nonexistent/linkgauge")


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file whole or not at all: several processes may write it at once. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
