"""Numbers and options of nccl-tests are read as strtol, sscanf and getopt_long read them there;
what it prints is read by those who read nccl-tests' output.

The expressions of the readers are those of
- SuperBench: microsoft/superbenchmark, superbench/benchmarks/micro_benchmarks/
  cuda_nccl_bw_performance.py (columns counted from the line's end, by the heads);
- Azure's health checks: Azure/azurehpc-health-checks, customTests/azure_nccl_allreduce.nhc (the
  first line with `bandwidth`, its sixth word; a line with `FAILED`).
"""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collected_kit import collected
from compat_kit import MadeUp, spoken
from linkgauge.compat.nccl_tests_options import NAMES, bytes_of, int_of, long_of, nccl_options
from linkgauge.model.errors import InputError

DATA = Path(__file__).parents[1] / "data"
BEGIN = "# nccl-tests version"
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


def texts():
    """What nccl-tests printed, as a control."""
    for path in sorted(DATA.glob("nccl-tests-*.txt")):
        for block in path.read_text().split(BEGIN)[1:]:
            name = re.search(r"starting: (\w+)", block)[1]
            yield pytest.param(BEGIN + block, id=f"{path.stem}-{name}")


@pytest.fixture
def text(request, monkeypatch):
    """What it prints for a program's name, or the text itself."""
    if not request.param.endswith("_perf"):
        return request.param
    MadeUp(collected()).install(monkeypatch)
    return spoken(request.param, "-b 8 -e 8M -f 32 -g 4", on="dgx-h200-8").stdout


EACH = pytest.mark.parametrize(
    "text", ["all_reduce_perf", "reduce_perf", "alltoall_perf", *texts()], indirect=True
)


def plainly(text):
    """What stands in the columns, by their places: size and both sides' time, algbw and busbw."""
    found = []
    for line in text.splitlines():
        if line and not line.startswith("#"):
            places = [(0, 12), (52, 61), (61, 69), (69, 77), (85, 94), (94, 102), (102, 110)]
            found.append(tuple(float(line[start:end]) for start, end in places))
    return found


def by_superbench(text, *, in_place):
    lines = text.splitlines()
    (head,) = (at for at, line in enumerate(lines) if "out-of-place" in line)
    (end,) = (at for at, line in enumerate(lines) if "Out of bounds values" in line)
    heads = next(line for line in lines[head + 1 : end] if "time" in line and "busbw" in line)
    names = re.sub(r" +", " ", heads[1:].strip(" ")).split(" ")

    def place(name):
        back = -1 - names[::-1].index(name)
        return back if in_place else names.index(name) - len(names)

    found = []
    for line in lines[head + 1 : end]:
        words = re.sub(r" +", " ", line.strip(" ")).split(" ")
        if re.match(r"\d+", words[0]) and int(words[names.index("size")]) != 0:
            figures = (float(words[place(name)]) for name in ("time", "algbw", "busbw"))
            found.append((int(words[0]), *figures))
    return found


@EACH
def test_its_readers_find_every_size_of_both_sides_and_the_average(text):
    for in_place in (False, True):
        side = slice(4, 7) if in_place else slice(1, 4)
        expected = [(line[0], *line[side]) for line in plainly(text) if line[0]]
        assert by_superbench(text, in_place=in_place) == expected
        assert len(expected) >= 4
    lines = [line for line in text.split("\n") if line]
    assert not any("FAILED" in line for line in lines)
    words = next(line for line in lines if "bandwidth" in line).split()
    rates = [rate for line in plainly(text) for rate in (line[3], line[6])]
    assert float(words[5]) == pytest.approx(sum(rates) / len(rates), abs=0.006)
