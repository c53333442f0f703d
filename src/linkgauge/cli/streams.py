"""Keeps commands running after the reader of their output ends, and hides control characters."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from linkgauge.machine.processes.launch import is_heard
from linkgauge.model.printable import printable, unwrapped

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _Outliving(io.FileIO):
    """An output file that discards further output once its reader (`| head`) or terminal has ended
    or, if `only_messages` is true, after any error, such as a full disk."""

    def __init__(self, descriptor: int, *, only_messages: bool) -> None:
        super().__init__(descriptor, "w", closefd=False)
        gone = {errno.EPIPE, errno.EIO} if self.isatty() else {errno.EPIPE}
        self._gone = None if only_messages else frozenset(gone)

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if self._gone is not None and error.errno not in self._gone:
                raise
            discard(self.fileno())
            return memoryview(data).nbytes


def prepare() -> None:
    """Makes stdout and stderr outlive their reader, and print `?` for unencodable characters."""
    sys.stdout = _outliving(sys.stdout)
    sys.stderr = _outliving(sys.stderr, only_messages=True)


def _outliving(stream: TextIO | None, *, only_messages: bool = False) -> TextIO:
    if stream is None:
        return Path(os.devnull).open("w")
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_Outliving(stream.fileno(), only_messages=only_messages)),
        encoding=stream.encoding,
        errors="replace",
        line_buffering=stream.line_buffering,
    )


class _Printable:
    """A stream that removes control characters. rich, which removes them itself, bypasses it."""

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        return self.rich_proxied_file.write(printable(text, "\n\t"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


@contextmanager
def printing() -> Iterator[None]:
    """Removes control characters from all printed text while this block runs."""
    out, err = _Printable(sys.stdout), _Printable(sys.stderr)
    with redirect_stdout(cast("TextIO", out)), redirect_stderr(cast("TextIO", err)):
        yield


def complain(message: str) -> None:
    """Prints a message on stderr. If several ranks run one command, only rank 0 prints it."""
    if is_heard(sys.argv):
        print(f"linkgauge: {printable(message, chr(10))}", file=sys.stderr, flush=True)


def command(line: str, stream: TextIO) -> None:
    """Prints a line that a CI system takes as a command. The caller must escape its parts."""
    print(line, file=unwrapped(stream))


def discard(descriptor: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
