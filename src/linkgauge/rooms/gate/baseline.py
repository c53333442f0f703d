"""The command `linkgauge baseline`: makes a baseline of several runs, for comparison with later
runs."""

from __future__ import annotations

from pathlib import Path

from linkgauge.cli.help_text import OUTPUT, PRECISION
from linkgauge.cli.options import Options, argument, option
from linkgauge.cli.proposals import labels
from linkgauge.model.errors import InputError
from linkgauge.report.formats import Document

BASELINE = Document("a baseline", f"{__package__}.sections:baseline")


class BaselineOptions(Options):
    runs: tuple[Path, ...] = argument(
        "RUN...",
        "Runs of one machine, or of alike ones: files, folders of runs, labels.",
        required=True,
        offer=labels,
    )
    output: Path = option(
        OUTPUT, "Write the baseline to this file.", "FILE", "-o", default=Path("baseline.json")
    )
    write_limits: Path | None = option(
        OUTPUT, "Also write limits for run and gate to this file.", "FILE"
    )
    min_loss: str = option(
        PRECISION, "Leave room for this loss in these limits.", "LOSS", default="3%"
    )


def baseline(asked: BaselineOptions) -> int:
    """Make a baseline of several runs, or of alike machines.

    The file keeps each run's figures. The text says how much they vary, and names the outliers.
    Five runs or more make a good baseline.

    Examples:
        linkgauge baseline results/nvidia-h200/before
        linkgauge baseline before after -o two.json
        linkgauge baseline before --write-limits limits.yml"""
    from linkgauge.engine.controller import now
    from linkgauge.judge.compare.baseline import baseline_of
    from linkgauge.judge.compare.likeness import unlike
    from linkgauge.model.units import parse_fraction
    from linkgauge.report.blocks import said
    from linkgauge.report.files import json_document, write_asked
    from linkgauge.report.formats import TERMINAL, formats
    from linkgauge.uses.sides import side_of

    from .words import baseline_limits

    room = parse_fraction(asked.min_loss, "minimum loss")
    # Runs of different labels that began in the same second have the same id.
    found = list({(run.id, run.label, run.machine.host.hostname): run
                  for path in asked.runs for run in side_of(path)}.values())  # fmt: skip
    sides = [[run] for run in found]
    names = [run.name for run in found]
    apart = [fact for fact in unlike(sides) if fact.name != "machine"]
    if apart:
        raise InputError(f"unlike runs make no baseline: {apart[0].name}: {said(apart[0], names)}")
    made = baseline_of(found, now())
    formats()[TERMINAL].write(BASELINE, made)
    write_asked(asked.output, json_document(made).encode())
    print(f"baseline: {asked.output}")
    if asked.write_limits is not None:
        write_asked(asked.write_limits, baseline_limits(made, room).encode())
        print(f"limits: {asked.write_limits}")
    return 0
