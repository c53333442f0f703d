"""Describes the machine of a run as a file for `--machine` (`linkgauge describe`)."""

from __future__ import annotations

import sys
from pathlib import Path

from linkgauge.cli.help_text import OTHER
from linkgauge.cli.options import Options, argument, option
from linkgauge.cli.proposals import labels


class DescribeOptions(Options):
    run: Path | None = argument(
        "RUN",
        "Describe the machine of this run: its folder, its run.json or its label. Default: the "
        "latest run of this machine.",
        offer=labels,
    )
    output: Path | None = option(OTHER, "Write to this file instead of stdout.", "FILE.yml", "-o")


def describe_run(asked: DescribeOptions) -> int:
    """Describe the machine of a run, to simulate it.

    The description has the parts of the machine as they were read, the rates that the run measured,
    how these vary, and the links that concurrent copies share. Its simulation gives the run's
    figures, and other figures of the same kinds. Other kinds are unknown.

    Examples:
        linkgauge describe -o mine.yml
        linkgauge describe before -o mine.yml"""
    from linkgauge.engine.kept.runs import one_run
    from linkgauge.model.units import count_of
    from linkgauge.report.files import write_asked

    from .runs import described_by

    found = described_by(one_run(asked.run, "describe"))
    if asked.output is None:
        print(found.text, end="")
    else:
        write_asked(asked.output, found.text.encode())
        print(f"described: {asked.output}")
    said = f"the machine gives {found.given} of {count_of(found.figures, 'figure')} as measured"
    others = f"; unknown: {', '.join(found.unknown)}" if found.unknown else ""
    print(f"{said}{others}", file=sys.stderr if asked.output is None else sys.stdout)
    return 0
