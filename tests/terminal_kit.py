"""Commands on a terminal: what arrives there, and what a person sees."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from contextlib import suppress
from typing import NamedTuple

import pyte

LINES = 30
LIMIT = 120.0
BAR = re.compile(r" left [-\d]+:[-\d]{2}:[-\d]{2}")
_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
GARBAGE = re.compile("\ufffd|\x1b|\\[[0-9;]*m|\\[[0-9]*[KAG]\\b|Traceback")
"""What no person should see: replacement characters, rests of escape sequences, a traceback."""


class Shown(NamedTuple):
    """What a command wrote to a terminal, how it ended, and what was on the screen: whenever
    something was written (`bars`, those with a progress bar) and at the end, with what has scrolled
    away (`last`)."""

    code: int
    written: str
    bars: list[str]
    last: str

    @property
    def lines(self) -> list[str]:
        """The lines that were written, without sequences that control the terminal."""
        return re.split(r"[\r\n]+", _SEQUENCE.sub("", self.written))

    @property
    def had_bar(self) -> bool:
        """Whether a bar was written, however soon it was gone."""
        return any(map(BAR.search, self.lines))


def on_terminal(
    *arguments, columns=100, narrowed=None, when="", typed=b"", cwd=None, **environment
) -> Shown:
    """`linkgauge ARGUMENTS` on a terminal. As soon as a bar shows `when`, the window becomes
    `narrowed` columns wide, and the bytes are `typed`."""
    near, far = pty.openpty()
    _resize(near, columns)
    screen = pyte.HistoryScreen(columns, LINES, history=100_000, ratio=1)
    stream = pyte.ByteStream(screen)
    surroundings = {name: text for name, text in os.environ.items() if name != "COLUMNS"}
    surroundings |= {"TERM": "xterm-256color", "LINKGAUGE_HISTORY": "none"}
    process = subprocess.Popen(
        [sys.executable, "-m", "linkgauge", *map(str, arguments)],
        stdin=far, stdout=far, stderr=far, cwd=cwd, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        env=surroundings | {name: str(value) for name, value in environment.items()},
    )  # fmt: skip
    os.close(far)
    written, bars, waits = bytearray(), [], bool(narrowed or typed)
    try:
        for some in _read(near, time.monotonic() + LIMIT):
            written += some
            stream.feed(some)
            shown = "\n".join(screen.display)
            if BAR.search(shown):
                bars.append(shown)
                if waits and when in shown:
                    waits = False
                    if narrowed:
                        _resize(near, narrowed)
                    os.write(near, typed)
        code = process.wait(LIMIT)
    finally:
        process.kill()
        process.wait()
        os.close(near)
    above = ["".join(line[at].data for at in range(columns)) for line in screen.history.top]
    last = "\n".join(line.rstrip() for line in (*above, *screen.display)).strip()
    return Shown(code, written.decode(), bars, last)


def _resize(terminal: int, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, columns, 0, 0))


def _read(terminal: int, end: float):
    """Yields what is written until the last process closes the terminal."""
    with suppress(OSError):  # EIO at the end
        while select.select([terminal], [], [], max(0.0, end - time.monotonic()))[0]:
            if not (some := os.read(terminal, 1 << 16)):
                return
            yield some
        raise TimeoutError(f"not ended after {LIMIT:.0f} s")
