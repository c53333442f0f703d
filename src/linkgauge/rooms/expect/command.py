"""The command `linkgauge expect`: what hardware should reach, without measuring."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from linkgauge.cli import common
from linkgauge.cli.help_text import MACHINES, OUTPUT
from linkgauge.cli.options import Options, argument, option
from linkgauge.report.formats import JSON, Document, Format

if TYPE_CHECKING:
    from .expecting import ExpectedMachine

_BLOCKS = f"{__package__}.sections:blocks"
EXPECTATIONS = Document(
    "an expectation", _BLOCKS, {"json": JSON, "markdown": _BLOCKS}, "Expectation"
)


class ExpectOptions(Options):
    what: str | None = argument(
        "WHAT",
        'Say it of this, as --machine names it: ppu-8, "8 x H100 SXM", topo.txt. Default: this '
        "machine.",
    )
    change: str | None = option(
        MACHINES,
        "Change parts of it first: 'fabric=none pcie=4x16' (docs/what-if.md).",
        "PART=VALUE…",
        is_input=True,
    )
    backend: tuple[str, ...] = common.BACKEND
    output: Path | None = option(OUTPUT, "Write a page to this file.", "FILE.html|.pdf", "-o")
    form: Annotated[Format, EXPECTATIONS]


def expect(asked: ExpectOptions) -> int:
    """Say what hardware should reach, without measuring.

    Each figure has its arithmetic. A figure is called unknown if nothing is published about the
    product, for example.

    Examples:
        linkgauge expect
        linkgauge expect "8 x H100 SXM"
        linkgauge expect "8 x MI300X" -o expected.html
        linkgauge expect dgx-h200-8 --change 'pcie=4x16' --json"""
    from linkgauge.report.reading import page_of_document
    from linkgauge.report.render.writing import check_name, write_page

    if asked.output is not None:
        check_name(asked.output)
    found = expected(asked)
    if asked.output is None:
        asked.form.write(EXPECTATIONS, found)
    else:
        name = f"Expectation · {found.name or 'this machine'}"
        write_page(asked.output, page_of_document(EXPECTATIONS, found, name, simulated=False))
        print(f"report: {asked.output}")
    return 0


def expected(asked: ExpectOptions) -> ExpectedMachine:
    from .expecting import expectations_of

    what = asked.what or ("mine" if asked.change else None)
    return expectations_of(common.simulation_of(what, (), asked.change), asked.backend)
