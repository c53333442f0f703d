"""Durations are read as people write them."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.model.durations import format_duration, parse_duration
from linkgauge.model.errors import InputError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10s", 10), ("500ms", 0.5), ("15m", 900), ("15min", 900), ("1h", 3600), ("8 h", 28800),
        ("1h30m", 5400), ("1h 30m", 5400), ("2d", 172800), ("1w", 604800), ("0.5h", 1800),
        (" 8H ", 28800), ("5", 5), ("0.5", 0.5), (".5", 0.5), ("5 ", 5),
    ],
)  # fmt: skip
def test_what_people_write(text, seconds):
    assert parse_duration(text, "--for") == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "8.", "h", "8x", "-1h", "0s", "1e3s", "99999d", "8h!", "٣h"])
def test_anything_else_is_one_line(text):
    with pytest.raises(InputError, match=r"^--for ") as refused:
        parse_duration(text, "--for")
    assert "\n" not in str(refused.value)


@given(st.text(max_size=80))
def test_no_text_is_anything_but_seconds_or_refused(text):
    with suppress(InputError):
        assert parse_duration(text, "--for") > 0


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.25, "250 ms"), (12.5, "12.5 s"), (59.99, "60 s"), (60, "1 min"), (90, "1 min 30 s"),
        (3600, "1 h"), (5400, "1 h 30 min"), (28800, "8 h"), (90000, "1 d 1 h"),
    ],
)  # fmt: skip
def test_how_they_are_shown(seconds, shown):
    assert format_duration(seconds) == shown
