"""Reads nvbandwidth's text as its users' scripts do: line by line, and by nothing but its format.

A test begins with `Running NAME.`. A line with `(row)` or `(column)` heads a matrix; the next line
holds the columns' indices; then come rows, until a line without figures. `SUM KEY VALUE` ends it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass
class Table:
    heading: str
    columns: list[str] = field(default_factory=list)
    rows: dict[str, list[str]] = field(default_factory=dict)

    def figures(self):
        """By row and column; what is N/A is left out."""
        return {
            (row, column): float(figure)
            for row, line in self.rows.items()
            for column, figure in zip(self.columns, line, strict=True)
            if figure != "N/A"
        }


@dataclass
class Test:
    name: str
    tables: list[Table] = field(default_factory=list)
    summed: dict[str, float] = field(default_factory=dict)
    lines: dict[str, float] = field(default_factory=dict)
    """What MIN, MAX and AVG say, by `MIN KEY`."""
    samples: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


def read_tests(text: str) -> list[Test]:
    tests: list[Test] = []
    table = None
    for line in text.splitlines():
        words = line.split()
        if match := re.fullmatch(r"Running (\S+)\.", line.strip()):
            tests.append(Test(match[1]))
            table = None
        elif not tests or not words:
            continue
        elif re.search(r"\((row|column)\)", line):
            table = Table(line.strip())
            tests[-1].tables.append(table)
        elif words[0] in ("SUM", "MIN", "MAX", "AVG"):
            found = tests[-1].summed if words[0] == "SUM" else tests[-1].lines
            key = words[1] if words[0] == "SUM" else " ".join(words[:2])
            found[key] = float(words[2])
            table = None
        elif words[0] == "Sample":
            tests[-1].samples.append(line.strip())
        elif table is not None and not table.columns:
            table.columns = words
        elif table is not None and re.fullmatch(r"[0-9.]+|N/A", words[-1]):
            table.rows[words[0]] = words[1:]
        else:
            tests[-1].others.append(line)
            table = None
    return tests


def read_examples(text: str) -> list[tuple[str, str]]:
    """Commands (lines that begin with `$`) and what each printed."""
    examples: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            examples.append((line[2:], ""))
        elif examples:
            command, printed = examples[-1]
            examples[-1] = (command, printed + line + "\n")
    return examples
