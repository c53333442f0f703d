"""Describes the machine of a run, with the kinds of figures that its simulation reproduces."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import yaml

from linkgauge.model.documents.result import Run
from linkgauge.model.errors import InputError
from linkgauge.model.grouped import grouped

from .fitting import fit
from .run_figures import Figure, Tree, figures_of, noises_of, simulated

NEAR = 0.10
"""How far a simulated figure may be from the measured one."""
_MOST_OF_KIND = 0.75
"""The part of a kind's figures that the simulation gives, or else the kind is unknown."""


class Measured(NamedTuple):
    """A machine's description. `figures` is the number of measured figures, and `given` the number
    of those that a simulation of the description reproduces."""

    text: str
    figures: int
    given: int
    unknown: tuple[str, ...]


def measured(run: Run, structure: Tree) -> Measured:
    """Describes a machine by its parts and a run's figures. Raises InputError without figures."""
    figures = figures_of(run)
    if not figures:
        raise InputError("the run has no figures: nothing describes the machine's rates")
    tree, given = fitted(structure, figures)
    host = run.machine.host.hostname or "this machine"
    tree["source"] = f"measured on {host}, run {run.id}; {tree['source']}"
    tree["noises"] = noises_of(run)
    kinds = dict.fromkeys(one.known_by for one in figures)
    unknown = tuple(kind for kind in kinds if kind not in tree["known"])
    text = yaml.safe_dump(tree, sort_keys=False, allow_unicode=True)
    return Measured(text, len(figures), given, unknown)


def fitted(structure: Tree, figures: Sequence[Figure]) -> tuple[Tree, int]:
    """Returns the description, and how many figures of known kinds its simulation reproduces."""
    tree = fit(structure, figures)
    found = grouped(
        (one.known_by, is_near(one, other, NEAR))
        for one, other in zip(figures, simulated(tree, figures), strict=True)
    )
    known = {kind: near for kind, near in found.items() if sum(near) >= _MOST_OF_KIND * len(near)}
    return tree | {"known": [*known]}, sum(map(sum, known.values()))


def is_near(figure: Figure, other: float | None, near: float) -> bool:
    return other is not None and abs(math.log(other / figure.value)) <= math.log1p(near)
