"""The command line of nccl-tests is read as getopt_long, strtol and sscanf read it there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat_kit import speak
from linkgauge.compat.base import UsageError
from linkgauge.compat.nccl_tests_options import (
    NAMES,
    Rejected,
    Unable,
    bytes_of,
    int_of,
    long_of,
    nccl_options,
)

MI = 1 << 20
VALUES = {
    "t": "2", "g": "4", "b": "8", "e": "1G", "i": "2M", "f": "4", "n": "7", "m": "3", "w": "5",
    "N": "2", "p": "1", "c": "0", "o": "all", "d": "half", "r": "-1", "z": "2", "y": "1", "T": "9",
    "G": "0", "C": "0", "S": "1", "J": "x.json", "a": "3", "R": "2", "x": "-1", "D": "0", "V": "8",
    "M": "0", "u": "0", "I": "1", "K": "1",
}  # fmt: skip


def read(*arguments):
    return nccl_options("all_reduce_perf", arguments)


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


def test_every_option_has_a_value_here():
    assert set(VALUES) == set(NAMES) - {"h"}


@given(st.dictionaries(st.sampled_from(sorted(VALUES)), st.sampled_from(WRITTEN)))
def test_an_option_is_the_same_however_it_is_written(chosen):
    plain = [word for letter in chosen for word in WRITTEN[1](letter, VALUES[letter])]
    other = [word for letter, write in chosen.items() for word in write(letter, VALUES[letter])]
    assert outcome(plain) == outcome(other)


def outcome(arguments):
    try:
        return read(*arguments)
    except UsageError as error:
        return str(error), error.exit_code


WORDS = st.one_of(
    st.sampled_from([f"-{letter}" for letter in NAMES] + [f"--{name}" for name in NAMES.values()]),
    st.text(max_size=12),
    st.from_regex(r"\A-{1,2}[a-zA-Z_]{1,9}=?[0-9.eExXpP+\-]{0,12}[KMGT]?\Z"),
)


@given(st.lists(WORDS, max_size=6))
def test_anything_is_read_or_refused(arguments):
    found = outcome(arguments)
    assert found[1] in (5, 255) if isinstance(found, tuple) else found.iterations > 0 or found.help


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


@pytest.mark.parametrize("written", ["", "x", "8B", "1T", "-1", "-1K", "1e", "K"])
def test_sizes_that_are_none(written):
    with pytest.raises(Rejected, match=r"^invalid size specified for 'maxbytes'$"):
        read("-e", written)


@pytest.mark.parametrize("written", ["1e30", "inf", "nan", "0x1p2000"])
def test_sizes_beyond_all_memory(written):
    with pytest.raises(Unable, match="larger than any memory"):
        read("-e", written)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("-b", "2G", "-e", "1G"),
         "invalid sizes for 'minbytes' and 'maxbytes': 2147483648 > 1073741824"),
        (("-D1",),
         "device implementation (-D > 0) requires enabling symmetric memory registration (-R 2)"),
    ],
)  # fmt: skip
def test_what_is_rejected_there_is_here_in_the_same_words(capfd, arguments, says):
    done = speak(capfd, "all_reduce_perf", *arguments)
    assert (done.code, done.out, done.err) == (255, "", f"{says}\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("-D", "1", "-R", "2"), ("-u", "1"), ("-C", "1"), ("-g", "0"), ("-g", "x"), ("-n", "0"),
        ("-m", "0"), ("-b", "0"), ("-i", "0"), ("-f", "-2"), ("-a", "4"), ("-z", "4"),
        ("-R", "3"), ("-t", "-1"),
    ],
)  # fmt: skip
def test_what_it_cannot_do_is_refused_in_one_line(capfd, arguments):
    done = speak(capfd, "all_reduce_perf", *arguments)
    assert (done.code, done.out) == (5, "")
    assert len(done.err.splitlines()) == 1
    assert done.err.startswith(arguments[0]) or "-i, -f" in done.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("-V", "200"), ("device_cta_count (-V) must be positive and less than 128, got 200. Using "
                        "default value 16.")),
        (("-I", "2"), "per-iteration timing (-I) only supports 0=off or 1=on. Disabling."),
        (("-I", "1", "-G", "1"),
         "per-iteration timing (-I) is incompatible with CUDA graph mode (-G). Disabling."),
        (("-z", "3", "-G", "1"),
         "blocking mode (-z 3) is incompatible with CUDA graph mode (-G). Disabling."),
        (("-I1", "-K20"), "per-iteration skip (-K) must be between 0 and 19. Disabling."),
        (("-K", "1"), "per-iteration skip (-K) requires per-iteration timing (-I 1). Disabling."),
        (("-w", "5"), "all_reduce_perf: -w 5: linkgauge warms each size up by itself"),
        (("-G", "2"), "all_reduce_perf: -G 2: the iterations are one graph, launched once"),
        (("-c", "2"), "all_reduce_perf: -c 2: each result is checked once"),
        (("-z", "1"), "all_reduce_perf: -z 1: the host waits as with -z 2, without a barrier"),
        (("-M", "1"), "all_reduce_perf: -M: linkgauge does not report the memory used"),
        (("-x", "0"), "all_reduce_perf: -x: the library chooses its CTA policy itself"),
        (("8",), "all_reduce_perf: '8' is not an option: ignored"),
    ],
)  # fmt: skip
def test_what_is_different_is_said(arguments, says):
    assert read(*arguments).said == (says,)


def test_what_is_accepted_without_effect():
    assert read("-y", "1", "-p", "0", "-x-1", "-V", "4", "-D0").said == ()


def test_a_type_or_a_reduction_that_does_not_exist_is_the_first(capfd):
    options = read("-d", "int7", "-o", "xor")
    assert (options.number, options.reduction) == ("float", "sum")
    assert options.printed == (
        "invalid type int7, defaulting to float .. ", "invalid op xor, defaulting to sum .. "
    )  # fmt: skip


@pytest.mark.parametrize(
    ("argument", "says"),
    [
        ("-q", "invalid option -- 'q'"), ("-g", "option requires an argument -- 'g'"),
        ("--foo=1", "unrecognized option '--foo'"),
        ("--iters", "option '--iters' requires an argument"),
        ("--help=1", "option '--help' doesn't allow an argument"),
        ("--step", "option '--step' is ambiguous; possibilities: '--stepbytes' '--stepfactor'"),
    ],
)  # fmt: skip
def test_what_is_not_understood_prints_the_usage(capfd, argument, says):
    done = speak(capfd, "broadcast_perf", argument)
    assert done.code == 0
    assert done.err == f"broadcast_perf: {says}\n"
    assert done.out.startswith("invalid option '?'\nUSAGE: broadcast_perf \n\t[-t,--nthreads <num")


def test_help(capfd):
    done = speak(capfd, "gather_perf", "-g2", "-h")
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith("[-h,--help]\n")


def test_behind_two_dashes_are_no_options():
    assert read("-g2", "--", "-n5").iterations == 20
