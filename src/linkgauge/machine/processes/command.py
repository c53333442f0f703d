"""Starts commands that are not linkgauge's own, and ends them with all their processes."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from linkgauge.machine.tree import ROOT

GRACE_SECONDS = 2.0
"""The seconds that the processes of a command have to end by themselves."""
_LOOK = 0.02


def start(command: str | Sequence[str], **how: Any) -> subprocess.Popen[bytes]:
    """Starts a command in its own process group; a text runs in a shell. `how` goes to Popen."""
    return subprocess.Popen(  # noqa: S603  # what the user has asked for
        command,
        shell=isinstance(command, str),
        stdin=subprocess.DEVNULL,
        process_group=0,
        **how,
    )


def end(leader: subprocess.Popen[bytes]) -> None:
    """Ends the command's process group by SIGTERM (which `sudo` passes on), then by SIGKILL."""
    deadline = time.monotonic() + GRACE_SECONDS
    _signal(leader, signal.SIGTERM)
    _signal(leader, signal.SIGCONT)  # one that is stopped would not notice
    while _signal(leader, 0) and time.monotonic() < deadline:
        time.sleep(_LOOK)
    _signal(leader, signal.SIGKILL)
    for stream in (leader.stdout, leader.stderr):
        if stream is not None:
            stream.close()
    leader.wait()


def _signal(leader: subprocess.Popen[bytes], number: int) -> bool:
    """Signals the command's process group. Returns whether the group still has processes."""
    leader.poll()  # reaps it: what has ended counts as long as it is not reaped
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader.pid, number)
        return True
    return False


def waits_for_terminal(leader: subprocess.Popen[bytes]) -> bool:
    """Whether a process of the command is stopped, as the kernel does if it reads the terminal."""
    for name in ROOT.names("proc"):
        if name.isdecimal():
            fields = (ROOT.text(f"proc/{name}/stat") or "").rpartition(")")[2].split()
            if fields[:1] == ["T"] and fields[2] == str(leader.pid):
                return True
    return False
