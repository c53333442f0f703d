"""generate_report of the vCPU benchmark suite: a report of all configurations below a folder.

Source: the suite's page: `generate_report.py [results_dir] [-o output.html|.pdf]`, with
results/report.html where no file is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from linkgauge.cli.tool import Parser, UsageError, Where, hinting
from linkgauge.report.reading import page_of
from linkgauge.report.render.drawing import Drawer
from linkgauge.report.render.writing import REPORT_FILE, check_name, write_page

TOOL = "generate_report"
HELP = """\
Usage: generate_report [results_dir] [-o output.html|.pdf]

Writes a report of all configurations below results_dir (default: results), grouped by GPU.

  -o FILE  Write to this file (default: report.html in results_dir)."""
RESULTS = Path("results")


@hinting(HELP.splitlines()[0])
def run(arguments: Sequence[str], _where: Where) -> int:
    """Writes the report."""
    if {"-h", "--help"} & set(arguments):
        print(HELP)
        return 0
    folder, output = parse(arguments)
    with Drawer() as drawer:
        write_page(output, page_of([folder]), drawer)
    print(f"report: {output}")
    return 0


def parse(arguments: Sequence[str]) -> tuple[Path, Path]:
    """The folder of results and the report's file. Raises UsageError."""
    parser = Parser()
    parser.add_argument("results_dir", nargs="?", default=str(RESULTS))
    parser.add_argument("-o", "--output", default=None)
    given = parser.parse_args(list(arguments))
    folder = Path(given.results_dir)
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder of results")
    output = Path(given.output) if given.output else folder / REPORT_FILE
    check_name(output)
    return folder, output
