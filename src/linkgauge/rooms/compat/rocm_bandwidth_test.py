"""The command line of rocm-bandwidth-test, as getopt reads it."""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from linkgauge.cli.tool import Context, UsageError, Where, decimal, digits, hinting, opened_devices
from linkgauge.model.documents.result import CellResult
from linkgauge.model.memory import Memory, host
from linkgauge.model.notation import parse_memory
from linkgauge.model.settings import EngineSettings, Settings
from linkgauge.model.transfer import Engine, Transfer

from . import rocm_bandwidth_test_text as text
from .copy_cells import Meter
from .getopt import WRONG, getopt_long
from .rocm_bandwidth_test_text import Path, Record

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


class RocmOptions(msgspec.Struct, frozen=True):
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


def parse(arguments: Sequence[str]) -> RocmOptions:
    """Raises UsageError for what the tool refuses, too."""
    given: dict[str, str] = {}
    for letter, value in getopt_long(arguments, dict.fromkeys(_LETTERS, ""), _FLAGS):
        if letter == WRONG:
            raise UsageError(str(value))
        if letter is None:
            raise UsageError(f"no option takes '{value}'")
        given[letter] = value or ""
    if "h" in given:
        return RocmOptions("default", help=True)
    what = _what(given)
    lists = {letter: _numbers(letter, given[letter]) for letter in _LISTS if letter in given}
    pairs = lists.get("k", lists.get("K", ()))
    if len(pairs) % 2:
        raise UsageError("-k and -K take pairs of devices, such as 0,2,1,3")
    return RocmOptions(
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


# rocm-bandwidth-test 2.6.0: copies between all devices, the host's NUMA nodes among them.


_PARITY = EngineSettings(tuned=False, streams=1)
"""One plain copy after another on one stream, as the tool does it."""


@hinting(f"'{TOOL} -h' prints its options")
def run(arguments: Sequence[str], where: Where) -> int:
    """Measures as this command line asks and prints what the tool prints."""
    options = parse(arguments)
    command = " ".join((TOOL, *arguments))
    if options.help:
        print(HELP)
        return 0
    if options.what == "version":
        print("\n".join(text.version(command)))
        return 0
    settings = Settings(
        sizes=options.sizes[:1],
        samples=1 if options.validate else text.SAMPLES,
        loops=1,
        pattern=options.pattern,
        engines=_PARITY,
    )
    with opened_devices(where, settings) as context:
        tested = _Tested(context, options)
        if options.what in ("devices", "topology"):
            print("\n".join(text.version(command)))
            print("\n".join(text.topology(context, links=options.what == "topology")))
            return 0
        if options.cpu_time:
            print(f"{TOOL}: -c has no effect here: copies are timed as ever", file=sys.stderr)
        if options.whole or options.validate:
            shown = command if arguments else f"{TOOL} (rocm_bandwidth -a + rocm_bandwidth -A)"
            return tested.matrices(shown)
        return tested.tables(command)


class _Tested:
    """The devices of the machine by their numbers, and what is measured between them."""

    def __init__(self, context: Context, options: RocmOptions) -> None:
        self._context = context
        self._options = options
        self._gauge = Meter(context, TOOL)
        self._memories = (
            *(host(node.index) for node in context.machine.host.nodes),
            *(parse_memory(device.memory) for device in context.devices),
        )
        for number in options.named:
            if number >= len(self._memories):
                raise UsageError(f"no device {number}: there are 0 to {len(self._memories) - 1}")

    def matrices(self, command: str) -> int:
        """Over all devices; with -v of what was asked."""
        count = len(self._memories)
        sources = ends = tuple(range(count))
        if not self._options.whole:
            sources, ends = self._options.sources, self._options.destinations
        ways = {"default": (False, True), "bidirectional": (True,)}
        found = [
            (both, self._measured(self._pairs(sources, ends, both), both))
            for both in ways.get(self._options.what, (False,))
        ]
        cells = {path: cell for _, measured in reversed(found) for path, cell in measured}
        self._print(
            text.version(command),
            text.devices(self._context),
            text.access(count, cells, self._is_device),
        )
        if self._options.validate:
            self._print(text.validation(count, cells))
            return self._gauge.exit_code
        self._print(text.distances(self._context))
        for both, measured in found:
            records = {path: Record.of(cell, path, both) for path, cell in measured}
            self._print(text.matrix(count, records, both=both))
        return self._gauge.exit_code

    def tables(self, command: str) -> int:
        """One for each path between the devices that are named."""
        options, both = self._options, self._options.both
        if options.together:
            pairs = zip(options.together[::2], options.together[1::2], strict=True)
            paths = [path for path in dict.fromkeys(pairs) if self._counts(path, both)]
        else:
            paths = self._pairs(options.sources, options.destinations, both)
        if not paths:
            raise UsageError("there is no copy between two nodes, or both ways within a device")
        self._print(text.version(command))
        measure = self._at_once if options.together else self._each
        by_size = [measure(paths, size, both) for size in options.sizes]
        for number, path in enumerate(paths):
            kinds = tuple("Gpu" if self._is_device(end) else "Cpu" for end in path)
            records = [records[number] for records in by_size]
            self._print(text.banner(path, kinds, both=both), text.table(options.sizes, records))
        print(flush=True)
        return self._gauge.exit_code

    def _print(self, *parts: Iterable[str]) -> None:
        print("\n".join(line for part in parts for line in part), flush=True)

    def _is_device(self, number: int) -> bool:
        return self._memories[number].is_device

    def _counts(self, path: Path, both: bool) -> bool:
        """Whether the tool measures it: not between two nodes, nor both ways within a device."""
        return any(map(self._is_device, path)) and not (both and path[0] == path[1])

    def _pairs(self, sources: Sequence[int], ends: Sequence[int], both: bool) -> list[Path]:
        """Of both ways at once, a pair counts once."""
        paths = [(one, other) for one in sources for other in ends]
        kept: dict[Path, None] = {}
        for path in paths:
            if self._counts(path, both) and not (both and path[::-1] in kept):
                kept[path] = None
        return list(kept)

    def _transfers(self, path: Path, both: bool) -> Iterator[Transfer]:
        yield _copy(self._memories[path[0]], self._memories[path[1]])
        if both:
            yield _copy(self._memories[path[1]], self._memories[path[0]])

    def _measured(
        self, paths: Sequence[Path], both: bool, size: int | None = None
    ) -> list[tuple[Path, CellResult]]:
        """Each path by itself."""
        cells = [tuple(self._transfers(path, both)) for path in paths]
        return list(zip(paths, self._gauge.measure(cells, size=size), strict=True))

    def _each(self, paths: Sequence[Path], size: int, both: bool) -> list[Record]:
        measured = self._measured(paths, both, size)
        return [Record.of(cell, path, both) for path, cell in measured]

    def _at_once(self, paths: Sequence[Path], size: int, both: bool) -> list[Record]:
        """All paths at the same time: each one's own figure."""
        width = 2 if both else 1
        transfers = [t for path in paths for t in self._transfers(path, both)]
        (cell,) = self._gauge.measure([transfers], size=size)
        if cell.status != "pass":
            return [Record((), 0)] * len(paths)
        parts = [part.samples for part in cell.parts] or [cell.samples]
        return [
            Record.joint(parts[at : at + width], size) for at in range(0, len(transfers), width)
        ]


def _copy(source: Memory, destination: Memory) -> Transfer:
    """By the copy engine of the source, else of the destination."""
    owner = source if source.is_device else destination
    return Transfer(source, destination, Engine(owner, "ce"))
