"""Readers of tools' output, a file per group of tools. READERS maps each to words to look for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import pairwise
from pkgutil import iter_modules
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from linkgauge.rooms.judge_files.decorations import WAYS
from linkgauge.rooms.judge_files.facts import Facts, Failure, Log, merged
from linkgauge.rooms.judge_files.failures import FAILED_PATH
from linkgauge.rooms.judge_files.lines import MOST_LINES, bare, by_label, plain, words_in
from linkgauge.rooms.judge_files.products import shipped
from linkgauge.rooms.judge_files.scan import Reader, TextScan


@cache
def readers() -> tuple[Mapping[Reader, tuple[str, ...]], ...]:
    names = sorted(module.name for module in iter_modules(__path__))
    return tuple(import_module(f"{__name__}.{name}").READERS for name in names)


def _scans(lines: Sequence[str]) -> Iterator[list[TextScan]]:
    """Yields what each group of readers finds. Skips readers none of whose words is in the text."""
    text = "\n".join(lines)
    for group in readers():
        found = list[TextScan]()
        for reader, words in group.items():
            if any(word in text for word in words):
                found.append(TextScan(lines))
                reader(found[-1])
        if own := [scan for scan in found if scan.logs or scan.reported]:
            yield own


@cache
def _known_lines(tool: str) -> re.Pattern[str]:
    known: dict[str, tuple[str, ...]] = shipped("known_lines.yml", dict[str, tuple[str, ...]])
    return re.compile("|".join(known.get(tool, ["(?!)"])))


_SHELL = re.compile(
    r"(?m)^ {0,4}(?:\(\S{1,40}\) )?\[?[\w.-]{1,32}@([\w.-]{1,64})[: ][^\n$#%]{0,100}[$#%] "
    r"|^([\w.-]{1,64})\n *Device 0: "  # as nvbandwidth names its host
)


class ReadText(msgspec.Struct, frozen=True):
    """What a text, or one host's part of it, says. `lines` is the number of lines that are not
    empty. `understood` is the number of lines that were read, or that another rank wrote. `missed`
    is the first of the others. `host` is the lines' prefix if several hosts wrote figures. `shell`
    is the host in a shell's prompt. `machines` has the lines at which other machines begin."""

    name: str
    logs: tuple[Log, ...]
    facts: tuple[Facts, ...]
    lines: int
    understood: int
    missed: str = ""
    host: str = ""
    shell: str = ""
    machines: tuple[int, ...] = ()

    @property
    def has_figures(self) -> bool:
        return any(log.figures or log.failures for log in self.logs)


def read_text(name: str, text: str) -> list[ReadText]:
    """Reads a text: one ReadText for each host that wrote figures, or one for all. Never raises."""
    text, left = plain(text)
    lines, read = _undecorated(name, text.split("\n"))
    if left or not read:
        said = f"{left} lines in the middle left out: {MOST_LINES} lines of a text are read"
        read = _read_labelled(name, lines, (said,) if left else ())
    if len(read) == 1 and (starts := next(iter(read.values())).machines):
        ends = pairwise((0, *starts, len(lines)))
        parts = {n: lines[begin:end] for n, (begin, end) in enumerate(ends)}
        read = {f"machine {n + 1}": _read(name, own, ()) for n, own in parts.items()}
    several = {label: one for label, one in read.items() if one.has_figures}
    if len(several) > 1:
        return [replace(one, host=label) for label, one in several.items()]
    reported = next(iter(several or read))
    others = sum(one.lines for label, one in read.items() if label != reported)
    one = read[reported]
    return [replace(one, lines=one.lines + others, understood=one.understood + others)]


_SAMPLE = 1000
"""The most lines from a text's beginning, and from its end, that steps are tried on."""


def _undecorated(name: str, lines: list[str]) -> tuple[list[str], dict[str, ReadText]]:
    """Returns the lines, without their prefixes and the like if more can be read so. Also returns
    what was read, if no line was left untried."""
    lines = [bare(line) for line in lines]
    are_all = len(lines) <= 2 * _SAMPLE
    tried = lines if are_all else lines[:_SAMPLE] + lines[-_SAMPLE:]
    known = _known_of(name, tried)
    for way in WAYS if known.missed or not known.figures else ():
        best = None
        for step in way(tried):
            other = step(tried)
            found = _known_of(name, other) if other != tried else known
            if found.is_more_than(known):
                best, known = step, found
        if best is not None:
            tried = best(tried)
            lines = tried if are_all else best(lines)
    return lines, known.read if are_all else {}


class _Known(NamedTuple):
    figures: int
    understood: int
    missed: int
    read: dict[str, ReadText]

    def is_more_than(self, other: _Known) -> bool:
        """Whether this is better than `other`: figures instead of none, or fewer missed lines, also
        as a share, and more of the rest. More figures alone may be wrong ones."""
        is_first = self.figures > other.figures == 0
        is_less = self.missed < other.missed
        is_less = is_less and self.missed * other.understood < other.missed * self.understood
        return is_first or (is_less and self[:2] > other[:2])


def _known_of(name: str, lines: list[str]) -> _Known:
    read = _read_labelled(name, lines, ())
    logs = [log for one in read.values() for log in one.logs]
    figures = sum(len(log.figures) + len(log.failures) for log in logs)
    understood = sum(one.understood for one in read.values())
    missed = sum(one.lines for one in read.values()) - understood
    return _Known(figures, understood, missed, read)


def _read_labelled(name: str, lines: list[str], remarks: tuple[str, ...]) -> dict[str, ReadText]:
    """Reads each host's lines, or all as they are if nothing else is understood: what seemed to be
    hosts may be names of fields."""
    found = {label: _read(name, own, remarks) for label, own in by_label(lines).items()}
    if "" in found or any(one.understood for one in found.values()):
        return found
    return {"": _read(name, lines, remarks)}


def _read(name: str, lines: Sequence[str], remarks: tuple[str, ...]) -> ReadText:
    found = list(_scans(lines))
    logs = [log for group in found for scan in group for log in scan.logs]
    own = TextScan(lines)
    paths = tuple(dict.fromkeys(Failure(path[1], path[2]) for _, path in own.each(FAILED_PATH)))
    known = own.used.union(*(scan.used for group in found for scan in group))
    shells = {match[1] or match[2] for match in _SHELL.finditer("\n".join(lines))}
    said = [_known_lines(tool) for tool in {log.tool for log in logs}]
    written = [number for number, line in enumerate(lines) if line.strip()]
    left = [number for number in written if number not in known]
    missed = [n for n in left if not any(one.match(words_in(lines[n])) for one in said)]
    return ReadText(
        name,
        tuple(replace(o, remarks=o.remarks + remarks) for o in _with_paths(logs, paths)),
        tuple(
            merged(reported for scan in group for reported in scan.reported)[0] for group in found
        ),
        len(written),
        len(written) - len(missed),
        lines[missed[0]].strip() if missed else "",
        shell=shells.pop() if len(shells) == 1 else "",
        machines=tuple(sorted({n for group in found for scan in group for n in scan.machines})),
    )


def _with_paths(logs: Sequence[Log], paths: tuple[Failure, ...]) -> tuple[Log, ...]:
    is_reported = any(log.failures or any(o.failure for o in log.figures) for log in logs)
    if not logs or not paths or is_reported:
        return tuple(logs)
    own = tuple(Failure(test, f"{test} says: {said}") for test, said in paths)
    return (replace(logs[0], failures=own), *logs[1:])
