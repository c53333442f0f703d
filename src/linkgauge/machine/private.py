"""Creates files and folders that only their owner may read, whatever the umask is: serial numbers
and names are in what is known of a machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO


def new_private(path: Path) -> BinaryIO:
    """Creates a file that only its owner can access, and opens it for writing. Raises OSError, or
    FileExistsError if the file exists."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    os.fchmod(descriptor, 0o600)  # the umask may have taken the owner's own rights
    return os.fdopen(descriptor, "wb")


def private_folder(path: Path) -> None:
    """Creates a folder that only its owner can access, and missing parents. Raises OSError."""
    if path.is_dir():
        return
    private_folder(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)
    path.chmod(0o700)
