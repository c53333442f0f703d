"""The command line, called as users do and as quickly as can be."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from contextlib import AbstractContextManager, chdir, nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from linkgauge.cli import main, streams
from worker_threads import drawing_threads, worker_threads

WIDTH = {"COLUMNS": "100"}
HERE = Path()
_ENDS_PROCESSES = re.compile(r"\b(?:crash|hang|lost)\b")
"""Faults that need a worker process of their own."""


def linkgauge(*arguments, cwd=None, **environment):
    """`linkgauge ARGUMENTS` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "linkgauge", *map(str, arguments)],
        capture_output=True, text=True, timeout=120, cwd=cwd, check=False,
        env={**os.environ, **WIDTH, **environment},
    )  # fmt: skip


def alive(mark):
    """The processes that have this in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in path.read_bytes():
                found.append(path.parent.name)
        except OSError:
            continue  # it has ended
    return found


class _Output(io.StringIO):
    def fileno(self):
        return -1  # for `discard`, which is patched


def called(*arguments, cwd=HERE, **environment):
    """The same in this process, for what is not about one: signals and streams are left as they
    are. Starting a process takes longer than most commands."""
    words = ["linkgauge", *map(str, arguments)]
    out, err = _Output(), _Output()
    surroundings = {**WIDTH, **{name: str(value) for name, value in environment.items()}}
    with (
        _workers(words),
        patch.dict(os.environ, surroundings),
        chdir(cwd),
        patch.object(sys, "argv", words),
        patch.object(main, "end_like_ctrl_c", lambda: lambda: 130),
        patch.object(streams, "prepare", _nothing),
        patch.object(streams, "discard", _nothing),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main.main()
        except SystemExit as end:
            return subprocess.CompletedProcess(words, end.code, out.getvalue(), err.getvalue())
    raise AssertionError("it does not exit")


def _nothing(*arguments):
    """In place of what would change this process; a mock takes longer to make."""


def with_processes(monkeypatch) -> None:
    """From now on every worker is a process, as that of users is."""
    monkeypatch.setattr(f"{__name__}._workers", lambda words: nullcontext())


def folder_of(out):
    """The folder of the only run below this one."""
    (journal,) = out.rglob("journal.jsonl")
    return journal.parent


def _workers(words: list[str]) -> AbstractContextManager[None]:
    """Those of a simulated machine need no process, but where a fault ends it; charts need none."""
    ends = "--dry-run" not in words and any(map(_ENDS_PROCESSES.search, words))
    return worker_threads() if "--machine" in words and not ends else drawing_threads()
