"""What a remedy may consist of, for the tests of every check."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from linkgauge.judge.findings import Finding
from linkgauge.report.words.remedies import as_command


def unmarked(remedy: Sequence[str]) -> Iterator[str]:
    """The lines that are neither a command, nor prose behind `# `, nor of a file."""
    in_file = False
    for line in remedy:
        is_prose = line.startswith("# ")
        in_file = not is_prose and (in_file or bool(re.fullmatch(r"\[\w+\]", line)))
        if not (is_prose or in_file or as_command(line)):
            yield line


def assert_pasteable(findings: Iterable[Finding]) -> None:
    """All remedies can be pasted into a shell as they stand."""
    assert [line for finding in findings for line in unmarked(finding.remedy)] == []
