"""Transcripts: text files of commands and what they print, executed again and compared.

    # A remark, up to a blank line.
    $ linkgauge show a --csv
      what it prints
    ! what it prints on stderr
    ? 2

A line that begins with `> ` continues a command that ends in `\\`, or else is its input. The exit
code is there if it is not 0, and `\\` where the last line has no end. All commands of a file are
executed in one folder, in order. `UPDATE_GOLDEN=1` writes what is printed now.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from typing import NamedTuple

import pytest

from transcript_filters import Filters
from transcript_shell import Done, Shell

HERE = Path(__file__).parent / "transcripts"
UPDATES = bool(os.environ.get("UPDATE_GOLDEN"))
_COMMAND, _INPUT, _REMARK = "$ ", "> ", "#"


class Command(NamedTuple):
    """A command with the lines that stand before its output."""

    remarks: tuple[str, ...]
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """The command alone, on one line."""
        return " ".join(line[2:].removesuffix("\\").strip() for line in self._own)

    @property
    def given(self) -> str:
        """Its input."""
        return "".join(f"{line[2:]}\n" for line in self.lines[len(self._own) :])

    @property
    def _own(self) -> tuple[str, ...]:
        count = 1
        while self.lines[count - 1].endswith("\\"):
            count += 1
        return self.lines[:count]


def transcripts(below: Path = HERE) -> list[str]:
    """The names of all files of a folder."""
    return sorted(str(one.relative_to(below)) for one in below.rglob("*.txt"))


def commands(text: str) -> Iterator[Command]:
    """Those of a transcript."""
    remarks, lines = list[str](), list[str]()
    for line in text.splitlines():
        if lines and not line.startswith(_INPUT):
            yield Command(tuple(remarks), tuple(lines))
            remarks, lines = [], []
        if line.startswith((_COMMAND, _INPUT)):
            lines.append(line)
        elif line.startswith(_REMARK):
            remarks.append(line)
    if lines:
        yield Command(tuple(remarks), tuple(lines))


def shown(command: Command, done: Done) -> str:
    """A command's part of a transcript."""
    printed = [f"  {line}".rstrip() for line in done.out.split("\n")]
    if done.out.endswith("\n") or not done.out:
        printed.pop()
    else:
        printed[-1] += "\\"
    complaints = [f"! {line}".rstrip() for line in done.err.splitlines()]
    code = [f"? {done.code}"] if done.code else []
    return "\n".join([*command.remarks, *command.lines, *printed, *complaints, *code]) + "\n"


def executed(text: str, folder: Path) -> str:
    """The transcript as its commands make it now."""
    shell, filters = Shell(folder), Filters(folder)
    parts: list[str] = []
    for command in commands(text):
        done = shell.run(command.text, command.given)
        parts.append(shown(command, Done(done.code, filters(done.out), filters(done.err))))
    return "\n".join(parts)


def check(path: Path, folder: Path) -> None:
    """Fails with the difference, or writes the file anew."""
    expected = path.read_text()
    found = executed(expected, folder)
    if UPDATES:
        path.write_text(found)
        return
    if found != expected:
        lines = (one.splitlines() for one in (expected, found))
        difference = unified_diff(*lines, str(path), "what is printed now", lineterm="")
        pytest.fail("\n".join(difference), pytrace=False)
