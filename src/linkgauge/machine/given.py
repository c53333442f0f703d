"""Files that a person gives: read up to a size, and what is wrong with their YAML."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from linkgauge.model.errors import InputError

MOST_YAML = 1 << 20
"""Bytes; the largest description that comes with linkgauge has less than a hundredth."""


def read_given(path: Path, most: int, begins: bytes = b"") -> bytes:
    """The content of a file that has at most `most` bytes; of one that does not begin with
    `begins`, only as many as that has. Raises OSError where it cannot be read; InputError where it
    is larger, which of a file is known before it is read, or a pipe that nobody writes to."""
    # Not to wait for a pipe's writer: to wait for what a writer has to say is another matter.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        os.set_blocking(descriptor, True)
        content = file.read(len(begins))
        size = os.fstat(descriptor).st_size
        if content == begins and size <= most:
            content += file.read(most + 1 - len(begins))
        if not content and stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            raise InputError(f"{path} is a pipe that nobody writes to")
    if len(content) > most or (content == begins and size > most):
        raise InputError(f"{path} has more than {most} bytes: give a smaller file")
    return content


def yaml_problem(error: Exception) -> str:
    """What is wrong with YAML that was not read, in a few words."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return getattr(error, "problem", None) or "it has a character that no text has"
