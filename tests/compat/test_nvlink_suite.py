"""What bandwidth_test and ping_pong share: options, and a table that replaces a file's content."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.compat.base import UsageError
from linkgauge.compat.nvlink_suite import Options, opened_table, parse
from linkgauge.model.errors import InputError, ResultsError


def test_each_tool_has_its_own_defaults():
    assert parse([], size="64", iterations=7) == Options(64, 7, None)
    assert parse(["--size", "4K", "--iter", "2", "--out", "x"], size="1", iterations=1) == Options(
        4096, 2, "x"
    )
    assert parse(["--out", "-"], size="1", iterations=1).out is None


@given(st.lists(st.text(max_size=8) | st.sampled_from(["--size", "4K", "--iter", "3", "--out"])))
def test_any_command_line_is_read_or_refused(arguments):
    try:
        asked = parse(arguments, size="64", iterations=10)
    except UsageError as error:
        assert str(error)
    else:
        assert asked.size > 0
        assert asked.iterations > 0


def test_a_table_takes_the_place_of_what_the_file_held(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("precious, and longer than the table\n" * 9)
    with opened_table(str(file)) as table:
        assert "precious" in file.read_text()
        table.write(("a", "b"), [(1, "x,y")])
    assert file.read_text() == 'a,b\n1,"x,y"\n'


def test_nothing_written_leaves_no_new_file_and_old_ones_alone(tmp_path):
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    old.write_text("precious\n")
    for file in (old, new):
        with pytest.raises(ZeroDivisionError), opened_table(str(file)):
            _ = 1 / 0
    assert old.read_text() == "precious\n"
    assert not new.exists()


def test_a_table_without_rows_is_written_to_stdout_alone(tmp_path, capsys):
    file = tmp_path / "t.csv"
    file.write_text("precious\n")
    for out in (str(file), None):
        with opened_table(out) as table:
            assert table.write(("a", "b"), []) is None
    assert file.read_text() == "precious\n"
    assert capsys.readouterr().out == "a,b\n"


def test_without_a_file_it_is_stdout(capsys):
    with opened_table(None) as table:
        table.write(("a",), [(1,)])
    assert capsys.readouterr().out == "a\n1\n"


def test_what_cannot_be_opened_or_written_is_said(tmp_path):
    with (
        pytest.raises(InputError, match=r"cannot write .*No such file"),
        opened_table(str(tmp_path / "missing" / "t.csv")),
    ):
        pass
    if sys.platform == "linux":
        with pytest.raises(ResultsError, match="No space left"), opened_table("/dev/full") as full:
            full.write(("a",), [(1,)])
