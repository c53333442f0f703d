"""Reads the tables that this package ships: products, settings and remarks."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TypeVar

import msgspec
import yaml

_T = TypeVar("_T")


@cache
def shipped(name: str, kind: type[_T]) -> _T:
    """A shipped YAML file as values of this type."""
    text = (resources.files(__package__) / name).read_text("utf-8")
    return msgspec.convert(yaml.safe_load(text), kind)
