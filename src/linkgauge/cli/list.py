"""Implements `linkgauge list`, which lists the available benchmarks."""

from __future__ import annotations

from linkgauge.report.formats import BENCHMARKS, NAMES_OF_BENCHMARKS

from . import common
from .help_text import OUTPUT
from .options import Options, option


class ListOptions(Options):
    prefix: tuple[str, ...] = common.PREFIX
    verbose: bool = option(OUTPUT, "Describe each benchmark.", flags="-v --verbose")
    form: common.BenchmarksFormat


def list_benchmarks(asked: ListOptions) -> int:
    """List the benchmarks by what they measure.

    With --prefix or -v, shows what each benchmark measures, and which profiles of linkgauge run
    include it.

    Examples:
        linkgauge list
        linkgauge list --prefix device_to_device
    """
    from linkgauge.benchmarks.catalog import select

    described = bool(asked.prefix) or asked.verbose or asked.form.is_document
    document = BENCHMARKS if described else NAMES_OF_BENCHMARKS
    asked.form.write(document, select((), asked.prefix))
    return 0
