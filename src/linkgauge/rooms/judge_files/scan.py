"""Searches a text's lines on behalf of readers, and holds what they find."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Self
from xml.etree.ElementTree import Element

from linkgauge.model.grouped import grouped

from .facts import Facts, Failure, Log, ReportedFigure, ReportedGpu
from .failures import MOST_WORDS, meaning_of
from .lines import Grid, address_of, documents_in, grid_at, xml_in

MOST_FIGURES = 160_000
"""The most figures of a tool that are read of a text. nvbandwidth's of 128 devices are fewer."""
_LONGEST = 1 << 16
"""The most characters of a line that patterns are tried on; longer ones are documents."""


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


class _Figures(list[ReportedFigure]):
    left, cut = 0, ""

    def append(self, one: ReportedFigure, /) -> None:
        if len(self) < MOST_FIGURES:
            super().append(one)
        else:
            self.left, self.cut = self.left + 1, self.cut or one.benchmark

    def __iadd__(self, some: Iterable[ReportedFigure], /) -> Self:  # type: ignore[misc,override]
        for one in some:
            self.append(one)
        return self


class TextScan:
    """A text and what a reader finds in it. Without `logs` and `reported`, it has found nothing."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines, self.used = lines, set[int]()
        self.logs, self.reported = list[Log](), list[Facts]()
        self.figures, self.gpus = _Figures(), dict[int, ReportedGpu]()
        self.failures, self.remarks = list[Failure](), list[str]()

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
        """Yields each matching line's number, its named groups, and each group's last value so far.
        Records a `gpu` with its `model`, and the failure in a group `failed`."""
        said = usual
        for number, match in self.each(*map(re.compile, patterns)):
            own = {name: text for name, text in match.groupdict().items() if text is not None}
            said |= own
            if "gpu" in own and "model" in own:
                model = own["model"].rstrip(".").strip()
                self.gpus[int(own["gpu"])] = ReportedGpu(model, address_of(own.get("pci", "")))
            if "failed" in own:
                self.fail(own["failed"])
            yield number, own, said

    def rows(self, *patterns: str, **usual: str) -> Iterator[dict[str, str]]:
        """Yields the last value of each named group at each line with a group `rate`, and at each
        with `cells`, whose names are in `columns`."""
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
        up to three headings above it (`PCI/Bus Id`)."""
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
                    name = "/".join([*(above for _, above in path[-3:]), field[2]])
                    found.setdefault(name, field[3].strip())
                elif field:
                    path.append((len(field[1]), field[2]))
            yield start, match, found

    def first(self, pattern: re.Pattern[str], default: str = "") -> str:
        lines = (line for line in self.lines if len(line) <= _LONGEST)
        return next((match[1] for match in map(pattern.match, lines) if match), default)

    def grid(self, start: int) -> Grid:
        """Returns the matrix at a line; without one, the line above counts as not understood."""
        figures, lines = grid_at(self.lines, start)
        self.used |= lines
        if not figures:
            self.used.discard(start - 1)
        return figures

    def fail(self, said: str, test: str = "", since: int | None = None) -> None:
        """Notes a failure of `test`, or of all tests if it is empty. With `since`, the figures from
        this number on fail instead, if there are any."""
        said = " ".join(said.split())[:MOST_WORDS]
        own = self.figures[since:] if since is not None else []
        if own and since is not None:
            self.figures[since:] = [one._replace(failure=one.failure or said) for one in own]
        else:
            self.failures.append(Failure(test, said))

    def _strike(self) -> None:
        """Marks figures of failed tests. A failed call that names no test ended the output."""
        rest = list[Failure]()
        for failed in self.failures:
            status = meaning_of(failed.said).status
            strikes = status == "fail" or (status == "error" and failed.test)
            own = [n for n, one in enumerate(self.figures) if failed.test in ("", one.benchmark)]
            for number in own if strikes else ():
                one = self.figures[number]
                self.figures[number] = one._replace(failure=one.failure or failed.said)
            if not own:
                rest.append(failed)
            elif not strikes and status != "skip":
                self.remarks.append(": ".join(filter(None, failed)))
        self.failures = rest

    def _leave_out_impossible(self) -> None:
        """Leaves out figures beyond any hardware: a tool or reader mistook a unit or column."""
        odd = [one for one in self.figures if not one.is_possible]
        self.figures[:] = [one for one in self.figures if one.is_possible]
        if odd:
            several = f"{len(odd)} impossible figure{'s' if len(odd) > 1 else ''} left out"
            self.remarks.append(f"{several}, more than any hardware has: {odd[0].benchmark}")

    def _tell_runs_apart(self) -> None:
        """Names a test's second and later runs in their columns if they differ."""
        keyed = ((one[:3] + one[4:8], one.figure) for one in self.figures if one.host or one.work)
        several = {key: own for key, own in grouped(keyed).items() if 1 < len(own) < _SAMPLES}
        apart = {key[0] for key, own in several.items() if max(own) > DIFFER * min(own)}
        runs = Counter[object]()
        for number, one in enumerate(self.figures):
            if one.benchmark in apart and (one.host or one.work):
                key = one[:3] + one[4:8]
                runs[key] += 1
                if runs[key] > 1:
                    column = f"{one.column}{RUN}{runs[key]}"
                    self.figures[number] = one._replace(column=column)

    def documents(self, key: str) -> Iterator[dict[str, Any]]:
        for document, lines in documents_in(self.lines, key):
            self.used.update(lines)
            yield document

    def xml(self, tag: str) -> Element | None:
        element, lines = xml_in(self.lines, tag)
        self.used.update(lines)
        return element

    def facts(self, **facts: Any) -> None:
        reported = Facts(gpus=self.gpus, **facts)
        self.reported += [reported] if reported != Facts() else []

    def log(
        self,
        tool: str,
        version: str | None = None,
        hosts: tuple[str, ...] = (),
        *,
        sure: object = False,
        **facts: Any,
    ) -> None:
        if not sure and not self.figures and not self.failures:
            return
        self._strike()
        self._leave_out_impossible()
        self._tell_runs_apart()
        if left := self.figures.left:
            # The whole of its cells may be left out, and a single part is none.
            cut = self.figures.cut
            self.figures[:] = [o for o in self.figures if o.benchmark != cut or o.part is None]
            self.remarks.append(f"{left} figures left out, after the first {MOST_FIGURES}")
        failures = (Failure(test or tool, f"{tool} says: {said}") for test, said in self.failures)
        figures = (
            one._replace(failure=f"{tool} says: {one.failure}") if one.failure else one
            for one in self.figures
        )
        self.logs.append(Log(
            tool, tuple(figures), version or None, hosts,
            tuple(dict.fromkeys(failures)), tuple(dict.fromkeys(self.remarks)),
        ))  # fmt: skip
        self.facts(**facts)


Reader = Callable[[TextScan], None]
"""Reads the output of a tool, and notes in the scan what it says."""
