"""The shell of transcripts: `linkgauge` is called in this process; of the rest there is what
transcripts need to make files and to look at them."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import shlex
import sys
import tarfile
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast
from unittest.mock import patch

from command_kit import called
from linkgauge.backends import sim
from linkgauge.machine import pci_config
from linkgauge.machine.processes.channel import (
    Answer,
    Channel,
    Refused,
    decoder,
    encode,
    error_of,
)
from linkgauge.report.blocks import ChartFigure
from linkgauge.report.render import page_process
from linkgauge.report.render.drawing import Drawer, spec_of

SURROUNDINGS = {
    "COLUMNS": "80",
    "LC_ALL": "C.UTF-8",
    "LINKGAUGE_HISTORY": "none",
    "LINKGAUGE_NO_REPORT": "1",
    "TERM": "dumb",
}


class Done(NamedTuple):
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str = ""


class Shell:
    """Executes lines in this folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "home").mkdir()
        (folder / "data").symlink_to(Path(__file__).parent / "data")
        (folder / "machines").symlink_to(Path(sim.__file__).parent / "machines")

    def run(self, line: str, given: str = "") -> Done:
        """`NAME=VALUE linkgauge …`, piped into other commands, or into a file."""
        errors, code = "", 0
        for piece in _split(line, "|"):
            words, *targets = _split(piece, ">")
            code, given, more = self._one(words_of(words, self._folder), given)
            errors += more
            for target in targets:
                path = self._folder / target.strip()
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(given)
                given = ""
        return Done(code, given, errors)

    def _one(self, words: list[str], given: str) -> Done:
        own = dict[str, str]()
        while "=" in words[0]:
            name, _, value = words.pop(0).partition("=")
            own[name] = value
        name, *arguments = words
        if name == "linkgauge":
            return self._linkgauge(arguments, own, given)
        try:
            return Done(0, BUILTINS[name](self._folder, arguments, given))
        except (LookupError, OSError, TypeError, ValueError) as error:
            return Done(1, "", f"{name}: {type(error).__name__}: {error}\n")

    def _linkgauge(self, words: list[str], own: dict[str, str], given: str) -> Done:
        home = {"HOME": str(self._folder / "home"), "PATH": os.environ["PATH"]}
        stdin = io.TextIOWrapper(io.BytesIO(given.encode()))
        with (
            patch.dict(os.environ, SURROUNDINGS | home | own, clear=True),
            patch.object(sys, "stdin", stdin),
            patch.object(pci_config, "PLACES", ("usr/share/transcripts/pci.ids",)),
            patch.object(Drawer, "__init__", _without_pictures),
            patch.object(Drawer, "draw", _described),
            patch.object(page_process, "Process", _Here),
        ):
            environment = {"COLUMNS": os.environ["COLUMNS"]}
            done = called(*words, cwd=self._folder, **environment)
        return Done(done.returncode, done.stdout, done.stderr)


class _Here:
    """Stands for the process that writes a page: its work is done here, where pictures are
    described."""

    def __init__(self, *_: object, **__: object) -> None:
        self._asked: list[bytes] = []

    def ask(self, command: object) -> None:
        self._asked.append(encode(command))

    def answer(self, kind: type[Any]) -> Any:
        replies: list[bytes] = []
        asked = iter(self._asked)
        channel = SimpleNamespace(receive=lambda: next(asked), send=replies.append)
        page_process.serve(cast("Channel", channel))
        (reply,) = map(decoder(Answer), replies)
        if isinstance(reply, Refused):
            raise error_of(reply.reason)
        return reply.of(kind)

    def kill(self) -> None:
        """There is none."""


def _without_pictures(drawer: Drawer) -> None:
    drawer.missing, drawer._process = None, None


def _described(drawer: Drawer, figures: Sequence[ChartFigure]) -> list[None]:
    """Pictures are described, and not drawn: that takes a process and a second."""
    return [None for figure in figures if spec_of(figure)]


def _split(line: str, by: str) -> list[str]:
    """The line between these characters, but for those in quotes."""
    pieces, quote = [""], ""
    for character in line:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == by:
            pieces.append("")
            continue
        pieces[-1] += character
    return pieces


def words_of(text: str, folder: Path) -> list[str]:
    """A word that is a pattern of existing files stands for them."""
    found: list[str] = []
    for word in shlex.split(text):
        names = folder.glob(word) if "*" in word and "/" in word else ()
        found += sorted(str(one.relative_to(folder)) for one in names) or [word]
    return found


def _cat(folder: Path, names: list[str], given: str) -> str:
    return "".join(_text(folder / name) for name in names) if names else given


def _text(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def _ls(folder: Path, names: list[str], given: str) -> str:
    below = [one for name in names or ["."] for one in sorted((folder / name).rglob("*"))]
    return "".join(f"{one.relative_to(folder)}\n" for one in below if one.is_file())


def _head(folder: Path, words: list[str], given: str) -> str:
    text, most = _cat(folder, words[1:], given), int(words[0].removeprefix("-"))
    return "".join(text.splitlines(keepends=True)[:most])


def _grep(folder: Path, words: list[str], given: str) -> str:
    wanted = re.compile(words[-1])
    keeps = "-v" not in words
    return "".join(
        line for line in given.splitlines(keepends=True) if bool(wanted.search(line)) is keeps
    )


def _sed(folder: Path, words: list[str], given: str) -> str:
    """`sed s/OLD/NEW/ [FILE]`, in which a file is changed."""
    _, old, new, _ = words[0].split(words[0][1])
    if len(words) == 1:
        return re.sub(old, new, given)
    path = folder / words[1]
    path.write_text(re.sub(old, new, path.read_text()))
    return ""


def _cp(folder: Path, words: list[str], given: str) -> str:
    """`cp`, which also unpacks what gzip has packed."""
    source, target = (folder / word for word in words)
    target.parent.mkdir(parents=True, exist_ok=True)
    data = source.read_bytes()
    target.write_bytes(gzip.decompress(data) if source.suffix == ".gz" else data)
    return ""


def _jq(folder: Path, words: list[str], given: str) -> str:
    """`jq .results.0.cells`: what is there, or the same of all entries with `*`; at most one line a
    list of figures. `jq shape`: the names and kinds of all fields, once each."""
    document = json.loads(given)
    if words[0] == "shape":
        return "".join(f"{line}\n" for line in sorted(_shape(document, "")))
    steps = [step for step in words[0].split(".") if step]
    return "".join(f"{_short(one)}\n" for one in _at(document, steps))


def _at(document: Any, steps: list[str]) -> list[Any]:
    if not steps:
        return [document]
    step, *rest = steps
    if step == "*":
        every = document.values() if isinstance(document, dict) else document
        return [found for one in every for found in _at(one, rest)]
    if "," in step:
        return [{name: document.get(name) for name in step.split(",")}]
    return _at(document[int(step)] if isinstance(document, list) else document[step], rest)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else json.dumps(value, indent=2, ensure_ascii=False)


def _shape(value: Any, at: str) -> set[str]:
    if isinstance(value, dict):
        found = {line for name, one in value.items() for line in _shape(one, f"{at}.{name}")}
        return found or {f"{at}: {{}}"}
    if isinstance(value, list):
        return {line for one in value for line in _shape(one, f"{at}[]")} or {f"{at}: []"}
    return {f"{at}: {type(value).__name__}"}


class _Page(HTMLParser):
    """The text of a page: a line a block, the cells of a row side by side."""

    HIDDEN = ("script", "style", "svg", "template")
    BLOCKS = ("p", "li", "tr", "summary", "figcaption", "pre", "dt", "dd", "div", "option", "label")

    def __init__(self) -> None:
        super().__init__()
        self._lines = [""]
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._hidden += tag in self.HIDDEN
        if tag in self.BLOCKS or re.fullmatch(r"h\d", tag):
            self._lines.append("#" * int(tag[1]) + " " if tag[0] == "h" else "")
        elif tag in ("td", "th"):
            self._lines[-1] += " | "

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in self.HIDDEN
        if tag in self.BLOCKS or re.fullmatch(r"h\d", tag):
            self._lines.append("")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self._lines[-1] += data

    def text(self) -> str:
        lines = (" ".join(line.split()) for line in self._lines)
        return "".join(f"{line}\n" for line in lines if line)


def _page(folder: Path, names: list[str], given: str) -> str:
    page = _Page()
    page.feed(_cat(folder, names, given))
    page.close()
    return page.text()


def _tar(folder: Path, words: list[str], given: str) -> str:
    """`tar FILE DIR`: unpacks it there."""
    with tarfile.open(folder / words[0]) as archive:
        archive.extractall(folder / words[1], filter="tar")
    return ""


def _rm(folder: Path, names: list[str], given: str) -> str:
    for name in names:
        (folder / name).unlink()
    return ""


def _cut(folder: Path, words: list[str], given: str) -> str:
    """`cut NAME,…`: these columns of CSV."""
    names = words[0].split(",")
    rows = csv.DictReader(io.StringIO(given))
    return "".join(",".join(row[name] for name in names) + "\n" for row in rows)


BUILTINS: dict[str, Callable[[Path, list[str], str], str]] = {
    "cat": _cat, "cp": _cp, "cut": _cut, "grep": _grep, "head": _head, "jq": _jq, "ls": _ls,
    "page": _page, "rm": _rm, "sed": _sed, "tar": _tar,
}  # fmt: skip
