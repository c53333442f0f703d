"""Student's t, central and noncentral, and functions for the degrees of freedom of variances. scipy
is no dependency, so the code is linkgauge's own. Tests compare it with tables and identities."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

_MANY = 1e8
"""From this many degrees of freedom on, t counts as normal."""
_TINY = 1e-300
_STEPS = 300
"""The most steps of the continued fraction, and towards a quantile. A few dozen suffice here."""
_POINTS = 160
"""The number of points of the integral over the estimated deviation. Errors are below 1e-6."""
_REACH = 9.0
"""How far the integral over the estimated deviation reaches on either side, in standard
deviations."""


def two_sided(t: float, degrees: float) -> float:
    """Returns the probability of |T| ≥ |t|, by the regularized incomplete beta function (Abramowitz
    and Stegun, 26.7.1 and 26.5.27)."""
    if degrees >= _MANY:
        return math.erfc(abs(t) / math.sqrt(2))
    if math.isinf(t):
        return 0.0
    return _beta(degrees / 2, 0.5, degrees / (degrees + t * t))


@lru_cache(maxsize=4096)
def critical(p: float, degrees: float) -> float:
    """Returns the t that |T| exceeds with the probability p, below 1.

    log p is concave in log t. Newton's steps from the normal distribution's t, which is too small,
    therefore pass the solution at most once and then fall towards it."""
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


@lru_cache(maxsize=4096)
def shift_found(p: float, degrees: int, power: float) -> float:
    """Returns the true difference that a two-sided test at the level p finds with this power. The
    difference is in standard errors. It is the noncentrality for which T exceeds the critical value
    with the probability `power`."""
    bound = critical(p, degrees)
    if math.isinf(bound):
        return math.inf
    low, high = 0.0, 2 * bound + 10
    short, beyond = (_exceeds(bound, degrees, shift) - power for shift in (low, high))
    while beyond < 0:
        low, short, high = high, beyond, high * 2
        beyond = _exceeds(bound, degrees, high) - power
    # The Illinois method: where the chord is zero replaces one end; of an end that stays twice in a
    # row, the value counts half.
    stayed = 0
    while high - low > 1e-9 * high:
        between = high - beyond * (high - low) / (beyond - short)
        off = _exceeds(bound, degrees, between) - power
        if abs(off) < 1e-12:
            return between
        if off < 0:
            low, short, beyond = between, off, beyond / (2 if stayed > 0 else 1)
            stayed = 1
        else:
            high, beyond, short = between, off, short / (2 if stayed < 0 else 1)
            stayed = -1
    return high


def _exceeds(bound: float, degrees: int, shift: float) -> float:
    """Returns the probability that a noncentral T exceeds the bound."""
    root = math.sqrt(2)
    return (
        sum(share * math.erfc((bound * s - shift) / root) for s, share in _deviations(degrees)) / 2
    )


@lru_cache(maxsize=256)
def _deviations(degrees: int) -> tuple[tuple[float, float], ...]:
    """Returns estimated deviations and the weight of each, for Simpson's rule."""
    spread = 1 / math.sqrt(2 * degrees)
    low, high = max(1e-9, 1 - _REACH * spread), 1 + _REACH * spread
    width = (high - low) / _POINTS
    found = []
    for point in range(_POINTS + 1):
        s = low + width * point
        # Density of s up to a constant, which the sum replaces.
        density = math.exp((degrees - 1) * math.log(s) - degrees * (s * s - 1) / 2)
        found.append((s, density * (1 if point in (0, _POINTS) else 4 if point % 2 else 2)))
    total = math.fsum(density for _, density in found)
    return tuple((s, density / total) for s, density in found)


def _beta(a: float, b: float, x: float) -> float:
    """Returns I_x(a, b), the regularized incomplete beta function."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, 1 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    """Returns the continued fraction of I_x(a, b), by Lentz's method (Press et al., Numerical
    Recipes, 6.4)."""
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
    """Returns the value, moved away from zero if it is too small for a divisor."""
    return value if abs(value) > _TINY else _TINY


@lru_cache(maxsize=4096)
def digamma(x: float) -> float:
    """Returns the derivative of log Γ (Abramowitz and Stegun, 6.3.5 and 6.3.18)."""
    total = 0.0
    while x < 8:
        total -= 1 / x
        x += 1
    y = 1 / (x * x)
    return total + math.log(x) - 0.5 / x - y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y / 240)))


@lru_cache(maxsize=4096)
def trigamma(x: float) -> float:
    """Returns the derivative of digamma (6.4.6 and 6.4.12), which is the variance of the logarithm
    of χ² with 2 x degrees of freedom."""
    total = 0.0
    while x < 8:
        total += 1 / (x * x)
        x += 1
    y = 1 / (x * x)
    return total + 1 / x + y / 2 + y / x * (1 / 6 - y * (1 / 30 - y * (1 / 42 - y / 30)))


@lru_cache(maxsize=4096)
def trigamma_inverse(value: float) -> float:
    """Returns the x whose trigamma is this positive value."""
    low, high = 1 / math.sqrt(value) / 2, 2 / min(value, math.sqrt(value)) + 1
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if trigamma(middle) > value else (low, middle)
    return high
