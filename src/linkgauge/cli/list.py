"""`linkgauge list`: the benchmarks there are."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import Json


def list_benchmarks(
    prefix: Annotated[
        list[str] | None,
        typer.Option("--prefix", metavar="TEXT", help="Benchmarks that begin so. Repeatable."),
    ] = None,
    json: Json = False,
) -> int:
    """List the benchmarks, with what each measures.

    Example: linkgauge list --prefix device_to_device
    """
    from linkgauge.benchmarks.catalog import select
    from linkgauge.report.inventory import print_benchmarks

    print_benchmarks([(row.name, row.title) for row in select((), prefix or ())], as_json=json)
    return 0
