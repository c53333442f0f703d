"""What a section is made of: plain values that HTML and PDF show each in their own way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from gzip import compress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rich.text import Text

from linkgauge.report.remedies import Step

if TYPE_CHECKING:
    import altair as alt

Tone = Literal["", "bad", "warn", "good", "simulated", "dim", "name", "strong"]
"""What is meant by a colour, of which nothing else depends on the colour alone."""
MOST_TEXT = 10_000
"""Characters of one text on a page: reasons of drivers are long, and longer ones are no reasons."""
_TONES: Mapping[str, Tone] = {
    "bold red": "bad",
    "red": "bad",
    "bold yellow": "warn",
    "yellow": "warn",
    "green": "good",
    "bold magenta": "simulated",
    "dim": "dim",
    "cyan": "name",
    "bold": "strong",
}


class Span(NamedTuple):
    """A piece of a line."""

    text: str
    tone: Tone = ""


Line = tuple[Span, ...]


def plain(text: str, tone: Tone = "") -> Line:
    """A line of one piece."""
    return (Span(cut(text), tone),)


def cut(text: str, most: int = MOST_TEXT) -> str:
    """The text, with a mark where more than `most` characters are left out."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def line_of(text: Text) -> Line:
    """What other formats print on a terminal."""
    return tuple(_spans(text))


def _spans(text: Text) -> Iterator[Span]:
    at = 0
    for span in sorted(text.spans):
        start = max(at, span.start)
        if span.end <= start:
            continue
        if start > at:
            yield _span(text.plain[at:start], text.style)
        yield _span(text.plain[start : span.end], span.style)
        at = span.end
    if at < len(text.plain):
        yield _span(text.plain[at:], text.style)


def _span(text: str, style: object) -> Span:
    return Span(cut(text), _tone(style))


def _tone(style: object) -> Tone:
    return _TONES.get(str(style), "")


class Prose(NamedTuple):
    """Lines of text, one below the other."""

    lines: Sequence[Line]


class Problem(NamedTuple):
    """Something wrong: how grave it is, on what, what was found; what else is said of it, each with
    a name; and the steps that fix it, below the words `do`. `first` is the verdict of the run."""

    severity: str
    tone: Tone
    subject: str
    found: Line
    said: Sequence[tuple[str, Line]] = ()
    steps: Sequence[Step] = ()
    do: str = "To fix it"
    first: bool = False


class Tile(NamedTuple):
    """A number that stands out, and of what it is."""

    number: str
    name: str
    tone: Tone = ""


class Tiles(NamedTuple):
    """Numbers side by side."""

    tiles: Sequence[Tile]


class Column(NamedTuple):
    """The head of a column. Figures stand right."""

    name: str
    figures: bool = False


class Entry(NamedTuple):
    """What stands in a table: its text, by what it is sorted (else by the text), and a link to a
    part of the page."""

    text: str
    key: float | None = None
    tone: Tone = ""
    link: str = ""


class Table(NamedTuple):
    """Rows of entries below heads; the first entry names the row. With `sortable` a click on a head
    sorts by it; links lead to the `anchor`."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Entry]]
    sortable: bool = False
    anchor: str = ""


class Shade(NamedTuple):
    """A place in a matrix: the figure, the share of what is expected, how it is shaded (0 the worst
    to 20 as expected; or of a matrix without expectations `r0` the least to `r10` the most), a sign
    that says the same without colour, and what is told when one points at it."""

    text: str
    share: str = ""
    level: str = ""
    sign: str = ""
    more: str = ""


class Heat(NamedTuple):
    """A matrix with shaded cells: `anchor` is what links lead to; `lines` are said below it.
    `corner` says what rows and columns are."""

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
        """Whether there is no room for more than figures."""
        return len(self.columns) > DENSE


DENSE = 24


class Figure(NamedTuple):
    """A picture of a chart over `rows`, which `draw` defines, and what it shows in words; the table
    has the same figures and stands alone where nothing can draw. The `lines` are said below it."""

    title: str
    says: str
    draw: Callable[[Any], alt.Chart | alt.LayerChart]
    rows: Sequence[Mapping[str, object]]
    table: Table
    lines: Sequence[Line] = ()


class Attachment:
    """A file inside the page: its name, what it holds, its content, also `packed` by gzip."""

    def __init__(self, name: str, says: str, content: bytes) -> None:
        self.name, self.says, self.content = name, says, content

    @cached_property
    def packed(self) -> bytes:
        return compress(self.content, 6, mtime=0)


class Attachments(NamedTuple):
    files: Sequence[Attachment]


Block = Prose | Problem | Tiles | Table | Heat | Figure | Attachments


class Part(NamedTuple):
    """A section with its blocks, as it is shown."""

    name: str
    title: str
    blocks: Sequence[Block]


class Page(NamedTuple):
    """All that is shown: a title, lines below it, and parts."""

    title: str
    under: Sequence[Line]
    parts: Sequence[Part]
    simulated: bool = False
