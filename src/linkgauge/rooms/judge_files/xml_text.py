"""Finds XML among other lines of an untrusted text."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

_MOST = 16 << 20
"""The most bytes of an element; lstopo's element for a host with 256 CPUs has 1 MiB."""


def xml_in(lines: Sequence[str], tag: str) -> tuple[Element, frozenset[int]] | None:
    """Returns the first whole element of this name, and the numbers of its lines."""
    begin = next((n for n, line in enumerate(lines) if f"<{tag}" in line), len(lines))
    end = next((n for n in range(begin, len(lines)) if f"</{tag}>" in lines[n]), None)
    if end is None:
        return None
    text = "\n".join(lines[begin : end + 1])
    text = text[text.index(f"<{tag}") : text.rindex(f"</{tag}>") + len(tag) + 3]
    if len(text) > _MOST:
        return None
    try:
        element: Element = fromstring(text, forbid_dtd=True)
    except (ParseError, DefusedXmlException, ValueError, RecursionError):
        return None
    return element, frozenset(range(begin, end + 1))
