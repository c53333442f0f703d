"""Writes a report of one run, or of several runs that are compared."""

from __future__ import annotations

from pathlib import Path

from linkgauge.model.errors import InputError
from linkgauge.report.blocks import Page
from linkgauge.report.files import write_asked

from .drawing import Drawer
from .html import html_of

REPORT_FILE = "report.html"
FORMATS = (".html", ".pdf")


def check_name(path: Path) -> None:
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{path}: a report is .html or .pdf")


def write_page(path: Path, page: Page, drawer: Drawer | None = None) -> None:
    """Writes PDF if the path ends in .pdf, else HTML. `drawer` draws the charts. Raises
    MissingPackage if PDF needs a package, InputError or ResultsError if writing fails."""
    with drawer or Drawer() as own:
        if path.suffix.lower() == ".pdf":
            from .pdf import pdf_of

            content = pdf_of(page, own)
        else:
            content = html_of(page, own).encode("utf-8", "replace")
    write_asked(path, content)
