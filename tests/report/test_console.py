"""How wide output is, and what a stream's encoding lacks."""

import io

import pytest

from command_kit import called
from linkgauge.report.console import WIDE, make_console

NO_SIZE = ("", " 7", "wide", "0", "-5", "²", "7.5", "9" * 30)


@pytest.mark.parametrize(("columns", "width"), [("72", 72), *((no, WIDE) for no in NO_SIZE)])
def test_a_pipe_is_as_wide_as_columns_says_or_unlimited(monkeypatch, columns, width):
    monkeypatch.setenv("COLUMNS", columns)
    assert make_console().width == width


@pytest.mark.parametrize("size", NO_SIZE)
def test_what_is_no_size_of_a_terminal_hides_nothing(size):
    words = "devices", "--machine", "ppu-2x2"
    done = called(*words, COLUMNS=size, LINES=size)
    assert done.stdout == called(*words, COLUMNS="100000").stdout
    assert "sim:0" in done.stdout


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
