"""Sizes and fractions as people type them."""

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.model.errors import InputError
from linkgauge.model.units import MOST_SIZES, format_size, parse_fraction, parse_size, parse_sizes


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4K", 4096), ("512M", 512 << 20), ("1G", 1 << 30), ("2T", 2 << 40), ("0x100000", 1 << 20),
        ("0X10", 16), ("1", 1), ("100", 100), ("64MiB", 64 << 20),
        ("64 MiB".replace(" ", ""), 64 << 20), ("3kb", 3072), (" 8m ", 8 << 20), ("0100", 100),
    ],
)  # fmt: skip
def test_sizes_are_powers_of_two_and_a_bare_number_is_bytes(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["0", "0K", "0x0", "-1", "-4K", "", "K", "1.5G", "1e9", "4Q", "٤K"]
)
def test_what_is_no_positive_size_is_refused_in_one_line(text):
    with pytest.raises(InputError) as caught:
        parse_size(text)
    assert "\n" not in str(caught.value)


@given(st.text(max_size=40))
def test_no_text_raises_anything_but_an_input_error(text):
    for parse in (parse_size, parse_sizes, parse_fraction):
        with suppress(InputError):
            parse(text)


@given(st.integers(1, 1 << 60))
def test_a_size_is_read_back_as_it_was_formatted(size):
    assert parse_size(format_size(size).replace(" ", "")) == size


KI = 1 << 10


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("1K:16K:x2", (KI, 2 * KI, 4 * KI, 8 * KI, 16 * KI)), ("1K:16K:X4", (KI, 4 * KI, 16 * KI)),
        ("64K:256K:+64K", (64 * KI, 128 * KI, 192 * KI, 256 * KI)),
        ("1K:10K:x3", (KI, 3 * KI, 9 * KI)), ("1K:4K:+2K", (KI, 3 * KI)), ("4K:4K:x2", (4 * KI,)),
        ("64,1K:4K:x2,3K", (64, KI, 2 * KI, 4 * KI, 3 * KI)),
        ("1K:4K:x2,2K:8K:x2", (KI, 2 * KI, 4 * KI, 8 * KI)),
        (" 1K : 4K : x2 ", (KI, 2 * KI, 4 * KI)),
    ],
)  # fmt: skip
def test_a_sweep_multiplies_or_adds_and_ends_with_the_last_size_not_beyond(text, sizes):
    assert parse_sizes(text) == sizes


@given(st.integers(1, 1 << 20), st.integers(0, 1 << 40), st.integers(2, 1 << 20))
def test_a_sweep_by_a_factor_holds_each_power_up_to_its_end(first, more, factor):
    last = first + more
    sizes = parse_sizes(f"{first}:{last}:x{factor}")
    assert sizes == tuple(first * factor**n for n in range(len(sizes)))
    assert sizes[-1] <= last < sizes[-1] * factor


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1K:1G", "not understood: a sweep is 1K:1G:x2 or 64K:1M:+64K"),
        ("1K:1G:2", "not understood"), (":1G:x2", "not understood"), ("1K::x2", "not understood"),
        ("1:2:3:x2", "not understood"), ("1G:1K:x2", "starts above its end"),
        ("1K:1G:x1", "whole number from 2 on"), ("1K:1G:x0", "whole number from 2 on"),
        ("1K:1G:x1.5", "whole number from 2 on"), ("1K:1G:x-2", "whole number from 2 on"),
        ("1K:1G:x", "whole number from 2 on"), ("1K:1G:+0", "a positive size, such as +64K"),
        ("1K:1G:+0x0", "a positive size, such as +64K"),
        ("1K:1G:+", "a positive size, such as +64K"),
        ("1:1T:+1", "1099511627776 sizes: give at most 64"), ("0:1K:x2", "size 0"),
        (",".join(map(str, range(1, 66))), "65 sizes are too many: give at most 64"),
    ],
)  # fmt: skip
def test_a_sweep_that_is_none_is_refused_in_one_line(text, why):
    with pytest.raises(InputError, match=re.escape(why)) as caught:
        parse_sizes(text)
    assert "\n" not in str(caught.value)


@given(st.text("0123456789KMG:x+, ", max_size=24))
def test_what_resembles_a_sweep_is_few_sizes_or_refused(text):
    with suppress(InputError):
        assert 1 <= len(parse_sizes(text)) <= MOST_SIZES


@pytest.mark.parametrize(
    ("text", "value"), [("0.01", 0.01), ("1%", 0.01), (".5", 0.5), ("5 %", 0.05), ("1e-05", 1e-5)]
)
def test_a_precision_is_a_fraction_or_a_percentage(text, value):
    assert parse_fraction(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["0", "1", "100%", "-1%", "nan", "", "1%%", "inf"])
def test_a_precision_lies_between_nothing_and_everything(text):
    with pytest.raises(InputError):
        parse_fraction(text)
