"""Reads values of XML elements. A garbled value raises an InputError that names the element."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar
from xml.etree.ElementTree import Element

from linkgauge.model.errors import InputError

from .domain import MOST, scale

HOW = "give what `virsh dumpxml NAME` writes"

Value = TypeVar("Value")


def said(element: Element | None, name: str) -> str | None:
    return None if element is None else element.get(name)


def attribute(element: Element | None, name: str, read: Callable[[str], Value]) -> Value | None:
    """Returns an attribute's value, None if missing. Raises InputError if it is garbled."""
    text = said(element, name)
    if element is None or text is None:
        return None
    return _tried(f"<{element.tag} {name}={short(text)}>", text, read)


def required(element: Element, name: str, read: Callable[[str], Value]) -> Value:
    value = attribute(element, name, read)
    if value is None:
        raise InputError(f"<{element.tag}> has no {name}: {HOW}")
    return value


def known(element: Element, names: Iterable[str], read: Callable[[str], Value]) -> dict[str, Value]:
    return {name: required(element, name, read) for name in names if name in element.attrib}


def content(element: Element | None, read: Callable[[str], Value]) -> Value | None:
    """Returns the value of an element's text, or None without one. Raises InputError if garbled."""
    if element is None:
        return None
    text = element.text or ""
    return _tried(f"<{element.tag}> says {short(text.strip())}", text, read)


def keyed(
    elements: Iterable[Element], key: str, read: Callable[[Element], Value]
) -> dict[int, Value]:
    """Returns values by attribute `key`. Raises InputError if a number is missing or repeated."""
    found: dict[int, Value] = {}
    for element in elements:
        index = required(element, key, number)
        if index in found:
            raise InputError(f"it has two <{element.tag}> for {key} {index}: keep one")
        found[index] = read(element)
    return found


def size_of(element: Element | None) -> int | None:
    """Returns the size that an element states, in bytes, rounded up to a KiB as libvirt does."""
    size = content(element, sized_in(said(element, "unit")))
    return None if size is None else -(-size // 1024) * 1024


def sized_in(unit: str | None) -> Callable[[str], int]:
    """Returns a function that reads a number in this unit (None: KiB), and returns bytes."""
    bytes_ = scale(unit or "KiB")
    return lambda text: number(text, digits=20) * bytes_


def number(text: str, digits: int = 9) -> int:
    if not re.fullmatch(rf"\s*[0-9]{{1,{digits}}}\s*", text, re.ASCII):
        raise ValueError(f"give a number of at most {digits} digits that is not negative")
    return int(text)


def count(text: str) -> int:
    if not 1 <= (found := number(text)) <= MOST:
        raise ValueError(f"give a number from 1 to {MOST}")
    return found


def register(text: str) -> int:
    """Reads a part of an address: `0x1b` or `27`."""
    if not re.fullmatch(r"\s*(?:0[xX][0-9a-fA-F]{1,16}|[0-9]{1,18})\s*", text, re.ASCII):
        raise ValueError("give a number such as 0x1b or 27")
    return int(text, 16 if "x" in text.lower() else 10)


def short(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}…")


def _tried(what: str, text: str, read: Callable[[str], Value]) -> Value:
    try:
        return read(text)
    except ValueError as error:
        raise InputError(f"{what}: {error}") from error
