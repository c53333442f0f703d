"""The numbers that decide which parts are blamed, each with its meaning. All others follow from
them, or from what was measured."""

from __future__ import annotations

CHANCE = 0.001
"""The probability that chance alone makes any part of a healthy machine stand out. It is divided by
the number of parts, or cells, that are compared (Bonferroni)."""
UNSTEADY = 0.01
"""The same for a part that is called unsteady, which costs less."""
SLOW = 0.9
"""The share of its fastest peer's figure below which a cell is slow by itself. Equal cells differ
by some percent: a median of six samples with 2 % of noise errs by 1 %, the fastest of many by two
or three times that."""
LEAST_LOSS = 0.05
"""The least loss of a part that few peers show, or that slow cells show."""
SMALL_LOSS = 0.025
"""The least loss that all cells of a part show together: equal parts of healthy hardware differ by
less (two H200s' links by 0.5 %, PCIe by 1.5 %: docs/benchmarks.md)."""
ENOUGH_PEERS = 3
"""The other parts of its kind from which a part's peers show what is usual."""
SPARED = 0.004
"""The cost of a cell that uses the blamed part and is not slow, in squared logarithms (6 % off).
Another part may be the cell's bottleneck, but the part with the fewest such cells explains best."""
SPLIT = 3 * SPARED
"""The cost of a slow cell that loses what its part costs cells of other classes, and not those of
its own."""
PART = 5 * SPARED
"""The cost of blaming a part; half of it for one that counted errors."""
LATER = 2 * SPARED
"""The cost of blaming a part that was well at first, or whose rate falls from cell to cell."""
SURE = 10 * SPARED
"""The least gain in explained loss by which a part is a failure."""
SURE_BESIDE = 25 * SPARED
"""The same for a part that is blamed together with a surer one: as much as one cell that is slowed
by 27 %."""
QUIET = 0.001
"""The relative standard deviation that any figure has."""
NOISE = 0.02
"""The relative standard deviation that the samples of any machine may have."""
SCATTER = 0.035
"""The relative standard deviation from which samples scatter: the deviation of few samples is off
by a third."""
MORE_SCATTER = 1.5
"""The least ratio of a part's scatter to that of its peers. The noise that any machine may have is
added to both."""
LEAST_SHOWN = 3
"""The fewest samples from which a cell shows whether one stands out, and roughly how much the
others vary."""
SPIKE = 0.08
"""The share by which a spike lasts longer than the other samples."""
SIGMAS = 7.0
"""The standard deviations of the other samples, or of the machine's noise, by which a spike lasts
longer than these; half of them for one that is about as long as those of steady cells."""
SHOWN = 0.1
"""The loss that earlier runs must be able to show for a cell to be known not to have lost."""
