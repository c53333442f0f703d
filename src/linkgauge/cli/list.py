"""`linkgauge list`: the benchmarks there are."""

from __future__ import annotations

from . import options


def list_benchmarks(*, prefix: options.Prefix = None, form: options.BenchmarksFormat) -> int:
    """List the benchmarks, with what each measures.

    Example: linkgauge list --prefix device_to_device
    """
    from linkgauge.benchmarks.catalog import select

    form.write("benchmarks", select((), prefix or ()))
    return 0
