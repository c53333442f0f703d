"""What the tools of the NVLink and RISC-V test suite share: their options, and the table that they
write."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path as File
from typing import TextIO

import msgspec

from linkgauge.cli.tool import Parser, UsageError, size_of, whole
from linkgauge.model.errors import InputError, ResultsError

MOST = 1_000_000
"""Iterations."""


class Options(msgspec.Struct, frozen=True):
    """Bytes of a copy, how many copies, and the table's file; null is stdout."""

    size: int
    iterations: int
    out: str | None


def parse(arguments: Sequence[str], *, size: str, iterations: int) -> Options:
    """Reads options; `size` and `iterations` are the defaults. Raises UsageError."""
    parser = Parser()
    parser.add_argument("--size", default=size)
    parser.add_argument("--iter", default=iterations, type=whole)
    parser.add_argument("--out", default="-")
    given = parser.parse_args(list(arguments))
    if not 1 <= given.iter <= MOST:
        raise UsageError(f"--iter: give 1 to {MOST}")
    if not given.out:
        raise UsageError("--out: give the name of a file")
    out = None if given.out == "-" else given.out
    return Options(size_of("--size", given.size), given.iter, out)


class Table:
    """Where a table goes; to a `file` in place of what it held before."""

    def __init__(self, stream: TextIO, file: File | None) -> None:
        self._stream = stream
        self._file = file

    def write(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str | None:
        """The name of the file that was written; a file is left as it is if there are no rows.
        Raises ResultsError if it cannot be written."""
        rows = list(rows)
        if self._file is not None and not rows:
            return None
        with _writing():
            if self._file is not None and self._file.is_file():
                self._stream.truncate(0)
            writer = csv.writer(self._stream, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(rows)
            self._stream.flush()
        return None if self._file is None else str(self._file)


@contextmanager
def opened_table(out: str | None) -> Iterator[Table]:
    """A table in the file `out`, else on stdout. Opened before measuring, since it may not be
    writable: what the file holds stays until there is something to write, and a new one is removed
    if nothing is. Raises InputError."""
    if out is None:
        yield Table(sys.stdout, None)
        return
    file = File(out)
    is_new = not file.exists()
    try:
        stream = file.open("a", newline="")
    except OSError as error:
        raise InputError(f"cannot write {file}: {error.strerror}") from error
    try:
        yield Table(stream, file)
        with _writing():
            stream.close()
    finally:
        with suppress(OSError):  # that of write() says more
            stream.close()
        if is_new and file.is_file() and not file.stat().st_size:
            file.unlink()


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ResultsError(f"cannot write the table: {error.strerror}") from error
