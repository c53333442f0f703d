"""Implements the option that writes remedies as a shell script."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from linkgauge.model.errors import InputError

from .help_text import OTHER
from .options import option

if TYPE_CHECKING:
    from linkgauge.judge.findings import Finding

FIX_SCRIPT = option(
    OTHER, "Also write the remedies as a shell script, to be read before it is run.", "FILE"
)


def write_fixes(path: Path | None, findings: Sequence[Finding], of: str) -> None:
    """Writes remedies for the machine `of` to the new file `path`, if given. Raises InputError if
    the file exists."""
    if path is None:
        return
    from linkgauge.report.words.fix_script import fix_script

    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(fix_script(findings, of))
    except FileExistsError:
        raise InputError(f"--fix-script {path} exists: give another name, or remove it") from None
    except OSError as error:
        raise InputError(f"--fix-script {path}: {error.strerror}") from error
