"""Constants that decide which parts are blamed. Other limits follow from them or are measured."""

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
"""The least loss of a part that few peers show, or that slow cells show. Half of it counts if
enough peers show it together: equal parts of healthy hardware differ by less (two H200s' links by
0.5 %, PCIe by 1.5 %: docs/benchmarks.md)."""
ENOUGH = 3
"""The fewest others that show what is usual: parts of the same kind, cells, or samples of a
cell."""
SPARED = 0.004
"""The cost of a cell that uses the blamed part and is not slow, in squared logarithms (6 % off).
Another part may be the cell's bottleneck, but the part with the fewest such cells explains best."""
PART = 5 * SPARED
"""The cost of blaming a part: half of it for one that counted errors, and half more for one that
was well at first or whose rate falls from cell to cell. A part that explains twice as much is a
failure, and one that is blamed together with a surer one if it explains five times as much: a cell
slowed by 27 %."""
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
SPIKE = 0.08
"""The share by which a spike lasts longer than the other samples."""
SIGMAS = 7.0
"""The standard deviations of the other samples, or of the machine's noise, by which a spike lasts
longer than these."""
SHOWN = 0.1
"""The loss that earlier runs must be able to show for a cell to be known not to have lost."""
MOST_TRIED = 400
"""The most parts that are tried: those that slow cells use most often. A cluster has thousands."""
MOST_CAUSES = 5
"""The most causes that are searched for at once, and the most sets of them that are kept to be
extended."""
