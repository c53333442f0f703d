"""Text of others as it leaves the program: shown where it does no harm, marked where it does."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.model.printable import all_printable, escaped, printable


@pytest.mark.parametrize(
    "text",
    ["", "NVIDIA H200", "feature/x", "線路 前 ü 🚀", "a\\b|c", "::1", "[::]:9410", "std::vector",
     "50 % ## [x]", "a ::error:: b", "قبل"],
)  # fmt: skip
def test_ordinary_text_stays_as_it_is(text):
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("two\nlines", "two�lines"), ("\x1b[31m\x07", "�[31m�"), ("\x9b31m\x7f", "�31m�"),
        ("\u202egnp.exe\u2066\u200f", "�gnp.exe��"), ("\u2028\u2029\x85", "���"),
        ("\udcff\ufffe\U000e0041", "���"), ("::error::x", "�:error::x"),
        ("  ::set-output name=a::x", "  �:set-output name=a::x"), ("a ##[error]x", "a �#[error]x"),
        ("##vso[task.setvariable]", "�#vso[task.setvariable]"),
    ],
)  # fmt: skip
def test_what_does_harm_is_marked(text, shown):
    assert printable(text) == shown


@given(st.text(st.characters()))
def test_any_text_is_printable_and_as_long_as_before(text):
    shown = printable(text)
    assert shown.isprintable()
    assert len(shown) == len(text)
    assert printable(shown) == shown
    assert all(line.isprintable() for line in printable(text, "\n").split("\n"))


@given(st.recursive(st.text() | st.floats(allow_nan=False) | st.none() | st.booleans(),
                    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))  # fmt: skip
def test_json_reads_back_the_same_and_is_printable(value):
    for ascii_alone in (False, True):
        document = json.dumps(value, ensure_ascii=ascii_alone).encode()
        assert json.loads(escaped(document)) == value
        assert escaped(document).decode().isprintable()


def test_values_of_any_depth_are_cleaned():
    found = all_printable({"a": ["x\n", {"b": ("\x1b", 1, None)}]})
    assert found == {"a": ["x�", {"b": ["�", 1, None]}]}
