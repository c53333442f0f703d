"""Reads files that a user names, up to a maximum size, and explains YAML errors."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

import msgspec

from linkgauge.model.errors import InputError

MOST_YAML = 1 << 20
"""The largest size of a YAML file in bytes."""

_CHUNK = 1 << 24


def read_given(path: Path, most: int, begins: bytes = b"") -> bytes:
    """Reads a file that a user names. `most` is the largest size in bytes. `begins` are the bytes
    with which the file should begin; of any other file, only the first bytes are read. Raises
    OSError if the file cannot be read, and InputError if it is too large or is a pipe without a
    writer."""
    # Not to wait for a pipe's writer: to wait for what a writer has to say is another matter.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    with os.fdopen(descriptor, "rb") as file:
        os.set_blocking(descriptor, True)
        content = file.read(len(begins))
        kind, size = os.fstat(descriptor).st_mode, os.fstat(descriptor).st_size
        if content == begins and size <= most:
            # Of a file, all in one piece: a second copy of a large one takes as much again.
            if stat.S_ISREG(kind):
                file.seek(0)
                content = b""
            content += _read(file, most + 1 - len(content), max(size, _CHUNK))
        if not content and stat.S_ISFIFO(kind):
            raise InputError(f"{path} is a pipe that no program writes to")
    if len(content) > most or (content == begins and size > most):
        raise InputError(f"{path} has more than {most} bytes: give a smaller file")
    return content


def _read(file: BinaryIO, most: int, chunk: int) -> bytes:
    parts = []
    while most > 0 and (part := file.read(min(most, chunk))):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


def encodable(tree: object) -> object:
    """Checks that a YAML document can be written again, and returns it. Raises UnicodeEncodeError
    for half of a surrogate pair, RecursionError if the document contains itself, and TypeError for
    a key that is no text."""
    msgspec.json.encode(tree)
    return tree


def yaml_problem(error: Exception) -> str:
    """Returns a short explanation why a YAML text could not be read."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, TypeError):
        return "a key is no text: quote on, off, yes and no"
    if isinstance(error, UnicodeEncodeError):
        return "it has half of a character"
    return getattr(error, "problem", None) or "it has a control character"
