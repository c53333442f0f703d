"""Draws a machine as SVG: parts of the PCI tree and a fabric's switches as bars, direct links as
brackets. (graphviz draws switches as dots, would add 5 MB, and has a wheel only for x86-64.)"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import NamedTuple

from linkgauge.model.grouped import grouped
from linkgauge.model.printable import printable
from linkgauge.report.blocks import DrawnLink, DrawnPart, Picture

BAR, GAP, LANE, EDGE, INSET = 26, 56, 20, 10, 14
"""Pixels: heights of a part, a link and a bracket, a margin, and the indent of the first link."""
LETTER = 6.7


_Lanes = list[list[tuple[float, float]]]


class _Box(NamedTuple):
    left: float
    right: float
    top: float = 0


def svg_of(picture: Picture, wide: int = 1290) -> str:
    first = _Drawing(picture, wide)
    first.draw()
    several = [name for name, bars in first.bars.items() if len(bars) > 1]
    drawing = _Drawing(picture, wide, several)
    width, height = drawing.draw()
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="machine" role="img" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">'
        f"<title>{_safe(picture.title)}</title><desc>{_safe(picture.says)}</desc>"
        f"{''.join(drawing.links)}{''.join(drawing.shapes)}</svg>"
    )


def alone(svg: str) -> str:
    """Returns a picture for use outside of a page: with its own style, in light colours."""
    page = file_of("page.css")
    style = style_of_pictures()
    for name, colour in re.findall(r"--([a-z-]+): (#\w+)", page.partition("@media")[0]):
        style = style.replace(f"var(--{name})", colour)
    return svg.replace("<title>", f"<style>{style}</style><title>", 1)


def file_of(name: str) -> str:
    return files(__package__).joinpath("files", name).read_text("utf-8")


def style_of_pictures() -> str:
    return file_of("picture.css")


class _Drawing:
    """Draws a machine. Each switch that `several` names is drawn as several joined bars."""

    def __init__(self, picture: Picture, wide: int, several: Sequence[str] = ()) -> None:
        self._picture, self._wide, self._several = picture, wide, several
        self._margin = EDGE * (1 + len(several))
        self._parts = {part.name: part for part in picture.parts}
        self._up = {j.a: j for j in picture.links if self._parts[j.a].above == j.b}
        self._free = [j for j in picture.links if self._up.get(j.a) is not j]
        self._at = grouped((end, joint) for joint in self._free for end in {joint.a, joint.b})
        self._below = grouped((part.above, part) for part in picture.parts if not part.level)
        texts = [text for joint in picture.links for text in _texts(joint)]
        levels = {part.name: part.level for part in picture.parts}
        texts += [_words(j) for j in self._free if not (levels[j.a] or levels[j.b])]
        self._stub = LETTER * max(map(len, texts), default=0) + 2 * INSET
        self._leaves, self._column = cache(self._find_leaves), cache(self._find_column)
        self._boxes: dict[str, _Box] = {}
        self._stubs: dict[str, int] = {}
        self.bars: dict[str, list[_Box]] = {}
        self.links: list[str] = []
        self.shapes: list[str] = []

    def draw(self) -> tuple[float, float]:
        spans = "".join(
            f'<tspan class="{span.tone}" dx="4">{_safe(span.text)}</tspan>'
            for span in self._picture.head
        )
        self.shapes.append(f'<text x="{EDGE - 4}" y="18">{spans}</text>')
        bottom = 30.0
        for row in self._rows():
            bottom = self._row(row, bottom) + 2 * EDGE
        for at, name in enumerate(self._several):
            self._trunk(EDGE * (1 + at), self.bars[name])
        head = LETTER * sum(len(span.text) for span in self._picture.head)
        return max((head, *(box.right for box in self._boxes.values()))) + EDGE, bottom

    # What stands where.

    def _find_leaves(self, name: str) -> list[str]:
        below = self._below.get(name)
        return [leaf for part in below for leaf in self._leaves(part.name)] if below else [name]

    def _find_column(self, leaf: str) -> float:
        kinds = [{self._parts[j.a].kind, self._parts[j.b].kind} for j in self._at.get(leaf, ())]
        stubs = max(1, sum("switch" in kind for kind in kinds))
        return max(self._stub * stubs, self._label(leaf)) + EDGE

    def _label(self, name: str) -> float:
        part = self._parts[name]
        word = LETTER * len(part.word) + 3 * EDGE if part.word else 0
        return LETTER * len(part.label) + 2 * EDGE + word

    def _rows(self) -> Iterator[list[str]]:
        tops = {
            leaf: top.name for top in self._below.get(None, ()) for leaf in self._leaves(top.name)
        }
        tops |= {top.name: top.name for top in self._below.get(None, ())}
        group = {top: top for top in tops.values()}
        met: dict[str, str] = {}
        for joint in self._free:
            one, other = (tops.get(end) or met.get(end) for end in (joint.a, joint.b))
            is_switch = self._parts[joint.b].kind == "switch"
            if one is not None and is_switch and self._parts[one].kind != "node":
                other = met.setdefault(joint.b, one)
            if one is not None and other is not None:
                kept, gone = group[one], group[other]
                if kept != gone:
                    group = {top: kept if of == gone else of for top, of in group.items()}
        row: list[str] = []
        for first, block in grouped((first, top) for top, first in group.items()).items():
            is_wide = self._wide_of(block) > self._wide
            separate = met and is_wide and self._parts[first].kind != "node"
            for some in [[top] for top in block] if separate else [block]:
                if row and self._wide_of([*row, *some]) > self._wide:
                    yield row
                    row = []
                row += some
        yield from [row] if row else []

    def _wide_of(self, tops: Sequence[str]) -> float:
        return sum(EDGE + sum(map(self._column, self._leaves(top))) for top in tops)

    def _row(self, row: Sequence[str], top: float) -> float:
        left: float = self._margin
        spans: dict[str, _Box] = {}
        for name in row:
            for leaf in self._leaves(name):
                spans[leaf] = _Box(left, left + self._column(leaf) - EDGE)
                left += self._column(leaf)
            spans[name] = _Box(spans[self._leaves(name)[0]].left, left - EDGE)
            left += EDGE
        within = [j for j in self._free if {j.a, j.b} <= spans.keys()]
        nodes = [j for j in within if self._parts[j.a].kind == "node"]
        top += self._brackets(nodes, spans, top, up=True)
        floor = top + max(self._depth(leaf) for name in row for leaf in self._leaves(name))
        for name in row:
            self._tree(name, top, floor, spans)
        direct = [j for j in within if j not in nodes]
        bottom = floor + BAR
        bottom += self._brackets(direct, spans, bottom, up=False)
        here = set(spans)
        for level in sorted({part.level for part in self._picture.parts if part.level}):
            bottom = self._switches(level, here, bottom)
        return bottom

    def _depth(self, name: str) -> float:
        above = self._parts[name].above
        step = BAR + (GAP if name in self._up else EDGE)
        return 0 if above is None else self._depth(above) + step

    def _tree(self, name: str, top: float, floor: float, spans: dict[str, _Box]) -> None:
        part, leaves = self._parts[name], self._leaves(name)
        is_last = part.kind in ("device", "nic")
        y = floor if is_last else top + self._depth(name)
        box = _Box(spans[leaves[0]].left, spans[leaves[-1]].right, y)
        self._box(part, box)
        if part.above is not None:
            joint = self._up.get(name, DrawnLink(name, part.above, ()))
            self._link(joint, box.left + INSET, self._boxes[part.above].top + BAR, y)
        for below in self._below.get(name, ()):
            self._tree(below.name, top, floor, spans)

    def _switches(self, level: int, here: set[str], top: float) -> float:
        lanes: _Lanes = []
        drawn: set[str] = set()
        for name in (part.name for part in self._picture.parts if part.level == level):
            ends = [(j, j.a if j.b == name else j.b) for j in self._at.get(name, ())]
            stubs = []
            for joint, end in ends:  # of a lower level, and drawn in this row
                if end in here:
                    at = self._stubs[end] = self._stubs.get(end, -1) + 1
                    box = self._boxes[end]
                    x = min(box.left + at * self._stub, box.right - 2 * INSET) + INSET
                    stubs.append((joint, x, box))
            if not stubs:
                continue
            left = self._margin if name in self._several else min(box.left for _, _, box in stubs)
            right = max(left + self._label(name), *(box.right for _, _, box in stubs))
            drawn.add(name)
            bar = _Box(left, right, top + GAP + _lane(lanes, left, right) * (BAR + GAP))
            self.bars.setdefault(name, []).append(bar)
            self._box(self._parts[name], bar)
            for joint, x, box in stubs:
                self._link(joint, x, box.top + BAR, bar.top)
        here |= drawn
        return top + len(lanes) * (GAP + BAR)

    def _brackets(
        self, joints: Sequence[DrawnLink], spans: dict[str, _Box], edge: float, *, up: bool
    ) -> float:
        lanes: _Lanes = []
        middle = {name: (spans[name].left + spans[name].right) / 2 for name in spans}
        ends = ((min(middle[j.a], middle[j.b]), max(middle[j.a], middle[j.b]), j) for j in joints)
        drawn = [
            (joint, left, right, _lane(lanes, left, right))
            for left, right, joint in sorted(ends, key=lambda each: each[1] - each[0])
        ]
        height = LANE * len(lanes) + EDGE * bool(lanes)
        begin, way = (edge + height, -LANE) if up else (edge, LANE)
        lowest: dict[float, int] = {}
        for _, left, right, lane in drawn:
            lowest.update({x: max(lane, lowest.get(x, 0)) for x in (left, right)})
        guides = "".join(f"M{x:.0f} {begin:.0f}v{way * (at + 1)}" for x, at in lowest.items())
        self.links.append(f'<path class="guide" d="{guides}"/>')
        for joint, left, right, lane in drawn:
            self._bracket(joint, left, right, begin + way * (lane + 1))
        return height

    # How it looks.

    def _box(self, part: DrawnPart, box: _Box) -> None:
        self._boxes[part.name] = box
        self.shapes.append(
            f'<rect class="{part.kind} {part.tone}" x="{box.left:.0f}" y="{box.top:.0f}" '
            f'width="{box.right - box.left:.0f}" height="{BAR}" rx="4"/>'
            f'<text x="{box.left + 8:.0f}" y="{box.top + 17:.0f}">{_safe(part.label)}'
            f'<tspan class="{part.tone}" dx="8">{_safe(part.word)}</tspan></text>'
        )
        if part.word:
            self._sign(part.tone, box.right - 12, box.top + 13)

    def _link(self, joint: DrawnLink, x: float, top: float, bottom: float) -> None:
        y = (top + bottom) / 2 + 12 - 7 * len(_texts(joint))
        lines = [_beside(text, x + 12, y + 14 * at) for at, text in enumerate(joint.texts)]
        if joint.word:
            lines.append(_beside(joint.word, x + 12, y + 14 * len(lines), joint.tone))
            self._sign(joint.tone, x, (top + bottom) / 2)
        self._drawn(joint, f"M{x:.0f} {top:.0f}V{bottom:.0f}", f"<text>{''.join(lines)}</text>")

    def _bracket(self, joint: DrawnLink, left: float, right: float, y: float) -> None:
        middle = (left + right) / 2
        tone = f" {joint.tone}" if joint.word else ""
        dots = "".join(f'<circle cx="{x:.0f}" cy="{y:.0f}" r="4"/>' for x in (left, right))
        at = f'x="{middle:.0f}" y="{y + 4:.0f}"'
        text = f'<text class="on{tone}" {at}>{_safe(_words(joint))}</text>'
        self._drawn(joint, f"M{left:.0f} {y:.0f}H{right:.0f}", dots + text)
        if joint.word:
            self._sign(joint.tone, left - INSET, y)

    def _drawn(self, joint: DrawnLink, path: str, text: str) -> None:
        kind = f"{joint.tone or 'dim'}{' marked' if joint.word else ''}"
        tip = f' data-tip="{_safe(joint.says)}"' if joint.says else ""
        self.links.append(f'<g{tip}><path class="{kind}" d="{path}"/>{text}</g>')

    def _sign(self, tone: str, x: float, y: float) -> None:
        self.shapes.append(
            f'<path class="sign {tone}" d="M{x:.0f} {y - 9:.0f}l9 16h-18z"/>'
            f'<text class="sign" x="{x:.0f}" y="{y + 5:.0f}">!</text>'
        )

    def _trunk(self, x: float, bars: Sequence[_Box]) -> None:
        ends = [bar.top + BAR / 2 for bar in bars]
        joined = "".join(f"M{x} {y:.0f}H{bar.left:.0f}" for bar, y in zip(bars, ends, strict=True))
        path = f"M{x} {ends[0]:.0f}V{ends[-1]:.0f}{joined}"
        self.links.append(f'<path class="trunk" d="{path}"/>')


def _lane(lanes: _Lanes, left: float, right: float) -> int:
    free = (n for n, taken in enumerate(lanes) if all(right < a or b < left for a, b in taken))
    if (lane := next(free, len(lanes))) == len(lanes):
        lanes.append([])
    lanes[lane].append((left, right))
    return lane


def _texts(joint: DrawnLink) -> tuple[str, ...]:
    return (*joint.texts, *([joint.word] if joint.word else ()))


def _words(joint: DrawnLink) -> str:
    return " ".join((*joint.texts[:1], *([joint.word] if joint.word else ())))


def _beside(text: str, x: float, y: float, tone: str = "") -> str:
    return f'<tspan class="{tone}" x="{x:.0f}" y="{y:.0f}">{_safe(text)}</tspan>'


def _safe(text: str) -> str:
    return escape(printable(" ".join(text.split())))
