"""Numbers and options of nccl-tests are read as strtol, sscanf and getopt_long read them there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat_kit import spoken
from linkgauge.compat.nccl_tests_options import NAMES, bytes_of, int_of, long_of, nccl_options
from linkgauge.model.errors import InputError

VALUES = {
    "t": "2", "g": "4", "b": "8", "e": "1G", "i": "2M", "f": "4", "n": "7", "m": "3", "w": "5",
    "N": "2", "p": "1", "c": "0", "o": "all", "d": "half", "r": "-1", "z": "2", "y": "1", "T": "9",
    "G": "0", "C": "0", "S": "1", "J": "x.json", "a": "3", "R": "2", "x": "-1", "D": "0", "V": "8",
    "M": "0", "u": "0", "I": "1", "K": "1",
}  # fmt: skip


def short_of(name):
    """The shortest beginning of a long name that no other has."""
    alike = [other for other in NAMES.values() if other != name]
    return next(
        name[:length]
        for length in range(1, len(name) + 1)
        if length == len(name) or not any(one.startswith(name[:length]) for one in alike)
    )


WRITTEN = [
    lambda letter, value: [f"-{letter}{value}"],
    lambda letter, value: [f"-{letter}", value],
    lambda letter, value: [f"--{NAMES[letter]}={value}"],
    lambda letter, value: [f"--{NAMES[letter]}", value],
    lambda letter, value: [f"--{short_of(NAMES[letter])}={value}"],
]


def outcome(arguments):
    try:
        return nccl_options("all_reduce_perf", arguments)
    except InputError as error:
        return str(error), error.exit_code


def test_every_option_has_a_value_here():
    assert set(VALUES) == set(NAMES) - {"h"}


@given(st.dictionaries(st.sampled_from(sorted(VALUES)), st.sampled_from(WRITTEN)))
def test_an_option_is_the_same_however_it_is_written(chosen):
    plain = [word for letter in chosen for word in WRITTEN[1](letter, VALUES[letter])]
    other = [word for letter, write in chosen.items() for word in write(letter, VALUES[letter])]
    assert outcome(plain) == outcome(other)


@given(st.integers(-(1 << 80), 1 << 80), st.sampled_from(["", "x", " 1", "K"]))
def test_whole_numbers_are_read_as_by_strtol(number, behind):
    limited = max(-(1 << 63), min((1 << 63) - 1, number))
    assert long_of(f"{number}{behind}") == limited
    assert int_of(f"{number}") == (limited + (1 << 31)) % (1 << 32) - (1 << 31)


@pytest.mark.parametrize(
    ("written", "number"),
    [("0x10", 16), ("010", 8), ("", 0), ("x", 0), (" +5", 5), ("0x", 0), ("09", 0), ("3.9", 3)],
)
def test_whole_numbers_in_other_bases(written, number):
    assert long_of(written) == number


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("8", 8), ("1K", 1024), ("1.5k", 1536), ("512MB", 512 << 20), ("1 G", 1 << 30),
        ("1e3", 1000), ("0x10", 16), (".5M", 1 << 19), ("2GiB", 2 << 30), ("0.4", 0),
    ],
)  # fmt: skip
def test_sizes(written, size):
    assert bytes_of(written, "minbytes") == size


@pytest.mark.parametrize("written", ["", "x", "1T", "-1K", "1e", "K", "1e30", "nan", "0x1p2000"])
def test_sizes_that_are_none(written):
    with pytest.raises(InputError):
        bytes_of(written, "maxbytes")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("-g", "option requires an argument -- 'g'"),
        ("--foo=1", "unrecognized option '--foo'"),
        ("--iters", "option '--iters' requires an argument"),
        ("--help=1", "option '--help' doesn't allow an argument"),
        ("--step", "option '--step' is ambiguous; possibilities: '--stepbytes' '--stepfactor'"),
    ],
)
def test_what_is_not_understood_is_said_as_by_getopt(words, says):
    done = spoken("all_reduce_perf", words)
    assert (done.returncode, done.stderr) == (0, f"all_reduce_perf: {says}\n")
