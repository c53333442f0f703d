"""Shows how the machines and settings of configurations differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from linkgauge.judge.compare.configurations import ConfigurationComparison
from linkgauge.report.blocks import Block, fact_table
from linkgauge.report.results import label
from linkgauge.report.sections import Section, SeveralRuns


def fact_tables(comparisons: Sequence[ConfigurationComparison]) -> Iterator[Block]:
    """Yields a table of differing facts for each accelerator that has several configurations."""
    for one in comparisons:
        labels = [label(side.name) for side in one.found.sides]
        where = label(one.accelerator) if len(comparisons) > 1 else ""
        if len(labels) > 1:
            yield fact_table(one.facts, labels, where)


def _of_runs(several: SeveralRuns) -> Iterator[Block]:
    return fact_tables(several.comparisons)


SECTION = Section("facts", "What differs", 75, of_runs=_of_runs)
