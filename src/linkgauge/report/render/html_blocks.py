"""Renders blocks as HTML."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping

from markupsafe import Markup, escape

from linkgauge.model.printable import printable
from linkgauge.model.units import approximate_size
from linkgauge.report.blocks import (
    Attachment,
    Attachments,
    Block,
    ChartFigure,
    Code,
    Entry,
    Heat,
    Line,
    Picture,
    Problem,
    Prose,
    Shade,
    Table,
    Tiles,
)
from linkgauge.report.words.remedies import Command, RemedyText, Step

# HTML with texts in it, which are escaped here alone.


def markup(frame: str, *values: object, **named: object) -> Markup:
    """Returns the frame, HTML of this program, with the values in place of `%s`, or `%(name)s`.
    Values are escaped unless they are Markup. Their characters that control a terminal or change
    the direction of text are removed."""
    shown = {name: _escaped(value) for name, value in named.items()}
    return Markup(frame % (shown or tuple(map(_escaped, values))))  # noqa: S704


def joined(values: Iterable[object], between: str = "") -> Markup:
    """Joins values, which are escaped as in `markup`, with HTML between them."""
    return Markup(between.join(map(_escaped, values)))  # noqa: S704


def _escaped(value: object) -> Markup:
    return value if isinstance(value, Markup) else escape(printable(str(value)))


def given(frame: str, value: object) -> Markup:
    """Returns the frame with the value, or nothing without a value."""
    return markup(frame, value) if value else Markup()


# Texts and their lines.


def line_of(line: Line) -> Markup:
    return joined(
        markup('<span class="t-%s">%s</span>', span.tone, _broken(span.text))
        if span.tone
        else _broken(span.text)
        for span in line
    )


def _broken(text: str) -> Markup:
    """Returns a name as HTML. A line may break after each underscore."""
    return joined(printable(text).split("_"), "_<wbr>")


def _paragraphs(lines: Iterable[Line]) -> Markup:
    return joined(markup("<p>%s</p>", line_of(line)) for line in lines)


def _below(lines: Iterable[Line]) -> Markup:
    return given('<div class="below">%s</div>', _paragraphs(lines))


def _file(lines: Iterable[str]) -> Markup:
    return markup('<pre class="file" tabindex="0">%s</pre>', joined(lines, "\n"))


# Problems, with the steps that fix them.


def _problem(one: Problem) -> Markup:
    head, first = ("h2", " first") if one.first else ("h3", "")
    found = line_of(one.found)
    badge = markup('<span class="badge %s">%s</span> ', one.tone, one.severity)
    why, *further = one.said if one.first and one.said else (None, *one.said)
    said = joined(
        markup("<div><dt>%s</dt><dd>%s</dd></div>", name, line_of(text))
        for name, text in filter(None, (*further, *one.last))
    )
    return markup(
        '\n<div class="problem %s%s">\n<%s>%s%s</%s>%s%s%s%s\n</div>',
        one.tone, first,
        head, badge if one.severity else "", given("<bdi>%s</bdi>", one.subject) or found, head,
        markup('<p class="found">%s</p>', found) if one.subject else "",
        markup('<p class="why"><b>%s</b> %s</p>', why[0], line_of(why[1])) if why else "",
        _steps(one) if one.steps else "",
        given('<dl class="said">%s</dl>', said),
    )  # fmt: skip


def _steps(one: Problem) -> Markup:
    """Renders the steps of a problem. Steps after the last command are folded."""
    commands = [at for at, step in enumerate(one.steps, 1) if isinstance(step, Command)]
    last = max(commands, default=len(one.steps))
    more = joined(map(_step, one.steps[last:]))
    return markup(
        '<div class="steps"><p class="do">%s</p>%s%s</div>',
        one.do,
        joined(map(_step, one.steps[:last])),
        given("<details><summary>More</summary>%s</details>", more),
    )


def _step(step: Step) -> Markup:
    match step:
        case Command():
            return markup(
                '<div class="command"><code><span class="line">%s</span>%s</code>'
                '<button type="button" class="copy" hidden>Copy</button></div>',
                step.line,
                given('<span class="comment">  # %s</span>', step.comment),
            )
        case RemedyText():
            return markup('<p class="comment">%s</p>', step.text)
        case _:
            return markup('<p class="comment">%s</p>%s', step.path, _file(step.lines))


# Tables, matrices and figures.


def _scrolling(anchor: str, says: str, kind: str, head: Markup, rows: Iterable[Markup]) -> Markup:
    return markup(
        '<div class="scroll"%s tabindex="0" role="group" aria-label="%s"><table class="%s">'
        "%s</tr></thead>\n<tbody>%s</tbody></table></div>",
        given(' id="%s"', anchor), says, kind, head,
        joined(markup("<tr>%s</tr>\n", row) for row in rows),
    )  # fmt: skip


def _head(name: str, frame: str = "%s", kind: object = "") -> Markup:
    return markup(f'<th scope="col"%s>{frame}</th>', kind, name) if name else Markup("<td></td>")


def _table(one: Table) -> Markup:
    frame = '<button type="button">%s</button>' if one.sortable else "%s"
    heads = joined(_head(head.name, frame, _right(head.figures)) for head in one.columns)
    head = markup("<caption>%s</caption>\n<thead><tr>%s", line_of(one.caption), heads)
    rows = (joined(_entry(one, at, entry) for at, entry in enumerate(row)) for row in one.rows)
    kind = "rows sortable" if one.sortable else "rows"
    table = _scrolling(one.anchor, one.says, kind, head, rows)
    return markup("\n<div>%s%s</div>" if one.lines else "\n%s%s", table, _below(one.lines))


def _entry(table: Table, at: int, one: Entry) -> Markup:
    tag, scope = ("td", "") if at else ("th", Markup(' scope="row"'))
    key = table.sortable and one.key is not None
    text: object = one.text if at else _broken(one.text)
    if one.link:
        text = markup('<a href="#%s">%s</a>', one.link, _broken(one.text))
    elif one.tone:
        text = markup('<span class="t-%s">%s</span>', one.tone, one.text)
    return markup(
        "<%s%s%s%s>%s%s</%s>",
        tag, scope, _right(table.columns[at].figures),
        markup(' data-k="%s"', one.key) if key else "",
        Markup("&emsp;") * one.depth, text, tag,
    )  # fmt: skip


def _right(is_figure: bool) -> Markup:
    return Markup(' class="n"') if is_figure else Markup()


class Places:
    """Renders cells of matrices as HTML. `said` numbers the texts that are shown when a mouse
    points at a cell; equal texts have the same number."""

    def __init__(self) -> None:
        self.said: dict[str, int] = {}

    def __call__(self, shade: Shade | None, *, dense: bool) -> Markup:
        if shade is None:
            return Markup("<td>")
        share = f"<small>{escape(shade.share)}</small>" if shade.share and not dense else ""
        kind = f" class={shade.kind}" if shade.kind else ""
        more = printable(_more(shade, dense=dense))
        number = f" data-e={self.said.setdefault(more, len(self.said))}" if more else ""
        return Markup(f"<td{kind}{number}>{escape(printable(shade.text))}{shade.sign}{share}")  # noqa: S704


def _more(shade: Shade, *, dense: bool) -> str:
    share = f"{shade.share} of what is expected" if dense and shade.share else ""
    return ", ".join(part for part in (share, shade.more) if part)


def _heat(one: Heat, place: Places) -> Markup:
    large, kind = (" large", "heat dense") if one.is_dense else ("", "heat")
    head = markup("\n<thead><tr><td></td>%s", joined(map(_head, one.columns)))
    rows = (
        markup(
            '<th scope="row">%s</th>%s',
            _broken(name),
            joined(place(each, dense=one.is_dense) for each in shades),
        )
        for name, shades in zip(one.rows, one.shades, strict=True)
    )
    return markup(
        '\n<section class="matrix%s" id="%s"><h3>%s</h3>\n<p class="caption">%s</p>%s%s</section>',
        large, one.anchor, line_of(one.title), one.caption,
        _scrolling("", one.caption, kind, head, rows), _below(one.lines),
    )  # fmt: skip


def _figure(one: ChartFigure | Picture, svg: Markup | None, kind: str, summary: str) -> Markup:
    content = _table(one.table)
    if svg:
        content = markup(
            '<div class="%s scroll" tabindex="0" role="group" aria-label="%s">%s</div>'
            "<details><summary>%s</summary>%s</details>",
            kind, one.title, svg, summary, content,
        )  # fmt: skip
    return markup(
        '\n<figure class="of-%s"%s><figcaption>%s</figcaption>%s%s</figure>',
        kind, given(' id="%s"', one.anchor), one.title, content, _below(one.lines),
    )  # fmt: skip


_FILES = (
    '<ul class="files">%s</ul>'
    "<noscript><p>The files are unpacked by JavaScript, which is turned off.</p></noscript>"
)


def _attached(number: int, file: Attachment) -> Markup:
    return markup(
        '<li><button type="button" class="download" data-file="f%s" data-name="%s" hidden>%s'
        '</button> <span>%s, %s</span><script type="text/plain" id="f%s">%s</script></li>',
        number, file.name, file.name, file.says, approximate_size(file.size), number,
        b64encode(file.packed).decode(),
    )  # fmt: skip


def block_of(block: Block, place: Places, pictures: Mapping[int, Markup | None]) -> Markup:
    """Renders a block. `pictures` has the drawn figures by their ids; a figure that was not drawn
    is a table."""
    match block:
        case Prose():
            return markup('<div class="prose">%s</div>', _paragraphs(block.lines))
        case Problem():
            return _problem(block)
        case Tiles():
            tile = '<div class="%s"><dt>%s</dt><dd>%s</dd></div>'
            named = (one for one in block.tiles if one.name)
            tiles = (markup(tile, one.tone, one.name, one.number) for one in named)
            return markup('<dl class="tiles">%s</dl>', joined(tiles))
        case Table():
            return _table(block)
        case Heat():
            return _heat(block, place)
        case ChartFigure():
            return _figure(block, pictures[id(block)], "chart", "The same as a table")
        case Picture():
            return _figure(block, pictures[id(block)], "picture", "As a table")
        case Code():
            content = line_of(block.caption), _file(block.lines)
            return markup('<div class="prose"><p>%s</p>%s</div>', *content)
        case Attachments():
            files = (_attached(number, file) for number, file in enumerate(block.files, 1))
            return markup(_FILES, joined(files))
