"""Reads shipped tables; products.yml describes a product of which only the name is known."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib import resources
from typing import NamedTuple, TypeVar

import msgspec
import yaml

_T = TypeVar("_T")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Seven times as fast, but it ends the process at brackets nested deeply, so that it reads nothing
that comes from elsewhere."""


@cache
def shipped(name: str, kind: type[_T]) -> _T:
    text = (resources.files(__package__) / name).read_text("utf-8")
    return msgspec.convert(yaml.load(text, _LOADER), kind)  # noqa: S506


_COUNTED = re.compile(r"\s*(?:(\d{1,3})\s*[x×*]?\s*)?(\S.{0,60}?)(?:\s*[x×*]\s*(\d{1,3}))?\s*")
_BESIDE_A_NAME = re.compile(
    r"(?i)(?:\b(?:NVIDIA|AMD|Intel|Habana|AWS|Instinct|Radeon|Tesla|GeForce|Arc|Data Center|GPUs?"
    r"|SXM\d?|PCIe|OAM|NVL|HBM\d?e?|\d{2,3} ?Gi?B?|Tensor Core|Ti|SUPER|XTX?|PRO|AI|Ada|Generation)"
    r"\b|[\s_-])*"
)


_NO_VARIANT = r"(?! ?(?:Ti|SUPER|XTX?|GRE|M|S)\b)(?!.*\b(?:Laptop|Mobile|Max-Q)\b)"
"""What no name is followed by: such a word makes another product of it."""


class Vendor(NamedTuple):
    """A vendor. `space` names its memory (`cuda`); `named` matches models that no table lists."""

    pci: int
    space: str
    example: str = ""
    named: str = "(?!)"


VENDORS = {
    "nvidia": Vendor(0x10DE, "cuda", "8 x H100 SXM"),
    "amd": Vendor(0x1002, "hip", "8 x MI300X", r"AMD|Radeon|Instinct|\bVega\b|\bgfx\d"),
    "intel": Vendor(0x8086, "ze", "4 x Max 1550", r"Intel|\bArc\b"),
    "habana": Vendor(0x1DA3, "hpu", "8 x Gaudi 2"),
    "amazon": Vendor(0x1D0F, "neuron", "16 x Trainium 2"),
    "rebellions": Vendor(0x1EFF, "rbln", "4 x RBLN-CA"),
    "huawei": Vendor(0x19E5, "npu", named=r"\bAscend\b"),
    "graphcore": Vendor(0x1D95, "ipu"),
}


class Product(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    count: int
    memory: int
    rate: float
    pcie: tuple[float, int] | None = None
    links: tuple[str, int, float] | None = None
    c2c: float | None = None
    copies: float | None = None
    usual: str = ""
    fours: bool = False
    host: tuple[int, int, int, float] | None = None
    nvls: float | None = None
    peers: str = "all"
    reads: float | None = None
    reach: tuple[float, float] = (1.0, 1.0)
    vendor: str = "nvidia"
    ids: Mapping[str, str] = {}

    def __bool__(self) -> bool:
        return self is not UNKNOWN


UNKNOWN = Product("", count=0, memory=16, rate=1000)


def _products() -> tuple[Product, ...]:
    every: tuple[Product, ...] = shipped("products.yml", tuple[Product, ...])
    return every


def product_of(model: str | None) -> Product:
    found = _found(model or "")
    return found[0] if found is not None else UNKNOWN


@lru_cache
def _found(text: str, flags: int = 0) -> tuple[Product, str] | None:
    written = text, re.sub(r"[-_]", " ", text)
    for one in _products():
        for name in written:
            match = re.search(rf"\b(?:{one.name})(?![0-9]){_NO_VARIANT}", name, flags)
            if match is not None:
                return one, f"{name[: match.start()]} {name[match.end() :]}"
    return None


def model_of(device: str) -> str | None:
    names = (one.ids.get(device.lower().removeprefix("0x")) for one in _products())
    return next(filter(None, names), None)


def split_product(text: str) -> tuple[str, int] | None:
    """Returns name and number in `8 x H100 SXM` (by default, the usual server's), or None."""
    match = _COUNTED.fullmatch(text)
    found = _found(match[2], re.IGNORECASE) if match is not None else None
    if match is None or found is None or not _BESIDE_A_NAME.fullmatch(found[1]):
        return None
    if match[1] and match[3]:
        return None
    name = match[2] if product_of(match[2]) else match[2].upper()
    return name, int(match[1] or match[3] or found[0].count)
