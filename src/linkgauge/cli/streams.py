"""Standard output and error that survive the loss of their reader."""

from __future__ import annotations

import errno
import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _Outliving(io.FileIO):
    """A file whose reader or terminal may go away (`| head`): further output is discarded, and the
    command continues to its own exit code."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "w", closefd=False)
        gone = {errno.EPIPE, errno.EIO} if self.isatty() else {errno.EPIPE}
        self._gone = frozenset(gone)

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if error.errno not in self._gone:
                raise
            discard(self.fileno())
            return memoryview(data).nbytes


def prepare() -> None:
    """If stdout is closed nothing is shown; characters that its encoding lacks are shown as
    question marks; and nothing fails for lack of a reader."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115
    else:
        sys.stdout = _outliving(sys.stdout)
    sys.stderr = _outliving(sys.stderr)


def _outliving(stream: TextIO) -> TextIO:
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    return io.TextIOWrapper(
        io.BufferedWriter(_Outliving(stream.fileno())),
        encoding=stream.encoding,
        errors="replace",
        line_buffering=stream.line_buffering,
    )


def discard(descriptor: int) -> None:
    """From here on output to this descriptor is discarded."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
