"""`linkgauge list`: lists the available benchmarks."""

from __future__ import annotations

from .options import BenchmarksFormat


def list_benchmarks(*, prefix: list[str] | None = None, form: BenchmarksFormat) -> int:
    """List the benchmarks and what each one measures.

    Examples:
        linkgauge list
        linkgauge list --prefix device_to_device
    """
    from linkgauge.benchmarks.catalog import select

    form.write("benchmarks", select((), prefix or ()))
    return 0
