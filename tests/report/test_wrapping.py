"""Text is wrapped at words, whatever it is and however narrow the console."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from linkgauge.report.wrapping import Hanging
from report.test_output import text_console

WORDS = st.lists(st.text(st.characters(codec="ascii", categories=("L", "N", "P")), min_size=1))


def wrapped(text, indent, width):
    console = text_console(width=width)
    console.print(Hanging(Text(text), indent))
    return console.file.getvalue().splitlines()


def test_continuation_lines_are_indented():
    assert wrapped("warn stall  cpu:0: some samples stand out", 4, 20) == [
        "warn stall  cpu:0:",
        "    some samples",
        "    stand out",
    ]


def test_a_long_word_stays_whole():
    assert wrapped("in results/cpu/default now", 2, 10) == ["in", "  results/cpu/default", "  now"]


def test_an_indent_of_its_own_is_kept_and_never_stands_alone():
    assert wrapped("    averylongword x", 6, 8) == ["    averylongword", "      x"]


def test_a_line_break_in_a_text_begins_no_line():
    assert wrapped("a\nrm -rf /", 4, 80) == ["a�rm -rf /"]


def test_wide_letters_count_twice():
    assert wrapped("線路 線路", 0, 8) == ["線路", "線路"]


def test_colours_are_kept():
    console = text_console(width=8, force_terminal=True)
    console.print(Hanging(Text("one two three", "red"), 2))
    assert console.file.getvalue().count("\x1b[31m") == 2


@given(WORDS, st.integers(0, 12), st.integers(1, 40))
def test_no_word_is_lost_and_no_line_too_wide_but_for_one_word(words, indent, width):
    lines = wrapped(" ".join(words), indent, width)
    assert " ".join(lines).split() == words
    for line in lines:
        assert cell_len(line) <= width or len(line.split()) == 1
