"""Chooses collectives from a command's options."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

from linkgauge.model.errors import InputError

from . import common
from .options import one_of

if TYPE_CHECKING:
    from linkgauge.model.operations.collective import CollectiveChoice

_MOST_RANKS = 4096
_T = TypeVar("_T", bound=str)


def choice_of(given: common.CollectiveOptions) -> CollectiveChoice:
    """Returns the choice of collectives. Raises InputError for values that no collective takes."""
    from linkgauge.model.operations.collective import NUMBERS, REDUCTIONS, CollectiveChoice

    default = CollectiveChoice()
    return CollectiveChoice(
        _listed("--types", given.types, NUMBERS) if given.types else default.types,
        _listed("--reductions", given.reductions, REDUCTIONS)
        if given.reductions
        else default.reductions,
        _ranks(given.roots) if given.roots else default.roots,
        _split(given.split),
        given.aggregate or 1,
        given.blocking,
        given.graphed,
        given.registered,
    )


def _listed(option: str, text: str, known: Iterable[_T]) -> tuple[_T, ...]:
    """Returns the names in a comma-separated list, each once. `all` means all known names."""
    there = tuple(known)
    if text.strip() == "all":
        return there
    names = [name.strip() for name in text.split(",")]
    return tuple(dict.fromkeys(one_of(option, name, there) for name in names))


def _ranks(text: str) -> tuple[int, ...]:
    numbers = [one.strip() for one in text.split(",")]
    if not all(one.isascii() and one.isdecimal() and len(one) < 6 for one in numbers):
        raise InputError(f"--roots {text}: give ranks such as 0,1")
    return tuple(dict.fromkeys(map(int, numbers)))


def _split(text: str | None) -> str | None:
    if text is not None:
        from linkgauge.model.operations.collective import colors_of

        try:
            colors_of(text, _MOST_RANKS)
        except ValueError as error:
            raise InputError(f"--split {error}") from None
    return text
