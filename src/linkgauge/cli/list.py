"""`linkgauge list`: lists the available benchmarks."""

from __future__ import annotations

from linkgauge.report.formats import BENCHMARKS, NAMES_OF_BENCHMARKS

from .help_text import OUTPUT
from .options import BenchmarksFormat, Option, own


@own(verbose=Option("Describe each benchmark.", flag="-v --verbose", heading=OUTPUT))
def list_benchmarks(
    *, prefix: list[str] | None = None, verbose: bool = False, form: BenchmarksFormat
) -> int:
    """List the benchmarks by what they measure.

    With --prefix or -v, shows for each what it measures, and the profiles of linkgauge run that
    measure it.

    Examples:
        linkgauge list
        linkgauge list --prefix device_to_device
    """
    from linkgauge.benchmarks.catalog import select

    described = bool(prefix) or verbose or form.is_document
    document = BENCHMARKS if described else NAMES_OF_BENCHMARKS
    form.write(document, select((), prefix or ()))
    return 0
