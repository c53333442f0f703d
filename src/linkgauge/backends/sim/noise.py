"""How figures of a simulated machine vary, by the kind of path that they are of."""

from __future__ import annotations

import math

import msgspec

from .quantities import Fraction


class Noise(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The relative standard deviations of `samples`, of the `repetitions` of a cell, and of a cell
    between `runs`. A part of the repetitions, `far`, is disturbed. A disturbed repetition is slower
    by an exponential draw of mean `by`. Each of its samples takes a share of that draw, uniform
    from 0 to 2."""

    samples: Fraction = Fraction(0)
    repetitions: Fraction = Fraction(0)
    runs: Fraction = Fraction(0)
    far: Fraction = Fraction(0)
    by: Fraction = Fraction(0)

    def beside(self, *others: float) -> Noise:
        """Returns this noise, with other causes that vary samples."""
        samples = Fraction(math.hypot(self.samples, *others))
        return msgspec.structs.replace(self, samples=samples)
