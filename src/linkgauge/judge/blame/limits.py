"""Constants that decide which parts are blamed. Other limits follow from them or are measured."""

from __future__ import annotations

CHANCE = 0.001
"""The probability that chance alone makes any of the compared parts or cells stand out."""
UNSTEADY = 0.01
"""The same for a part that is called unsteady, which costs less."""
SLOW = 0.9
"""The share of its fastest peer's figure below which a cell is slow by itself: with 2 % of noise, a
median of six samples errs by 1 %, and the fastest of many by two or three times that."""
LEAST_LOSS = 0.05
"""The least loss of a part, and twice that which enough peers show: equal parts of healthy hardware
differ by less (two H200s' links by 0.5 %, PCIe by 1.5 %: docs/benchmarks.md)."""
ENOUGH = 3
"""The fewest others that show what is usual: parts of a kind, cells, or samples of a cell."""
SPARED = 0.004
"""The cost of a cell that uses the blamed part and is not slow, in squared logarithms (6 % off):
another part may be its bottleneck."""
PART = 5 * SPARED
"""The cost of blaming a part: half for one that counted errors, half more for one that was well at
first, or that drifts. What explains twice as much is a failure; beside a surer part, five times."""
QUIET = 0.001
"""The relative standard deviation that any figure has."""
NOISE = 0.02
"""The relative standard deviation that the samples of any machine may have."""
SCATTER = 0.035
"""The relative standard deviation from which samples scatter: of few, it is off by a third."""
SHARED = 0.1
"""What copies on shared healthy hosts do not exceed: scatter 0.095, 0.07 of samples are spikes."""
MORE_SCATTER = 1.5
"""The least ratio of a part's scatter to that of its peers, with `NOISE` added to both."""
SPIKE = 0.08
"""The share by which a spike lasts longer than the other samples."""
SIGMAS = 7.0
"""The standard deviations of the other samples, or of the machine's noise, that a spike exceeds."""
SHOWN = 0.1
"""The loss that earlier runs must be able to show for a cell to be known not to have lost."""
MOST_TRIED = 400
"""The most parts that are tried: those that slow cells use most often. A cluster has thousands."""
MOST_CAUSES = 5
"""The most causes that are searched for at once, and the most sets that are kept to be extended."""
