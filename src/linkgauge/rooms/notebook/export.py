"""The command `linkgauge export`: writes a kept run as a table for other programs."""

from __future__ import annotations

from pathlib import Path

from linkgauge.cli import common
from linkgauge.cli.help_text import OTHER
from linkgauge.cli.options import Options, argument, option
from linkgauge.cli.proposals import labels
from linkgauge.model.errors import InputError
from linkgauge.report.formats import SAMPLES, SUMMARY


class ExportOptions(Options):
    run: Path | None = argument(
        "RUN",
        "The run: its run.json, its folder, or what `pack` wrote. Default: the latest run of this "
        "machine.",
        offer=labels,
    )
    form: common.ExportFormat
    samples: bool = option(OTHER, "Write every raw sample instead of a row for each cell.")
    output: Path | None = option(OTHER, "Write to this file instead of stdout.", "FILE", "-o")


def export(asked: ExportOptions) -> int:
    """Write a stored run as CSV, JSON, Markdown, JUnit, SARIF or Parquet.

    A row stands for a cell, or with --samples for a raw sample. Exits with 0 however the run
    ended: `linkgauge show` exits with the code of the run.

    Examples:
        linkgauge export --markdown
        linkgauge export --csv --samples -o samples.csv
        linkgauge export --junit -o junit.xml
    """
    from linkgauge.engine.kept.runs import one_run, read_run
    from linkgauge.report.files import write_asked
    from linkgauge.report.reading import judged

    if not asked.form.is_document:
        raise InputError(
            "give a format: --csv, --json, --markdown, --junit, --sarif, --hwloc or --parquet"
        )
    found = judged(read_run(one_run(asked.run, "export")))
    document = SAMPLES if asked.samples else SUMMARY
    if asked.output is None:
        asked.form.write(document, found)
        return 0
    write_asked(asked.output, asked.form.document(document, found))
    print(f"exported: {asked.output}")
    return 0
