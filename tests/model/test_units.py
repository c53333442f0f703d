"""Sizes and fractions as people type them."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.model.errors import InputError
from linkgauge.model.units import (
    BANDWIDTH,
    LATENCY,
    format_size,
    parse_fraction,
    parse_size,
    parse_sizes,
    unit_of,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4K", 4096),
        ("512M", 512 << 20),
        ("1G", 1 << 30),
        ("2T", 2 << 40),
        ("0x100000", 1 << 20),
        ("0X10", 16),
        ("1", 1),
        ("100", 100),
        ("64MiB", 64 << 20),
        ("64 MiB".replace(" ", ""), 64 << 20),
        ("3kb", 3072),
        (" 8m ", 8 << 20),
        ("0100", 100),
    ],
)
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


def test_a_list_of_sizes_keeps_its_order_and_says_each_once():
    assert parse_sizes("1M,4K,0x100000") == (1 << 20, 4096)


@pytest.mark.parametrize(
    ("text", "value"), [("0.01", 0.01), ("1%", 0.01), (".5", 0.5), ("5 %", 0.05)]
)
def test_a_precision_is_a_fraction_or_a_percentage(text, value):
    assert parse_fraction(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["0", "1", "100%", "-1%", "nan", "", "1%%", "inf"])
def test_a_precision_lies_between_nothing_and_everything(text):
    with pytest.raises(InputError):
        parse_fraction(text)


def test_units_know_their_scale_and_direction():
    assert (BANDWIDTH.scale, BANDWIDTH.better) == (1e9, "higher")
    assert (LATENCY.scale, LATENCY.better) == (1e-9, "lower")
    assert unit_of("B/s") is BANDWIDTH
    assert unit_of("furlong").shown == "furlong"
