"""Student's t and Fisher's F, which the standard library and numpy lack; scipy is no dependency."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

_MANY = 1e8
"""From this many degrees of freedom on, t counts as normal."""
_TINY = 1e-300
_STEPS = 300
"""The most steps of the continued fraction, and towards a quantile. A few dozen suffice here."""
_REACH = 9.0
"""The most of a step towards a quantile, as a logarithm."""


def two_sided(t: float, degrees: float) -> float:
    """Returns the probability of |T| ≥ |t| (Abramowitz and Stegun, 26.7.1 and 26.5.27)."""
    if degrees >= _MANY:
        return math.erfc(abs(t) / math.sqrt(2))
    return _beta(degrees / 2, 0.5, degrees / (degrees + t * t))


@lru_cache(maxsize=4096)
def critical(p: float, degrees: float) -> float:
    """Returns the t that |T| exceeds with the probability p, by Newton's method in logarithms."""
    t, power = -NormalDist().inv_cdf(p / 2), (degrees + 1) / 2
    if degrees >= _MANY:
        return t
    scale = math.lgamma(power) - math.lgamma(degrees / 2) - math.log(math.pi * degrees) / 2
    for _ in range(_STEPS):
        found = math.log(_kept(two_sided(t, degrees)))
        slope = math.log(2 * t) + scale - power * math.log1p(t * t / degrees) - found
        step = (found - math.log(p)) / math.exp(slope)
        t *= math.exp(min(step, _REACH))
        if t > 1e150:
            return math.inf
        if abs(step) < 1e-9:  # the next step would be as small as its square
            break
    return t


def shift_found(p: float, degrees: float, power: float) -> float:
    """Returns the least shift (in standard errors) that a test finds with probability `power`."""
    bound = critical(p, degrees)
    wide = math.sqrt(1 + bound * bound / (2 * degrees))
    return bound * (1 - 1 / (4 * degrees)) + NormalDist().inv_cdf(power) * wide


def beyond(ratio: float, degrees: float, of: float) -> float:
    """Returns the probability of F > `ratio`, for F with `degrees` and `of` degrees of freedom."""
    return _beta(of / 2, degrees / 2, of / (of + degrees * ratio))


def _beta(a: float, b: float, x: float) -> float:
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, 1 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    c, d = 1.0, 1 / _kept(1 - (a + b) * x / (a + 1))
    found = d
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _kept(1 + term * d)
            c = _kept(1 + term / c)
            found *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return found


def _kept(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


_STEP = 1e-3
"""The step of differences: digamma and trigamma are exact to six digits."""


@lru_cache(maxsize=4096)
def digamma(x: float) -> float:
    return (math.lgamma(x + _STEP) - math.lgamma(x - _STEP)) / (2 * _STEP)


@lru_cache(maxsize=4096)
def trigamma(x: float) -> float:
    """Returns the variance of the logarithm of χ² with 2 x degrees of freedom."""
    return (math.lgamma(x + _STEP) - 2 * math.lgamma(x) + math.lgamma(x - _STEP)) / _STEP**2
