"""What a product is, where only its name is told: `products.yml`, a line for each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources

import msgspec
import yaml

_COUNTED = re.compile(r"\s*(?:(\d{1,3})\s*[x×*]?\s*)?(\S.{0,60}?)\s*")


class Product(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What products.yml says of one."""

    name: str
    count: int
    memory: int
    rate: float
    pcie: tuple[float, int] | None = None
    links: tuple[str, int, float] | None = None
    c2c: float | None = None
    copies: float | None = None
    usual: str = ""
    peers: str = "all"
    reach: tuple[float, float] = (1.0, 1.0)
    amd: bool = False
    ids: Mapping[str, str] = {}


@cache
def products() -> tuple[Product, ...]:
    text = (resources.files(__package__) / "products.yml").read_text("utf-8")
    return msgspec.convert(yaml.safe_load(text), tuple[Product, ...])


def product_of(model: str | None) -> Product | None:
    """The product that a name is of."""
    name = re.sub(r"[-_]", " ", model or "")
    for one in products():
        if re.search(rf"\b(?:{one.name})(?![0-9])", model or "") or re.search(
            rf"\b(?:{one.name})(?![0-9])", name
        ):
            return one
    return None


def model_of(device: str) -> str | None:
    """The name of the accelerator that has this number as a PCI device, in hexadecimal."""
    names = (one.ids.get(device.lower().removeprefix("0x")) for one in products())
    return next(filter(None, names), None)


def split_product(text: str) -> tuple[str, int] | None:
    """A product's name and how many there are: what is said, else those of its usual server. None
    of what names no product."""
    match = _COUNTED.fullmatch(text)
    if match is None or (product := product_of(match[2])) is None:
        return None
    return match[2], int(match[1] or product.count)
