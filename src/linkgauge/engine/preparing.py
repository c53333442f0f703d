"""Runs a user's command before something is measured."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

from linkgauge.machine.process import environment_with
from linkgauge.model.errors import LinkgaugeError

KEPT = 2000
"""Characters that are kept of what it prints: the last ones."""


def prepare(command: str, environment: Mapping[str, str | None], before: str) -> str:
    """Runs the command by the shell, with these environment variables beside those of this process
    (None: unset), and returns the end of what it printed. Raises LinkgaugeError if it fails; the
    message says what it came `before`."""
    with subprocess.Popen(  # noqa: S602  # the user's own command
        command,
        shell=True,
        env=environment_with(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        try:
            printed = process.communicate()[0].decode(errors="replace").strip()
        finally:  # Ctrl-C ends the command, too
            process.kill()
            process.wait()
    if code := process.returncode:
        ended = f"exit code {code}" if code > 0 else "a signal"
        said = f": {printed.splitlines()[-1]}" if printed else ""
        raise LinkgaugeError(f"--prepare failed before {before} ({ended}){said}")
    return printed[-KEPT:]
