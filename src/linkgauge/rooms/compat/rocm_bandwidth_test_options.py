"""The command line of rocm-bandwidth-test, as getopt reads it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Literal

import msgspec

from linkgauge.cli.tool import UsageError, decimal, digits

from .getopt import WRONG, getopt_long

TOOL = "rocm-bandwidth-test"
HELP = """\

Supported arguments:

\t -h    Show this help
\t -q    Show the version
\t -v    Compare the copied bytes (PASS, FAIL) and show no rates
\t -l    Small copies, from 1 byte to 512 KB (with -s and -d)
\t -c    Accepted, without effect
\t -e    List the devices
\t -i    Fill the source with this number
\t -t    Show the devices and how they are connected
\t -m    Sizes in megabytes, such as 1,16,256
\t -b    Devices that copy both ways at once, each pair by itself
\t -s    Devices to copy from, one way
\t -d    Devices to copy to, one way
\t -a    One way between all devices
\t -A    Both ways at once between all devices
\t -k    Pairs of devices that copy at the same time, one way
\t -K    Pairs of devices that copy at the same time, both ways

\t Without any: -a, then -A. Not together:
\t\t -a with -l, -m
\t\t -b with -c, -l, -v
\t\t -A with -c, -l, -m, -v
\t\t -k, -K with -c, -i, -l, -m, -v
\t\t -s and -d with two of -l, -m, -v
"""
What = Literal[
    "default",
    "version",
    "devices",
    "topology",
    "one way",
    "bidirectional",
    "pairs",
    "pairs both ways",
    "together",
    "together both ways",
]
_WHOLE: tuple[What, ...] = ("default", "one way", "bidirectional")
_PRIMARY: dict[str, What] = {
    "q": "version",
    "e": "devices",
    "t": "topology",
    "a": "one way",
    "A": "bidirectional",
    "b": "pairs both ways",
    "k": "together",
    "K": "together both ways",
}
_REFUSED = {"a": "lm", "A": "clmv", "b": "clv", "k": "cilmv", "K": "cilmv"}
"""The secondary options that each primary one refuses."""
_LISTS = "sdbkKm"
_LETTERS = "hqteclvaAbisdmkK"
_FLAGS = "hqteclvaA"
_KB, _MB = 1 << 10, 1 << 20
SIZES = tuple(_KB << power for power in range(20))
LATENCY_SIZES = tuple(1 << power for power in range(20))
ONE_SIZE = 64 * _MB
_MOST_MB = 1 << 24


class Options(msgspec.Struct, frozen=True):
    """The checked command line. Sizes are bytes; devices are their numbers; `together` are pairs,
    flat; `pattern` is the 64-bit word of the number that sources hold, null if none is given."""

    what: What
    sizes: tuple[int, ...] = (ONE_SIZE,)
    sources: tuple[int, ...] = ()
    destinations: tuple[int, ...] = ()
    together: tuple[int, ...] = ()
    validate: bool = False
    cpu_time: bool = False
    help: bool = False
    pattern: int | None = None

    @property
    def whole(self) -> bool:
        """Whether it is about all devices."""
        return self.what in _WHOLE

    @property
    def both(self) -> bool:
        """Whether copies between devices that are named go both ways at once."""
        return self.what in ("pairs both ways", "together both ways")

    @property
    def named(self) -> tuple[int, ...]:
        return self.sources + self.destinations + self.together


def parse(arguments: Sequence[str]) -> Options:
    """Raises UsageError for what the tool refuses, too."""
    given: dict[str, str] = {}
    for letter, value in getopt_long(arguments, dict.fromkeys(_LETTERS, ""), _FLAGS):
        if letter == WRONG:
            raise UsageError(str(value))
        if letter is None:
            raise UsageError(f"no option takes '{value}'")
        given[letter] = value or ""
    if "h" in given:
        return Options("default", help=True)
    what = _what(given)
    lists = {letter: _numbers(letter, given[letter]) for letter in _LISTS if letter in given}
    pairs = lists.get("k", lists.get("K", ()))
    if len(pairs) % 2:
        raise UsageError("-k and -K take pairs of devices, such as 0,2,1,3")
    return Options(
        what,
        _sizes(what, given, lists.get("m")),
        lists.get("s", lists.get("b", ())),
        lists.get("d", lists.get("b", ())),
        pairs,
        validate="v" in given,
        cpu_time="c" in given,
        pattern=_pattern(given["i"]) if "i" in given else None,
    )


def _what(given: dict[str, str]) -> What:
    """What is asked for. Raises UsageError for options that exclude each other."""
    primary = [letter for letter in given if letter in _PRIMARY]
    pair = {"s", "d"} & given.keys()
    if len(pair) == 1:
        raise UsageError("-s and -d go together: from which devices, to which")
    if len(primary) + bool(pair) > 1:
        asked = ", ".join(f"-{letter}" for letter in (*primary, *sorted(pair)))
        raise UsageError(f"{asked} exclude each other")
    if pair:
        if len({"l", "m", "v"} & given.keys()) > 1:
            raise UsageError("-s and -d take one of -l, -m, -v")
        return "pairs"
    if not given:
        return "default"
    primary = primary or ["a"]  # as for -v alone, which the tool's page has
    for letter in _REFUSED.get(primary[0], ""):
        if letter in given:
            raise UsageError(f"-{primary[0]} excludes -{letter}")
    return _PRIMARY[primary[0]]


def _sizes(what: What, given: dict[str, str], asked: tuple[int, ...] | None) -> tuple[int, ...]:
    if asked is not None:
        if not all(1 <= size <= _MOST_MB for size in asked):
            raise UsageError(f"-m: give 1 to {_MOST_MB} megabytes")
        return tuple(sorted(size * _MB for size in asked))
    if what in _WHOLE or "v" in given:
        return (ONE_SIZE,)
    return LATENCY_SIZES if "l" in given else SIZES


def _numbers(letter: str, written: str) -> tuple[int, ...]:
    numbers = [digits(part) for part in written.split(",")]
    known = tuple(number for number in numbers if number is not None)
    if len(known) < len(numbers):
        raise UsageError(f"-{letter} '{written}': give numbers with commas, such as 0,2")
    if letter in "sdb" and len(set(known)) < len(known):
        raise UsageError(f"-{letter} {written}: device listed twice")
    return known


def _pattern(written: str) -> int:
    """The bits of the number as a double."""
    try:
        return int.from_bytes(struct.pack("<d", decimal(written)), "little")
    except (ValueError, OverflowError):
        raise UsageError(f"-i '{written}' is not a number") from None
