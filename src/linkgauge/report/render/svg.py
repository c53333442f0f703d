"""Prepares vl-convert's charts for a page: adds texts for screen readers, removes scripts."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, tostring

from defusedxml.ElementTree import fromstring

from linkgauge.model.printable import printable

_SVG = "{http://www.w3.org/2000/svg}"
_DRAWN = frozenset({
    "svg", "g", "path", "line", "rect", "circle", "text", "tspan", "defs", "clipPath",
    "linearGradient", "stop",
})  # fmt: skip
_POINT = "graphics-symbol"
_LONG = re.compile(r"(\d+\.\d\d)\d+")
_EMPTY = "M0,0h0v0h0Z"
_USELESS = frozenset(
    {"class", "pointer-events", "aria-roledescription", "aria-hidden", "role", "aria-label"}
)


def cleaned(drawn: str, says: str) -> str:
    """Removes needless elements, attributes and digits from an SVG. Labels the SVG with `says`."""
    root = fromstring(drawn)
    _clean(root)
    root.attrib.pop("width", None)
    root.attrib.pop("height", None)
    root.set("xmlns", _SVG.strip("{}"))
    root.set("role", "img")
    root.set("aria-label", printable(says))
    return tostring(root, encoding="unicode")


def _clean(element: Element) -> None:
    element.tag = element.tag.removeprefix(_SVG)
    label = element.get("aria-label") if element.get("role") == _POINT else None
    element.attrib = {
        name: _LONG.sub(r"\1", value) if name in ("d", "transform") else value
        for name, value in element.attrib.items()
        if name not in _USELESS and not name.startswith(("on", "style", "{"))
    }
    if label and element.tag == "path":
        element.set("data-tip", label)
    for child in list(element):
        name = child.tag.removeprefix(_SVG)
        if name not in _DRAWN or child.get("d") == _EMPTY:
            element.remove(child)
        else:
            _clean(child)
