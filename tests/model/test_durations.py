"""Durations are read as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_kit import called


def repeated_for(text):
    """`linkgauge run --for`, without measuring."""
    return called(
        "run", "device_local_copy", "--machine", "riscv-2gpu", "--dry-run", f"--for={text}"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("10s", "10 s"), ("500ms", "500 ms"), ("15m", "15 min"), ("15min", "15 min"),
        ("90s", "1 min 30 s"), ("1h", "1 h"), ("8 h", "8 h"), ("1h30m", "1 h 30 min"),
        ("1h 30m", "1 h 30 min"), ("25h", "1 d 1 h"), ("2d", "2 d"), ("1w", "7 d"),
        ("0.5h", "30 min"), (" 8H ", "8 h"), ("5", "5 s"), ("12.5", "12.5 s"), (".25", "250 ms"),
        ("59.99s", "60 s"), ("5 ", "5 s"),
    ],
)  # fmt: skip
def test_what_people_write(text, shown):
    done = repeated_for(text)
    assert " ".join(done.stdout.split()).endswith(f"repeated for {shown}")


@pytest.mark.parametrize("text", ["", "8.", "h", "8x", "-1h", "0s", "1e3s", "99999d", "8h!", "٣h"])
def test_anything_else_is_one_line(text):
    done = repeated_for(text)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("linkgauge: --for ")


@given(st.text(max_size=80).filter(lambda text: "\0" not in text))
def test_no_text_is_anything_but_a_time_or_refused(text):
    done = repeated_for(text)
    assert (done.returncode, "repeated for" in done.stdout) in ((0, True), (2, False))
