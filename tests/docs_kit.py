"""The command lines of README.md and docs/."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from linkgauge.cli.main import COMMANDS

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
TYPED = re.compile(rf"(?:^|[ /$(;\"'])linkgauge ((?:{'|'.join(COMMANDS)})\b.*)$")
SYNOPSIS = re.compile(r"\[|…|\b(?:NAME|TEXT|KIND|OPTION|CONFIG)\b")


def lines_of_code(text):
    """The lines of indented and of fenced blocks, continued ones as one."""
    fenced = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
    text = text.replace("\\\n", " ")
    for block in fenced.findall(text):
        yield from block.splitlines()
    yield from re.findall(r"^ {4,}\S.*", fenced.sub("", text), re.MULTILINE)


def words(typed):
    """The words of a command line, up to where the shell ends it."""
    lexer = shlex.shlex(typed, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    found = []
    for word in lexer:
        if set(word) <= set("|&;<>()"):
            break
        found.append(word)
    return found


def in_blocks(text):
    for line in lines_of_code(text):
        found = TYPED.search(line)
        if found and not SYNOPSIS.search(found[1]):
            quoted = line[: found.start(1)].count("'") % 2  # sh 'linkgauge …' of Jenkins
            yield found[1][:-1] if quoted else found[1]
