"""Packages that only some commands need, imported when they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from linkgauge.model.errors import MissingPackage


def needed(module: str, extra: str) -> Any:
    """The module of a package. Raises MissingPackage, which names the extra that installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingPackage(module.partition(".")[0], extra) from error
