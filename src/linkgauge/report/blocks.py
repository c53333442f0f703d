"""Defines blocks, plain values that make up sections. Each renderer shows them in its way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from linkgauge.report.words.remedies import Step

if TYPE_CHECKING:
    from .chart_specs import Spec

Tone = Literal["", "bad", "warn", "good", "simulated", "dim", "name", "strong"]
"""The meaning of a colour. Texts or signs say the same as the colours."""
TONES: Mapping[str, Tone] = {
    "error": "bad",
    "timeout": "bad",
    "fail": "bad",
    "low": "warn",
    "perhaps low": "warn",
    "high": "simulated",
    "part": "dim",
    "degraded": "warn",
    "waived": "dim",
    "ok": "good",
    "pass": "good",
    "not judged": "dim",
    "skip": "dim",
}
"""The tones of statuses and verdicts, in the order of a sorted column."""
MOST_TEXT = 10_000
"""The most characters of a text, such as a driver's reason for a failure."""


class Span(NamedTuple):
    text: str
    tone: Tone = ""


Line = tuple[Span, ...]


def plain(text: str, tone: Tone = "") -> Line:
    return (Span(cut(text), tone),)


def line(*pieces: str | Span) -> Line:
    spans = (Span(piece) if isinstance(piece, str) else piece for piece in pieces)
    return tuple(Span(cut(span.text), span.tone) for span in spans if span.text)


def text_of(line: Line) -> str:
    return "".join(span.text for span in line)


def cut(text: str, most: int = MOST_TEXT) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


class Prose(NamedTuple):
    lines: Sequence[Line]


class Problem(NamedTuple):
    """A finding, or the verdict (`first`). `said` and `last` are named lines above and below the
    steps that fix it, and `do` is the heading of the steps."""

    severity: str
    tone: Tone
    subject: str
    found: Line
    said: Sequence[tuple[str, Line]] = ()
    steps: Sequence[Step] = ()
    do: str = "To fix it"
    first: bool = False
    last: Sequence[tuple[str, Line]] = ()


class Tile(NamedTuple):
    """A number and its name. A tile without a name is a mark, such as SIMULATED. One that is
    `separate` counts something else than the tiles before it."""

    number: str
    name: str
    tone: Tone = ""
    separate: bool = False


class Tiles(NamedTuple):
    tiles: Sequence[Tile]
    of: str = ""

    @property
    def as_line(self) -> Line:
        """Formats `soak: 8 h of 8 h, 12 rounds` or, without `of`, `42 measured: 41 ok, 1 low`."""
        spans = [Span(f"{self.of}: ", "strong")] if self.of else []
        for number, tile in enumerate(self.tiles):
            joint = " " if not tile.name else ": " if number == 1 and not self.of else ", "
            is_first = tile.separate and not self.tiles[number - 1].separate
            joint = "; " if is_first and number > 1 else joint
            text = f"{tile.number} {tile.name}".rstrip()
            spans += [Span(joint if number else ""), Span(text, tile.tone)]
        return line(*spans)


class Column(NamedTuple):
    """A column of a table. If the table is too wide, `short` replaces `name`. If this is not
    enough, the columns with the highest `rank` are left out."""

    name: str
    figures: bool = False
    rank: int = 0
    short: str = ""


class Entry(NamedTuple):
    """A table entry. Rows are sorted by `key`, else by text. `link` leads to a part of the page."""

    text: str
    key: float | None = None
    tone: Tone = ""
    link: str = ""
    depth: int = 0


class Table(NamedTuple):
    """A table. Each row begins with its name. A terminal shows at most `few` rows, and then the
    text `rest`, which says how to see all rows."""

    caption: Line
    columns: Sequence[Column]
    rows: Sequence[Sequence[Entry]]
    sortable: bool = False
    anchor: str = ""
    lines: Sequence[Line] = ()
    few: int | None = None
    rest: str = "--json has all"

    @property
    def says(self) -> str:
        return text_of(self.caption)


class Shade(NamedTuple):
    """How a matrix shows a cell. `sign` shows the tone without colour. `share` is the cell's share
    of the figure that `against` names. `more` is shown under the mouse pointer. `depth` is the
    shade of a figure without a verdict, from 0 (lowest) to 10."""

    text: str
    tone: Tone = ""
    sign: str = ""
    share: str = ""
    more: str = ""
    depth: int | None = None
    against: str = ""

    @property
    def kind(self) -> str:
        """Returns the cell's CSS class: its tone, or `r0` to `r10` for its depth."""
        return self.tone or ("" if self.depth is None else f"r{self.depth}")


class Heat(NamedTuple):
    anchor: str
    title: Line
    caption: str
    corner: str
    rows: Sequence[str]
    columns: Sequence[str]
    shades: Sequence[Sequence[Shade | None]]
    lines: Sequence[Line] = ()

    @property
    def is_dense(self) -> bool:
        return len(self.columns) > DENSE

    @property
    def turned(self) -> Heat:
        shades = [list(row) for row in zip(*self.shades, strict=True)]
        return self._replace(rows=self.columns, columns=self.rows, shades=shades)


DENSE = 24


class ChartFigure(NamedTuple):
    """A chart. Screen readers read `says`. Formats without charts show `table` instead."""

    title: str
    says: str
    spec: Spec
    rows: Sequence[Mapping[str, object]]
    table: Table
    lines: Sequence[Line] = ()
    anchor: str = ""


class DrawnPart(NamedTuple):
    """A part in a machine's picture. `above` is the next part towards the host, `word` a check that
    failed, `level` a switch's number of steps from the devices of its fabric (else 0)."""

    name: str
    label: str
    kind: Literal["node", "bridge", "device", "nic", "switch"]
    above: str | None = None
    tone: Tone = ""
    word: str = ""
    level: int = 0


class DrawnLink(NamedTuple):
    a: str
    b: str
    texts: Sequence[str]
    tone: Tone = ""
    word: str = ""
    says: str = ""


class Picture(NamedTuple):
    """A machine's picture: parts and links in drawing order. A terminal shows `table` instead."""

    title: str
    says: str
    head: Line
    parts: Sequence[DrawnPart]
    links: Sequence[DrawnLink]
    table: Table
    lines: Sequence[Line] = ()
    anchor: str = ""


class Code(NamedTuple):
    caption: Line
    lines: Sequence[str]


class Attachment(NamedTuple):
    name: str
    says: str
    size: int
    packed: bytes


class Attachments(NamedTuple):
    files: Sequence[Attachment]


Block = Prose | Problem | Tiles | Table | Heat | ChartFigure | Picture | Code | Attachments


class ShownSection(NamedTuple):
    name: str
    title: str
    blocks: Sequence[Block]


class Page(NamedTuple):
    title: str
    under: Sequence[Line]
    parts: Sequence[ShownSection]
    simulated: bool = False
