"""Ways to take off what pages, mails, editors and collectors of logs put around a tool's lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import groupby, pairwise
from json import JSONDecodeError, loads
from textwrap import dedent

from .lines import number_of

Lines = list[str]
Step = Callable[[Lines], Lines]

_SHARE = 0.8
"""The least share of lines that begin alike where something was put before all of them."""
_FEWEST = 3
_MOST_STEPS = 8
_CLOCK = r"\d{1,2}:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
_DATE = r"(?:\w{3} )?\w{3} [ \d]\d|\d{4}[/-]\d\d[/-]\d\d"
_NAME = r"([A-Za-z][\w.-]{0,80})"
_RAY = r"\(\w{1,60},? (?:rank=\d+, )?pid=(\d{1,8})(?:, ip=[\w.]{1,60})?\)"
_LEVELS = "TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR"
_MARK = r"[ \t]*(?:>+|//|[|│+#*;!-])"
_NUMBER = r"\s*(?P<number>\d{1,6})"
_BEFORE = tuple(
    (re.compile(pattern), instead, share)
    for pattern, instead, share in (
        (_NUMBER + r"(?: ?[:.)|│])?(?:[ \t]|$)", "", 1.0),
        (_NUMBER + r"[:|]", "", _SHARE),
        (r"[ \t]*[|│] ?(.*?)[ \t]*[|│]$", r"\1", 1.0),
        (_MARK + "(?: |$)", "", 1.0),
        (_MARK, "", _SHARE),
        (rf"\[?(?:(?:{_DATE})[ T])?{_CLOCK}(?: \d{{4}}\]|\]|(?=\s|$))[ \t]?", "", _SHARE),
        (r"\[\s{0,9}\d{1,10}\.\d{2,9}\] ?", "", _SHARE),
        (r"(?:std(?:out|err) [FP]|[-|:]|[\w.:]{1,60}:\d{1,5} -|\[[\w.:]{1,60}:\d{1,5}\])(?: |$)",
         "", _SHARE),
        (rf"\[?(?:{_LEVELS})(?:\]|:[\w.]{{1,60}}:|\s*[-:|]|(?=\s)|$) ?", "", _SHARE),
        (rf"{_NAME} [\w./@-]{{1,60}}\[\d{{1,8}}\]:(?: |$)", r"\1: ", _SHARE),
        (rf"\[{_NAME}(?:@[\d,]{{1,9}})?\](?:<std(?:out|err)>)?:? ?", r"\1: ", _SHARE),
        (rf"{_NAME}\s*\|(?: |$)", r"\1: ", _SHARE),
        (rf"{_RAY} ?(?:\[\d+,\d+\]<std(?:out|err)>:)?", r"p\1: ", _SHARE),
    )
)  # fmt: skip
"""What may stand before lines, what replaces it, and the least share of lines: the line's number,
bars on both sides, a mark, the time, seconds since the start, a place in a program, a level, and a
name, which becomes the host as pdsh writes it: of systemd, torchrun, compose, and Ray."""


def _steps(lines: Lines) -> list[Step]:
    steps = list[Step]()
    while len(steps) < _MOST_STEPS and (step := _next(lines)) is not None:
        steps.append(step)
        lines = step(lines)
    return steps


def _before(lines: Lines) -> Iterator[Step]:
    steps = _steps(lines)
    return (partial(_in_turn, steps[:count]) for count in range(1, len(steps) + 1))


def _each_block(lines: Lines) -> Lines:
    found = Lines()
    for _, block in groupby(lines, lambda line: not line.strip()):
        own = [*block]
        found += _in_turn(_steps(own), own)
    return found


def _in_turn(steps: list[Step], lines: Lines) -> Lines:
    for step in steps:
        lines = step(lines)
    return lines


def _next(lines: Lines) -> Step | None:
    written = [line for line in lines if line.strip()]
    for pattern, instead, share in _BEFORE:
        found = [match for line in written if (match := pattern.match(line))]
        least = max(share * len(written), _FEWEST)
        if len(found) >= least and ("number" not in found[0].groupdict() or _counts(found)):
            return partial(_replaced, pattern, instead)
    first = Counter(line.split(None, 1)[0] for line in written)
    word = max(first, key=first.__getitem__, default="")
    if first[word] < max(_SHARE * len(written), _FEWEST):
        return None
    return partial(_replaced, re.compile(rf"\s*{re.escape(word)}(?:\s|$)"), "")


def _counts(found: list[re.Match[str]]) -> bool:
    steps = [int(after[1]) - int(before[1]) for before, after in pairwise(found)]
    return min(steps) > 0 and steps.count(1) > len(steps) / 2


def _replaced(pattern: re.Pattern[str], instead: str, lines: Lines) -> Lines:
    return [pattern.sub(instead, line, count=1) if pattern.match(line) else line for line in lines]


_STRING = re.compile(
    r'\s*(?:\{.{0,200}?"(?:log|message|msg|text|line|output|stdout)": ?)?("(?:[^"\\]|\\.)*")'
)


def _strings(lines: Lines) -> Lines:
    found = Lines()
    for line in lines:
        text = line
        if match := _STRING.match(line):
            try:
                text = str(loads(match[1])).removesuffix("\n")
            except JSONDecodeError:
                text = match[1].strip('"')
        found += text.split("\n")
    return found


def _unescaped(lines: Lines) -> Lines:
    text = "\n".join(lines).replace(r"\r", "").replace(r"\n", "\n").replace(r"\t", "\t")
    return text.replace(r"\"", '"').split("\n")


def _without_blanks(lines: Lines) -> Lines:
    return [line for line in lines if line.strip()]


def _without_headings(lines: Lines) -> Lines:
    return [re.sub(r"^#{2,6} +", "", line) for line in lines]


def _less_indented(lines: Lines) -> Lines:
    blocks = groupby(lines, lambda line: line[:1].strip() == "")
    return [
        line
        for is_indented, block in blocks
        for line in (dedent("\n".join(block)).split("\n") if is_indented else block)
    ]


_MARKS = r"[|│]", ",", ";", "\t", r"\"[ \t]*[,;][ \t]*\"|^\"|\"$", "`", r"\*\*"
_RULE = re.compile(r"[\s|+:=─│-]+$")


def _in_columns(lines: Lines) -> Iterator[Step]:
    return (partial(_without, mark) for mark in _MARKS if any(re.search(mark, o) for o in lines))


def _without(mark: str, lines: Lines) -> Lines:
    bar, found = re.compile(rf"[ \t]*(?:{mark})[ \t]*"), Lines()
    cells = [[cell for cell in bar.split(line) if cell] for line in lines]
    for line, own, below in zip(lines, cells, [*cells[1:], []], strict=True):
        is_row = mark not in ",;" or _is_row(own) or (len(own) == len(below) and _is_row(below))
        found.append("" if _RULE.match(line) else bar.sub("  ", line) if is_row else line)
    return found


def _is_row(cells: list[str]) -> bool:
    return 2 * sum(number_of(cell) is not None for cell in cells) > len(cells) > 1


_WIDTHS, _CUT = (60, 160), 12
"""The least and the most columns at which terminals and mails break lines, and how many blanks may
be lost there."""


def _joined(lines: Lines) -> Iterator[Step]:
    # Lines were broken at a column, or before a word that had no room.
    widths = Counter(len(line) for line in lines if _WIDTHS[0] <= len(line) <= _WIDTHS[1])
    for width in {*(width for width, _ in widths.most_common(2)), max(widths, default=0)} - {0}:
        yield partial(_rejoined, width, "")
        yield partial(_rejoined, width, " ")


def _rejoined(width: int, glue: str, lines: Lines) -> Lines:
    found, last = Lines(), 0
    for line in lines:
        word = line.partition(" ")[0]
        is_cut = last == width or (width - _CUT < last < width and line[:1].isspace())
        is_next = last <= width < last + 1 + len(word) if glue else is_cut
        if found and is_next and line.strip():
            found[-1] = found[-1].ljust(last if glue else width) + glue + line
        else:
            found.append(line)
        last = len(line)
    return found


WAYS: tuple[Callable[[Lines], Iterable[Step]], ...] = (
    lambda _: (_strings, _unescaped),
    _before,
    lambda _: (_each_block,),
    lambda _: (_without_blanks, _less_indented, _without_headings),
    _in_columns,
    _joined,
)
"""Ways to take off what surrounds a text: of the steps of each, the best counts. Nothing tells for
sure what surrounds a text, so that all are tried."""
