"""Text is wrapped at words, whatever it is and however narrow; signs are those of the encoding."""

import io

import pytest
from rich.cells import cell_len

from command_kit import called
from linkgauge.report.console import make_console


@pytest.mark.parametrize("width", [27, 31, 40, 60, 79, 100])
def test_no_word_is_lost_and_lines_go_on_indented(width):
    """Of what is found, whose commands stay whole."""
    words = ("doctor", "--machine", "vm-degraded")
    whole, text = (
        called(*words, COLUMNS=each).stdout.partition("to fix it:")[0] for each in (999, width)
    )
    assert text.split() == whole.split()
    lines = text.splitlines()
    assert [line for line in lines if cell_len(line) > width and len(line.split()) > 1] == []
    begin = next(at for at, line in enumerate(lines) if line.startswith("fail "))
    why = next(at for at, line in enumerate(lines) if line.startswith("    why: "))
    assert why - begin > 1
    assert all(line.startswith("    ") and line[4] != " " for line in lines[begin + 1 : why])


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("utf-8", "±2% ▁▃█ 0.4▼↓ → é"),
        ("latin-1", "±2% _,# 0.4v| > é"),
        ("ascii", "~2% _,# 0.4v| > ?"),
    ],
)
def test_signs_that_the_encoding_lacks_are_replaced_by_ones_as_wide(encoding, shown):
    console = make_console()
    console.file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console.print("±2% ▁▃█ 0.4▼↓ → é")
    console.file.flush()
    assert console.file.buffer.getvalue().decode(encoding) == f"{shown}\n"
