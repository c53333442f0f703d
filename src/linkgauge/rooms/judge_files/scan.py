"""Searches a text's lines on behalf of readers, and holds what they find."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from json import JSONDecoder
from typing import Any
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from linkgauge.model.grouped import grouped
from linkgauge.model.names import and_all
from linkgauge.model.units import count_of

from .facts import Facts, Failure, HostFigure, Log, ReportedFigure, ReportedGpu
from .failures import MOST_WORDS, meaning_of
from .lines import address_of, number_of, scale_of
from .products import product_of

MOST_FIGURES = 160_000
"""The most figures of a tool that are read of a text. nvbandwidth's of 128 devices are fewer."""
_LONGEST = 1 << 16
"""The most characters of a line that patterns are tried on; longer ones are documents."""
_MOST_PAIRS = 16
_MOST_XML = 16 << 20
"""The most bytes of an element; lstopo's element for a host with 256 CPUs has 1 MiB."""
_CORNER = re.compile(r"\s*(?:D[\\/]D|GPU|CPU|Numa node|Socket)(?=\s|$)")
_NOTHING = ("N/A", "nan", "-nan", "-", "inf", "—", "–", "X")
_BETWEEN_COLUMNS = re.compile(r"\s{2,}#?|\s#|\s(?=BW |t_)|(?<=\])\s")
"""What stands between the names of columns, which may have a space within."""
_FIELD = re.compile(r"(\s*)(\S.{0,60}?)(?:\s*:(?:\s+(\S.{0,120}))?)?$")
"""A field of a description, or a heading above fields that are indented more."""


RUN, DIFFER, _SAMPLES = ", run ", 1.25, 10
"""What the column of a second or later run of a test ends with; the ratio between figures from
which something differs between such runs; and how many are samples, whatever they differ by."""


@cache
def _any_of(patterns: tuple[re.Pattern[str], ...]) -> re.Pattern[str]:
    return re.compile("|".join(re.sub(r"\(\?P<\w+>", "(", one.pattern) for one in patterns))


Grid = Mapping[tuple[int, int], float | None]
"""The figures of a matrix by row and column; None is N/A."""


def _columns(line: str) -> list[int]:
    words = _CORNER.sub("", line, count=1).split()
    is_heads = all(word.isdecimal() and len(word) < 5 for word in words)
    return [*map(int, words)] if is_heads else []


def _is_between(line: str) -> bool:
    # Between a matrix and its title there may be words that are no other title.
    return not _columns(line) and not re.search(r"GB/s|[mM]atrix|\(us\)|\d\.\d", line)


def _key(one: ReportedFigure) -> tuple[object, ...]:
    return one[:3] + one[4:8]


class TextScan:
    """A text and what a reader finds in it: nothing if `logs` and `reported` are both empty."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines, self.used = lines, set[int]()
        self.logs, self.reported = list[Log](), list[Facts]()
        self.figures, self.gpus = list[ReportedFigure](), dict[int, ReportedGpu]()
        self.failures, self.remarks = list[Failure](), list[str]()
        self.machines, self.hosts, self.version = set[int](), tuple[str, ...](), ""
        self.ends = {"local": set[str](), "remote": set[str]()}

    def each(self, *patterns: re.Pattern[str]) -> Iterator[tuple[int, re.Match[str]]]:
        """Yields the number of each line that begins with a pattern, and the match."""
        is_one = _any_of(patterns).match
        for number, line in enumerate(self.lines):
            if len(line) <= _LONGEST and is_one(line):
                self.used.add(number)
                yield number, next(filter(None, (one.match(line) for one in patterns)))

    def marks(
        self, *patterns: str, **usual: str
    ) -> Iterator[tuple[int, dict[str, str], dict[str, str]]]:
        """Yields each matching line's number, its named groups, and the last value of each group so
        far. Records a `gpu` with its `model`, the tool's `version`, a failure (`failed`), and both
        ends of a connection (`local` and `remote`)."""
        said = usual
        for number, match in self.each(*map(re.compile, patterns)):
            own = {name: text for name, text in match.groupdict().items() if text is not None}
            said |= own
            if "gpu" in own and "model" in own:
                gpu = ReportedGpu(own["model"].rstrip(".").strip(), address_of(own.get("pci", "")))
                self.found(number, int(own["gpu"]), gpu)
            self.version = own.get("version", self.version)
            if "failed" in own:
                self.fail(own["failed"])
            for side in self.ends.keys() & own.keys():
                self.ends[side].add(own[side])
            yield number, own, said

    def found(self, number: int, index: int, gpu: ReportedGpu) -> None:
        # Another machine begins with the second GPU of an index.
        before = self.gpus.get(index, gpu).model
        if before != gpu.model and product_of(before) != product_of(gpu.model):
            self.machines.add(number)
            self.gpus.clear()
        self.gpus[index] = gpu

    def rows(self, *patterns: str, **usual: str) -> Iterator[dict[str, str]]:
        """Yields named groups with their last values, at each line with the group `rate` or
        `cells`. The words in `cells` are the values of the names in `columns`."""
        for _, own, said in self.marks(*patterns, **usual):
            if "rate" in own:
                yield said
            elif "cells" in own:
                columns = _BETWEEN_COLUMNS.split(said.get("columns", ""))
                yield said | dict(zip(columns, own["cells"].split(), strict=False))

    def sections(self, head: re.Pattern[str]) -> Iterator[tuple[int, re.Match[str], int]]:
        """Yields each line that begins with `head`: number, match, and number of the next one."""
        heads = [(n, match) for n, line in enumerate(self.lines) if (match := head.match(line))]
        ends = [*(number for number, _ in heads[1:]), len(self.lines)]
        return ((*one, end) for one, end in zip(heads, ends, strict=False))

    def blocks(self, head: re.Pattern[str]) -> Iterator[tuple[int, re.Match[str], dict[str, str]]]:
        """Yields each section's line number, its head, and its fields. A field's name begins with
        up to two headings above it (`PCI/Bus Id`)."""
        for start, match, end in self.sections(head):
            found, path = dict[str, str](), list[tuple[int, str]]()
            for number in range(start + 1, end):
                line = self.lines[number]
                field = _FIELD.match(line)
                if line.strip() and (field is None or not (field[1] or field[3])):
                    break
                self.used |= {start, number}
                path = [(at, above) for at, above in path if field and at < len(field[1])]
                if field and field[3]:
                    name = "/".join([*(above for _, above in path[-2:]), field[2]])
                    found.setdefault(name, field[3].strip())
                elif field:
                    path.append((len(field[1]), field[2]))
            yield start, match, found

    def first(self, pattern: re.Pattern[str], default: str = "") -> str:
        lines = (line for line in self.lines if len(line) <= _LONGEST)
        return next((match[1] for match in map(pattern.match, lines) if match), default)

    def grid(self, start: int) -> Grid:
        lines, at = self.lines, start
        while at < min(len(lines), start + 5) and _is_between(lines[at]):
            at += 1
        columns = _columns(lines[at]) if at < len(lines) else []
        used, figures, row = {at}, dict[tuple[int, int], float | None](), list[str]()
        for number in range(at + 1, len(lines) if columns else 0):
            words = lines[number].split()
            is_part = 0 < len(row) < len(columns) + 1
            are_figures = all(word in _NOTHING or number_of(word) is not None for word in words)
            more = _columns(lines[number]) if not figures and not row else []
            if len(words) > 1 and more[:1] == [columns[-1] + 1]:
                columns += more  # the heads, wrapped
            elif words and (is_part or words[0].isdecimal()) and are_figures:
                row = [*row, *words] if is_part else words
                if len(row) > len(columns) + 1 or not row[0].isdecimal():
                    break
                if len(row) == len(columns) + 1:
                    named = zip(columns, row[1:], strict=True)
                    figures |= {(int(row[0]), c): number_of(word) for c, word in named}
            elif words:
                break
            used |= {number} if words else set()
        self.used |= used if figures else set()
        return figures

    def grid_below(self, title: int) -> Grid:
        """Returns the matrix below a line. If there is none, the line counts as not understood."""
        figures = self.grid(title + 1)
        self.used -= set() if figures else {title}
        return figures

    def fail(self, said: str, test: str = "", of: Sequence[int] = ()) -> None:
        """Notes a failure of `test`, or of all tests if it is empty. The figures with the numbers
        in `of` fail instead, if there are any."""
        said = " ".join(said.split())[:MOST_WORDS]
        for number in of:
            one = self.figures[number]
            self.figures[number] = one._replace(failure=one.failure or said)
        self.failures += [] if of else [Failure(test, said)]

    def since(self, first: int) -> range:
        return range(first, len(self.figures))

    def refuse(self, refused: set[tuple[int, int]]) -> None:
        pairs = sorted((a, b) for a, b in refused if a < b and (b, a) in refused)
        names = {
            n: f"{n} ({', '.join(filter(None, (o.model, o.pci)))})" for n, o in self.gpus.items()
        }
        if len(names) > 2 and len(pairs) == len(names) * (len(names) - 1) // 2:
            self.remarks.append(f"no two of the {len(names)} GPUs can reach each other's memory")
        elif pairs:
            shown = [f"{a}-{b}" for a, b in pairs[:_MOST_PAIRS]]
            more = [count_of(len(pairs) - len(shown), "more pair")] if pairs[len(shown) :] else []
            each = and_all(names.get(n, str(n)) for n in pairs[0]) if len(pairs) == 1 else ""
            said = each or and_all([*shown, *more])
            self.remarks.append(f"GPUs {said} cannot reach each other's memory")

    def _strike(self) -> None:
        """Marks failed tests' figures. An error of no test is a remark: it ended the output."""
        found, self.failures = self.failures, []
        for test, said in found:
            status = meaning_of(said).status
            own = [n for n, one in enumerate(self.figures) if test in ("", one.benchmark)]
            if not own or status == "fail" or (status == "error" and test):
                self.fail(said, test, own)
            elif status != "skip":
                self.remarks.append(": ".join(filter(None, (test, said))))

    def _leave_out_impossible(self) -> None:
        """Leaves out figures above all hardware: a tool or reader mistook a unit or column."""
        odd = [one for one in self.figures if not one.is_possible]
        self.figures[:] = [one for one in self.figures if one.is_possible]
        if odd:
            several = f"{len(odd)} impossible figure{'s' if len(odd) > 1 else ''} left out"
            self.remarks.append(f"{several}, more than any hardware has: {odd[0].benchmark}")

    def _tell_runs_apart(self) -> None:
        """Names a test's second and later runs if they differ."""
        keyed = ((_key(one), one.figure) for one in self.figures)
        several = {key: own for key, own in grouped(keyed).items() if 1 < len(own) < _SAMPLES}
        apart = {key[0] for key, own in several.items() if max(own) > DIFFER * min(own)}
        runs = Counter[object]()
        for number, one in enumerate(self.figures):
            if one.benchmark in apart:
                key = _key(one)
                runs[key] += 1
                if runs[key] > 1:
                    self.figures[number] = one.of_run(f"{RUN}{runs[key]}")

    def documents(self, key: str) -> Iterator[dict[str, Any]]:
        """Yields each object in JSON with this key near its beginning."""
        if not any(f'"{key}"' in line for line in self.lines):
            return
        text, decoder, end = "\n".join(self.lines), JSONDecoder(), 0
        for match in re.finditer(r"^[ \t]*{", text, re.MULTILINE):
            begin = match.end() - 1
            if begin >= end and f'"{key}"' in text[begin : begin + 4000]:
                with suppress(ValueError, RecursionError):
                    value, end = decoder.raw_decode(text, begin)
                    if key in value:
                        first, last = text.count("\n", 0, begin), text.count("\n", 0, end)
                        self.used.update(range(first, last + 1))
                        yield value

    def xml(self, tag: str) -> Element | None:
        before, opens, rest = "\n".join(self.lines).partition(f"<{tag}")
        inside, closes, _ = rest.partition(f"</{tag}>")
        with suppress(ParseError, DefusedXmlException, ValueError, RecursionError):
            if len(inside) <= _MOST_XML:
                element = fromstring(opens + inside + closes, forbid_dtd=True)
                first = before.count("\n")
                self.used.update(range(first, first + inside.count("\n") + 1))
                return element
        return None

    def facts(self, **facts: Any) -> None:
        reported = Facts(gpus=self.gpus, **facts)
        self.reported += [reported] if reported != Facts() else []

    def log(self, tool: str, version: str = "", *, sure: object = False, **facts: Any) -> None:
        if not sure and not self.figures and not self.failures:
            return
        left = self.figures[MOST_FIGURES:]
        del self.figures[MOST_FIGURES:]
        self._strike()
        self._leave_out_impossible()
        self._tell_runs_apart()
        if left:
            # The whole of its cells may be left out, and a single part is none.
            cut = left[0].benchmark
            self.figures = [one for one in self.figures if one.benchmark != cut or one.part is None]
            self.remarks.append(f"{len(left)} figures left out, after the first {MOST_FIGURES}")
        failures = (Failure(test or tool, f"{tool} says: {said}") for test, said in self.failures)
        figures = (
            one._replace(failure=f"{tool} says: {one.failure}") if one.failure else one
            for one in self.figures
        )
        self.logs.append(Log(
            tool, tuple(figures), version or self.version or None, self.hosts,
            tuple(dict.fromkeys(failures)), tuple(dict.fromkeys(self.remarks)),
            (frozenset(self.ends["local"]), frozenset(self.ends["remote"])),
        ))  # fmt: skip
        self.facts(**facts)


Reader = Callable[[TextScan], None]
"""Reads the output of a tool, and notes in the scan what it says."""


def rates(
    tool: str,
    name: str,
    column: str,
    cell: Callable[[Mapping[str, str]], HostFigure],
    *patterns: str,
    rate: str = "rate",
    row: str = "all",
    **usual: str,
) -> Reader:
    """Returns a reader of figures in lines that match `patterns`. Named groups of patterns fill the
    braces in `name` and `column`. Group `rate` is in the unit of group `unit` (`Mi`: 2^20 bytes/s).
    Group `size` counts `element` bytes times `prefix`. `usual` has values of missing groups. `cell`
    returns the work that a line measured."""

    def read(seen: TextScan) -> None:
        of = Counter[str]()
        for said in seen.rows(*patterns, **{"unit": "", "prefix": "", "element": "1", **usual}):
            figure, own = number_of(said.get(rate, "")), name.format(**said).lower()
            size = int(int(said["size"]) * scale_of(said["prefix"])) * int(said["element"])
            if figure is not None and size:
                place = row, column.format(**said, number=of[own])
                figure *= scale_of(said["unit"])
                seen.figures.append(ReportedFigure(own, *place, figure, size, host=cell(said)))
                of[own] += 1
        seen.log(tool)

    return read
