"""Tables as TransferBench draws them: with borders, without, or as CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

_JOINTS = " \u2502\u2502\u2502-\u2518\u2510\u2524-\u2514\u250c\u251c-\u2534\u252c\u253c"
"""By which of the four sides have a border: above 1, below 2, left 4, right 8."""


class Grid:
    """Rows of texts, each aligned to the right unless its column is one of `left`. Borders are
    where they are drawn: `above` a cell, `before` a cell."""

    def __init__(self, rows: Sequence[Sequence[str]], left: Sequence[tuple[int, int]] = ()) -> None:
        self.rows = [list(row) for row in rows]
        self._left = set(left)
        self._widths = [max(map(len, column)) for column in zip(*self.rows, strict=True)]
        self._above: set[tuple[int, int]] = set()
        self._before: set[tuple[int, int]] = set()

    @property
    def _columns(self) -> range:
        return range(len(self._widths))

    def rule(self, row: int) -> None:
        """A border above the row, over all columns."""
        self._above |= {(row, column) for column in self._columns}

    def bar(self, column: int) -> None:
        """A border before the column, along all rows."""
        self._before |= {(row, column) for row in range(len(self.rows))}

    def enclose(self, row: int, column: int, *, around: bool) -> None:
        """Borders on all sides of a cell, or none but above it."""
        sides = {(row + 1, column)}, {(row, column), (row, column + 1)}
        self._above.add((row, column))
        if around:
            self._above |= sides[0]
            self._before |= sides[1]
        else:
            self._above -= sides[0]
            self._before -= sides[1]

    def lines(self, *, csv: bool, borders: bool) -> Iterator[str]:
        drawn = borders and not csv
        for number, row in enumerate(self.rows):
            if drawn and any(at == number for at, _ in self._above):
                yield self._rule_line(number)
            texts = [
                text.ljust(width) if (number, column) in self._left else text.rjust(width)
                for column, (text, width) in enumerate(zip(row, self._widths, strict=True))
            ]
            if csv:
                yield "".join(f"{text}," for text in texts)
                continue
            bars = [
                "\u2502" if drawn and (number, column) in self._before else " "
                for column in range(len(texts) + 1)
            ]
            yield "".join(bar + text for bar, text in zip(bars, [*texts, ""], strict=True))
        if drawn and any(at == len(self.rows) for at, _ in self._above):
            yield self._rule_line(len(self.rows))

    def _rule_line(self, row: int) -> str:
        line = ""
        for column in range(len(self._widths) + 1):
            sides = (
                (row - 1, column) in self._before,
                (row, column) in self._before,
                (row, column - 1) in self._above,
                (row, column) in self._above,
            )
            line += _JOINTS[sum(side << place for place, side in enumerate(sides))]
            if column < len(self._widths):
                line += ("-" if sides[3] else " ") * self._widths[column]
        return line
