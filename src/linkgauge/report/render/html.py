"""Writes a report as one HTML file, which loads no other file and runs only its own script."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from linkgauge import __version__
from linkgauge.model.printable import printable
from linkgauge.model.units import approximate_size
from linkgauge.report.blocks import Block, ChartFigure, Page, Picture, Shade
from linkgauge.report.words.remedies import Command, Step

from .drawing import Drawer
from .picture import file_of, style_of_pictures, svg_of

FRAME = "width:100%;height:32em;border:0;resize:vertical;overflow:auto"
"""The CSS of a frame. A person can change the frame's height with the mouse."""


def framed(page: Page) -> str:
    """Returns a page in a frame, for use within another page. Neither page can affect the other."""
    content = escape(html_of(page))
    return f'<iframe srcdoc="{content}" sandbox="allow-scripts" style="{FRAME}"></iframe>'


def html_of(page: Page, drawer: Drawer | None = None) -> str:
    """Returns the page as HTML. Shows a table in place of each chart that cannot be drawn."""
    blocks = [one for part in page.parts for one in part.blocks]
    figures = [one for one in blocks if isinstance(one, ChartFigure)]
    drawn = [None] * len(figures) if drawer is None else drawer.draw(figures)
    found: list[tuple[Block, str | None]] = [*zip(figures, drawn, strict=True)]
    found += [(one, svg_of(one)) for one in blocks if isinstance(one, Picture)]
    # svg.py cleans charts, and svg_of escapes every text.
    pictures = {id(one): svg and Markup(svg) for one, svg in found}  # noqa: S704
    style = _bare(file_of("page.css") + style_of_pictures())
    style = style.replace("; ", ";").replace(", ", ",").replace(": ", ":")
    script = _bare(file_of("page.js"))
    place = _Places()
    return _environment().get_template("page.html").render(
        page=page,
        pictures=pictures,
        place=place,
        missing=drawer.missing if drawer is not None and figures else None,
        style=Markup(style), style_hash=_hash(style),  # noqa: S704  # files of this package
        script=Markup(script), script_hash=_hash(script),  # noqa: S704
        version=__version__,
    )  # fmt: skip


def _bare(text: str) -> str:
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(file_of), autoescape=True, undefined=StrictUndefined, finalize=_shown
    )
    environment.filters |= {
        "kind": lambda block: type(block).__name__,
        "identity": id,
        "base64": lambda content: b64encode(content).decode(),
        "size": approximate_size,
        "first_command": _first_command,
        "broken": _broken,
    }
    return environment


def _shown(value: object) -> object:
    is_text = isinstance(value, str) and not isinstance(value, Markup)
    return printable(str(value)) if is_text else value


class _Places:
    """Formats the cells of matrices. `said` numbers the texts that appear at the mouse pointer."""

    def __init__(self) -> None:
        self.said: dict[str, int] = {}

    def __call__(self, shade: Shade | None, dense: bool) -> Markup:
        if shade is None:
            return Markup("<td>")
        share = f"<small>{escape(shade.share)}</small>" if shade.share and not dense else ""
        kind = f" class={shade.kind}" if shade.kind else ""
        more = printable(_more(shade, dense))
        number = f" data-e={self.said.setdefault(more, len(self.said))}" if more else ""
        return Markup(f"<td{kind}{number}>{escape(printable(shade.text))}{shade.sign}{share}")  # noqa: S704


def _more(shade: Shade, dense: bool) -> str:
    share = f"{shade.share} of {shade.against}" if dense and shade.share else ""
    return ", ".join(part for part in (share, shade.more) if part)


def _broken(text: str) -> Markup:
    return Markup("_<wbr>").join(printable(text).split("_"))


def _first_command(steps: tuple[Step, ...]) -> int:
    commands = (at for at, step in enumerate(steps) if isinstance(step, Command))
    return next(commands, len(steps) - 1)
