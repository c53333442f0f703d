"""What workers, and the libraries in them, print: kept apart from what linkgauge says."""

from __future__ import annotations

import os
import sys
import weakref
from contextlib import suppress
from pathlib import Path

from linkgauge.model.printable import printable

OUTPUT_FILE = "output.log"
"""Beside run.json, if there is any."""


class Output:
    """A file without a name, which workers have as stdout and stderr, until it is known where the
    run is kept. Without a folder, stderr shows it in the end."""

    def __init__(self) -> None:
        self.descriptor = os.memfd_create(OUTPUT_FILE)
        weakref.finalize(self, os.close, self.descriptor)
        self._kept = 0
        self.folder: Path | None = None

    def keep(self) -> None:
        """Writes what has come since the last time, once workers have ended."""
        size = os.fstat(self.descriptor).st_size
        content = os.pread(self.descriptor, size - self._kept, self._kept)
        self._kept += len(content)
        if not content.strip():
            return
        with suppress(OSError):  # the figures are there, whatever becomes of this
            if self.folder is not None:
                with (self.folder / OUTPUT_FILE).open("ab") as file:
                    file.write(content)
            else:
                print(printable(content.decode(errors="replace").rstrip(), "\n"), file=sys.stderr)
