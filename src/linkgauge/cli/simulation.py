"""Reads the options that describe a simulated machine."""

from __future__ import annotations

from collections.abc import Sequence

from linkgauge.model.errors import InputError
from linkgauge.model.settings import Simulation


def simulation_of(
    machine: str | None, faults: Sequence[str] | None = None, change: str | None = None
) -> Simulation | None:
    """Returns the simulation that the options describe, or None for this machine. Raises InputError
    for an invalid description, fault or change."""
    if machine is None:
        if faults or change:
            flag, which = ("--fault", "") if faults else ("--change", " (mine: this one)")
            raise InputError(f"{flag} needs a simulated machine{which}: give --machine, too")
        return None
    from linkgauge.backends.sim.machine import described

    return described(machine, faults or (), change)
