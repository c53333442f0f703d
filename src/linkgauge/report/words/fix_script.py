"""Writes all remedies as a shell script that does nothing until a person confirms it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from linkgauge.judge.findings import Finding
from linkgauge.model.printable import printable

from .groups import equivalent_findings, subjects_of
from .remedies import Command, RemedyText, Step, WrittenFile, steps

_HEAD = """\
#!/bin/sh
# Remedies for what linkgauge's doctor found on {of}.
# Read all of it, remove what you do not want and fill in what is missing. Then set
# confirmed=yes. Commands that need root are marked "needs root".
set -eu
confirmed=no
if [ "$confirmed" != yes ]; then
    echo "$0: did nothing: read the script first, then set confirmed=yes" >&2
    exit 1
fi
"""


def fix_script(findings: Sequence[Finding], of: str) -> str:
    """Returns the script for a machine, `of`. Prose, files, and commands that a person must edit or
    run by hand become comments."""
    lines = [_HEAD.format(of=printable(of))]
    given: dict[tuple[str, ...], str] = {}
    remedied = (one for one in equivalent_findings(findings) if one[0].remedy)
    for first, subjects in ((one[0], subjects_of(one)) for one in remedied):
        lines.append(_comment(f"{first.severity} {first.check}  {subjects}: {first.found}"))
        if first.why:
            lines.append(_comment(f"why: {first.why}"))
        if first.remedy in given:
            lines.append(_comment(f"what helps is the same as for {given[first.remedy]!r}, above"))
        else:
            given[first.remedy] = first.name
            for step in steps(first.remedy):
                lines += _lines(step)
        lines.append("")
    return "\n".join(lines if given else (*lines, "# nothing to fix\n"))


def _comment(text: str) -> str:
    return f"# {printable(text)}"


def _lines(step: Step) -> Iterator[str]:
    if isinstance(step, RemedyText):
        yield _comment(step.text)
    elif isinstance(step, WrittenFile):
        yield from _file(step)
    else:
        yield from _command(step)


def _command(step: Command) -> Iterator[str]:
    if step.comment:
        yield _comment(step.comment)
    marks = ["needs root"] if step.needs_root else []
    marks += [f"fill in {', '.join(step.placeholders)}"] if step.placeholders else []
    marks += ["after the address above is filled in"] if step.needs_variables else []
    marks += ["by hand"] if step.by_hand else []
    if marks:
        yield _comment(f"{', '.join(marks)}:")
    if step.placeholders or step.needs_variables or step.by_hand:
        yield _comment(step.line)
    else:
        yield f"{step.line} || true" if step.only_looks else step.line


def _file(step: WrittenFile) -> Iterator[str]:
    yield "# needs root: to write the file, remove `# ` from here to the line EOF"
    yield f"# cat > {shlex.quote(step.path)} <<'EOF'"
    yield from (f"# {line}".rstrip() for line in step.lines)
    yield "# EOF"
