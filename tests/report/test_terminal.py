"""Text is wrapped at words, whatever it is and however narrow; signs are those of the encoding."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from command_kit import called
from linkgauge.report.console import make_console
from linkgauge.report.wrapping import Hanging

WORDS = st.lists(st.text(st.characters(codec="ascii", categories=("L", "N", "P")), min_size=1))


def wrapped(text, indent, width):
    console = make_console(file=io.StringIO())
    console.width = width
    console.print(Hanging(Text(text), indent))
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize(
    ("text", "indent", "width", "lines"),
    [
        ("warn stall  cpu:0: some samples stand out", 4, 20,
         ["warn stall  cpu:0:", "    some samples", "    stand out"]),
        ("in results/cpu/default now", 2, 10, ["in", "  results/cpu/default", "  now"]),
        ("    averylongword x", 6, 8, ["    averylongword", "      x"]),
        ("a\nrm -rf /", 4, 80, ["a�rm -rf /"]),
        ("線路 線路", 0, 8, ["線路", "線路"]),
    ],
)  # fmt: skip
def test_continuation_lines_are_indented_and_words_stay_whole(text, indent, width, lines):
    assert wrapped(text, indent, width) == lines


@given(WORDS, st.integers(0, 12), st.integers(1, 40))
def test_no_word_is_lost_and_no_line_too_wide_but_for_one_word(words, indent, width):
    lines = wrapped(" ".join(words), indent, width)
    assert " ".join(lines).split() == words
    for line in lines:
        assert cell_len(line) <= width or len(line.split()) == 1


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


@pytest.mark.parametrize("size", ["", "wide", "0", "-5", "7.5", "9" * 30])
def test_what_is_no_size_of_a_terminal_hides_nothing(size):
    words = "devices", "--machine", "ppu-2x2"
    done = called(*words, COLUMNS=size, LINES=size)
    assert done.stdout == called(*words, COLUMNS="100000").stdout
    assert "sim:0" in done.stdout
