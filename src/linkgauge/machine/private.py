"""Creates files for their owner only, whatever the umask: they hold serial numbers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO


def new_private(path: Path) -> BinaryIO:
    """Opens a new file for writing. Raises OSError, also if the file exists."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    os.fchmod(descriptor, 0o600)  # the umask may have taken the owner's own rights
    return os.fdopen(descriptor, "wb")


def private_folder(path: Path) -> None:
    """Creates a folder and its missing parents. Raises OSError if one cannot be created."""
    if path.is_dir():
        return
    private_folder(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)
    path.chmod(0o700)
