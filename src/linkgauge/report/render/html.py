"""Writes a report as one HTML file. The file opens offline, fetches nothing and runs only its own
script."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files

from markupsafe import Markup, escape

from linkgauge import __version__
from linkgauge.report.blocks import ChartFigure, Page, Picture, Problem, ShownSection

from .drawing import Drawer
from .html_blocks import Places, block_of, given, joined, line_of, markup
from .picture import style_of_pictures, svg_of

FRAME = "width:100%;height:32em;border:0;resize:vertical;overflow:auto"
"""The style of a page's frame, whose height a person can drag."""


def framed(page: Page) -> str:
    """Returns the page as an element of another page: a frame, so that neither page can affect the
    other. Charts are tables."""
    content = escape(html_of(page))
    return f'<iframe srcdoc="{content}" sandbox="allow-scripts" style="{FRAME}"></iframe>'


def html_of(page: Page, drawer: Drawer | None = None) -> str:
    """Returns the page as HTML, with pictures that `drawer` draws. A chart that cannot be drawn is
    replaced by its table."""
    figures = [one for part in page.parts for one in part.blocks if isinstance(one, ChartFigure)]
    drawn = [None] * len(figures) if drawer is None else drawer.draw(figures)
    pictures = {
        id(figure): None if svg is None else Markup(svg)  # noqa: S704  # cleaned in svg.py
        for figure, svg in zip(figures, drawn, strict=True)
    }
    pictures |= {
        id(one): Markup(svg_of(one))  # noqa: S704  # which escapes every text
        for part in page.parts
        for one in part.blocks
        if isinstance(one, Picture)
    }
    style = _bare(_file("page.css") + style_of_pictures())
    style = style.replace("; ", ";").replace(", ", ",").replace(": ", ":")
    script = _bare(_file("page.js"))
    missing = drawer.missing if drawer is not None and figures else None
    place = Places()
    parts = joined(_part(part, place, pictures) for part in page.parts)  # before what it said
    whole = markup(
        _file("page.html").strip(),
        title=page.title,
        mark=markup(_SIMULATED) if page.simulated else "",
        under=joined(markup('<p class="under">%s</p>\n', line_of(line)) for line in page.under),
        links=joined(markup('<li><a href="#%s">%s</a></li>', *part[:2]) for part in page.parts),
        missing=given('<p class="missing" role="note">%s</p>', missing),
        parts=parts,
        said=_json(list(place.said)),
        style=Markup(style), style_hash=_hash(style),  # noqa: S704  # files of this package
        script=Markup(script), script_hash=_hash(script),  # noqa: S704
        version=__version__,
    )  # fmt: skip
    return str(whole)  # a text again, to be escaped in another page


_SIMULATED = ' <span class="badge simulated">simulated</span>'


def _part(part: ShownSection, place: Places, pictures: Mapping[int, Markup | None]) -> Markup:
    """Renders a section. The verdict needs no heading before its problem."""
    hides = part.name == "verdict" and isinstance(part.blocks[0], Problem)
    return markup(
        '<section class="part" id="%s" aria-labelledby="h-%s">\n'
        '<h2 class="title%s" id="h-%s">%s</h2>\n%s</section>\n',
        part.name, part.name, " visually-hidden" if hides else "", part.name, part.title,
        joined(markup("%s\n", block_of(block, place, pictures)) for block in part.blocks),
    )  # fmt: skip


def _json(value: object) -> Markup:
    """Returns the value as JSON that does not end the script around it."""
    escapes = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&'"}
    return Markup(json.dumps(value).translate(escapes))  # noqa: S704


def _file(name: str) -> str:
    return files(__package__).joinpath("files", name).read_text("utf-8")


def _bare(text: str) -> str:
    """Returns a script or style without indentation and comment lines."""
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
