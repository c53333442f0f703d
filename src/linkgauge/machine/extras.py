"""Imports optional packages when they are first needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from linkgauge.model.errors import MissingPackage


def needed(module: str, extra: str) -> Any:
    """Imports a module. Raises MissingPackage, which names the extra to install."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingPackage(module.partition(".")[0], extra) from error
