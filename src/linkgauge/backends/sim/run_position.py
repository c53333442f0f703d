"""How a run's simulated time passes, and how its random numbers are made."""

from __future__ import annotations

import math

import msgspec

from linkgauge.model.errors import Phase

from .quantities import Fraction

_MASK = (1 << 64) - 1
_HALF = 1 << 32
_TURN = 2 * math.pi


class Noise(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The noise of figures. `samples`, `repetitions` and `runs` are relative standard deviations:
    between samples, between a cell's repetitions, and between runs. `far` is the fraction of
    repetitions that a disturbance slows. `by` is the mean fraction by which a disturbance slows."""

    samples: Fraction = Fraction(0)
    repetitions: Fraction = Fraction(0)
    runs: Fraction = Fraction(0)
    far: Fraction = Fraction(0)
    by: Fraction = Fraction(0)


class RunPosition:
    """A run's simulated time and random numbers. The numbers depend only on seed, `draw` (which
    selects the noise), cell, repetition and sample, not on processes or earlier cells."""

    def __init__(self, seed: int, draw: int = 0) -> None:
        self._seed = _mix(seed) if not draw else _mix(_mix(seed) ^ draw)
        self._factors: dict[Noise, tuple[float, float]] = {}  # and how much a disturbance slows
        self.now = 0.0
        self._at: tuple[int, int] | None = None
        self.enter(0, "plan", 0, 0)

    def enter(self, cell: int, phase: Phase, repetition: int = 0, taken: int = 0) -> None:
        """Starts a phase of a cell that has `taken` samples already."""
        self.sample = taken if phase == "measure" else 0
        # A warm-up has the first repetition's noise: a resumed run chooses the same loops.
        repetition = 0 if phase == "warm up" else repetition
        if self._at == (cell, repetition):
            return  # another phase of the same repetition: the draws stay
        self._at = cell, repetition
        self._factors = {}
        self._drawn = _mix(self._seed ^ cell)

    def pass_by(self, seconds: float) -> None:
        self.now += seconds
        self.sample += 1

    def noise(self, number: int, noise: Noise) -> float:
        """Returns a random factor near 1 (log-normal) for the transfer `number` of this sample."""
        if noise not in self._factors:
            tag = (self._at or (0, 0))[1] + 2
            repetition, run = _mix(self._drawn ^ tag << 48), _mix(self._drawn ^ 1 << 48)
            far = _mix(repetition ^ 1)
            factor = math.exp(noise.repetitions * _normal(repetition) + noise.runs * _normal(run))
            is_disturbed = _part(_mix(far)) < noise.far
            slowed = -noise.by * math.log(_part(far)) if is_disturbed else 0.0
            self._factors[noise] = factor, slowed
        factor, disturbed = self._factors[noise]
        if not (noise.samples or disturbed):
            return factor
        bits = _mix(self._drawn ^ (self.sample << 20 | number))
        if disturbed:
            factor *= 1 + disturbed * 2 * _part(_mix(bits))
        return factor * math.exp(noise.samples * _normal(bits))


def _part(bits: int) -> float:
    return (bits % _HALF + 0.5) / _HALF


def _normal(bits: int) -> float:
    """Converts 64 random bits to a normally distributed number (Box and Muller 1958)."""
    radius = math.sqrt(-2 * math.log(_part(bits)))
    return radius * math.cos(_TURN * (bits >> 32) / _HALF)


def _mix(value: int) -> int:
    """Returns a hash of 64 bits (SplitMix64: Steele, Lea and Flood 2014)."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _MASK
    return value ^ value >> 31
