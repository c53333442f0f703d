"""Reads the command line of rocm-bandwidth-test as getopt does, and carries it out."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import msgspec

from linkgauge.cli.tool import Where, show
from linkgauge.cli.tool_options import (
    ToolOption,
    UsageError,
    decimal,
    digits,
    getopt_long,
    hinting,
)
from linkgauge.model.documents.result import CellResult
from linkgauge.model.memory import Memory, host
from linkgauge.model.notation import parse_memory
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Engine, Transfer

from ..copy_cells import PARITY, Meter, Repetitions, metered
from . import text
from .text import Path

OPTIONS = (
    ToolOption("-h", "Show this help"),
    ToolOption("-q", "Show the version", field="version"),
    ToolOption("-v", "Compare the copied bytes (PASS, FAIL) and show no rates"),
    ToolOption("-l", "Small copies, from 1 byte to 512 KB (with -s and -d)"),
    ToolOption("-c", "Accepted, without effect"),
    ToolOption("-e", "List the devices", field="devices"),
    ToolOption("-i", "Fill the source with this number", str),
    ToolOption("-t", "Show the devices and how they are connected", field="topology"),
    ToolOption("-m", "Sizes in megabytes, such as 1,16,256", str),
    ToolOption(
        "-b", "Devices that copy both ways at once, each pair by itself", str, "pairs both ways"
    ),
    ToolOption("-s", "Devices to copy from, one way", str),
    ToolOption("-d", "Devices to copy to, one way", str),
    ToolOption("-a", "One way between all devices", field="one way"),
    ToolOption("-A", "Both ways at once between all devices", field="bidirectional"),
    ToolOption("-k", "Pairs of devices that copy at the same time, one way", str, "together"),
    ToolOption(
        "-K", "Pairs of devices that copy at the same time, both ways", str, "together both ways"
    ),
)
"""The options. Options with a field request a measurement, which the field names; two of them
exclude each other."""
_REFUSED = {"a": "lm", "b": "clv", "A": "clmv", "kK": "cilmv"}
"""The secondary options that primary ones refuse."""


def _dashed(letters: str) -> str:
    return ", ".join(f"-{letter}" for letter in letters)


_LINES = "\n".join(f"\t {option.written}    {option.about}" for option in OPTIONS)
_APART = "\n".join(f"\t\t {_dashed(own)} with {_dashed(no)}" for own, no in _REFUSED.items())
HELP = f"""\

Supported arguments:

{_LINES}

\t Without any: -a, then -A. Not together:
{_APART}
\t\t -s and -d with two of -l, -m, -v
"""
_PRIMARY = {option.written[1]: option.field for option in OPTIONS if option.field}
_WHOLE = ("default", "one way", "bidirectional")
_LISTS = "sdbkKm"
_KB, _MB = 1 << 10, 1 << 20
SIZES = tuple(_KB << power for power in range(20))
LATENCY_SIZES = tuple(1 << power for power in range(20))
ONE_SIZE = 64 * _MB
_MOST_MB = 1 << 24


class RocmOptions(msgspec.Struct, frozen=True):
    """The options of a command line, after checks. Sizes are in bytes, and devices are numbers.
    `together` is a list of pairs, written as a flat list of numbers. `pattern` is the 64-bit word
    with which sources are filled, or None."""

    what: str
    sizes: tuple[int, ...] = (ONE_SIZE,)
    sources: tuple[int, ...] = ()
    destinations: tuple[int, ...] = ()
    together: tuple[int, ...] = ()
    validate: bool = False
    cpu_time: bool = False
    pattern: int | None = None

    @property
    def whole(self) -> bool:
        """Whether all devices take part."""
        return self.what in _WHOLE

    @property
    def both(self) -> bool:
        """Whether copies between the named devices go both ways at the same time."""
        return self.what in ("pairs both ways", "together both ways")

    @property
    def named(self) -> tuple[int, ...]:
        return self.sources + self.destinations + self.together


def parse(arguments: Sequence[str]) -> RocmOptions:
    """Reads a command line. Raises UsageError for invalid options, and for combinations that the
    tool refuses."""
    given: dict[str, str] = {}
    for option, value, problem in getopt_long(arguments, OPTIONS):
        if option is None:
            raise UsageError(problem or f"no option takes '{value}'")
        given[option.written[1]] = value
    if "h" in given:
        return RocmOptions("help")
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


def _what(given: dict[str, str]) -> str:
    """Returns the name of the measurement that the options request. Raises UsageError for options
    that exclude each other."""
    primary = [letter for letter in given if letter in _PRIMARY]
    pair = {"s", "d"} & given.keys()
    if len(pair) == 1:
        raise UsageError("-s and -d go together: from which devices, to which")
    if len(primary) + bool(pair) > 1:
        raise UsageError(f"{_dashed(''.join([*primary, *sorted(pair)]))} exclude each other")
    if pair:
        if len({"l", "m", "v"} & given.keys()) > 1:
            raise UsageError("-s and -d take one of -l, -m, -v")
        return "pairs"
    if not given:
        return "default"
    primary = primary or ["a"]  # as for -v alone, which the tool's page has
    for letter in next((no for own, no in _REFUSED.items() if primary[0] in own), ""):
        if letter in given:
            raise UsageError(f"-{primary[0]} excludes -{letter}")
    return _PRIMARY[primary[0]]


def _sizes(what: str, given: dict[str, str], asked: tuple[int, ...] | None) -> tuple[int, ...]:
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
    """Reads a number, and returns the 64 bits with which C stores it as a double."""
    try:
        return int.from_bytes(struct.pack("<d", decimal(written)), "little")
    except (ValueError, OverflowError):
        raise UsageError(f"-i '{written}' is not a number") from None


# rocm-bandwidth-test 2.6.0: copies between all devices, the host's NUMA nodes among them.


@hinting("'rocm-bandwidth-test -h' prints its options")
def run(arguments: Sequence[str], where: Where) -> int:
    """Carries out a command line of the tool: measures, and prints the tool's output."""
    options = parse(arguments)
    command = " ".join((where.name, *arguments))
    if options.what == "help":
        print(HELP)
        return 0
    if options.what == "version":
        show(text.version(command))
        return 0
    settings = Settings(
        sizes=options.sizes[:1],
        samples=1 if options.validate else text.SAMPLES,
        loops=1,
        pattern=options.pattern,
        engines=PARITY,
    )
    with metered(where, settings) as gauge:
        tested = _Tested(gauge, options)
        if options.what in ("devices", "topology"):
            links = options.what == "topology"
            show(text.version(command), text.topology(gauge.context, links=links))
            return 0
        if options.cpu_time:
            gauge.report("-c has no effect here: copies are timed as ever")
        if options.whole or options.validate:
            whole = f"{where.name} (rocm_bandwidth -a + rocm_bandwidth -A)"
            return tested.matrices(command if arguments else whole)
        return tested.tables(command)


class _Tested:
    """Measures between the nodes and devices of a machine, which are numbered as in the tool."""

    def __init__(self, gauge: Meter, options: RocmOptions) -> None:
        self._context = context = gauge.context
        self._options = options
        self._gauge = gauge
        self._memories = (
            *(host(node.index) for node in context.machine.host.nodes),
            *(parse_memory(device.memory) for device in context.devices),
        )
        for number in options.named:
            if number >= len(self._memories):
                raise UsageError(f"no device {number}: there are 0 to {len(self._memories) - 1}")

    def matrices(self, command: str) -> int:
        """Measures and prints matrices over all devices, or with -v over the requested devices."""
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
        show(
            text.version(command),
            text.devices(self._context),
            text.access(count, cells, self._is_device),
        )
        if self._options.validate:
            show(text.validation(count, cells))
            return self._gauge.exit_code
        show(text.distances(self._context))
        for both, measured in found:
            records = {path: _timing(cell, path, both) for path, cell in measured}
            show(text.matrix(count, records, both=both))
        return self._gauge.exit_code

    def tables(self, command: str) -> int:
        """Measures and prints a table for each path between the named devices."""
        options, both = self._options, self._options.both
        if options.together:
            pairs = zip(options.together[::2], options.together[1::2], strict=True)
            paths = [path for path in dict.fromkeys(pairs) if self._counts(path, both)]
        else:
            paths = self._pairs(options.sources, options.destinations, both)
        if not paths:
            raise UsageError("there is no copy between two nodes, or both ways within a device")
        show(text.version(command))
        measure = self._at_once if options.together else self._each
        by_size = [measure(paths, size, both) for size in options.sizes]
        for number, path in enumerate(paths):
            kinds = tuple("Gpu" if self._is_device(end) else "Cpu" for end in path)
            records = [records[number] for records in by_size]
            show(text.banner(path, kinds, both=both), text.table(options.sizes, records))
        print(flush=True)
        return self._gauge.exit_code

    def _is_device(self, number: int) -> bool:
        return self._memories[number].is_device

    def _counts(self, path: Path, both: bool) -> bool:
        """Whether the tool measures this path. It measures no path between two nodes. If copies go
        both ways, it measures no path within a device."""
        return any(map(self._is_device, path)) and not (both and path[0] == path[1])

    def _pairs(self, sources: Sequence[int], ends: Sequence[int], both: bool) -> list[Path]:
        """Returns the paths between these devices. If copies go both ways, each pair has only one
        path."""
        paths = [(one, other) for one in sources for other in ends]
        kept: dict[Path, None] = {}
        for path in paths:
            if self._counts(path, both) and not (both and path[::-1] in kept):
                kept[path] = None
        return list(kept)

    def _transfers(self, path: Path, both: bool) -> Iterator[Transfer]:
        for source, destination in (path, path[::-1])[: 2 if both else 1]:
            yield _copy(self._memories[source], self._memories[destination])

    def _measured(
        self, paths: Sequence[Path], both: bool, size: int | None = None
    ) -> list[tuple[Path, CellResult]]:
        """Measures each path by itself. Returns each path with its cell."""
        cells = [tuple(self._transfers(path, both)) for path in paths]
        return list(zip(paths, self._gauge.measure(cells, size=size), strict=True))

    def _each(self, paths: Sequence[Path], size: int, both: bool) -> list[Repetitions]:
        measured = self._measured(paths, both, size)
        return [_timing(cell, path, both) for path, cell in measured]

    def _at_once(self, paths: Sequence[Path], size: int, both: bool) -> list[Repetitions]:
        """Measures all paths at the same time, and returns the figure of each path."""
        width = 2 if both else 1
        transfers = [t for path in paths for t in self._transfers(path, both)]
        (cell,) = self._gauge.measure([transfers], size=size)
        if cell.status != "pass":
            return [Repetitions((), 0)] * len(paths)
        parts = [Repetitions.of(part.samples, size) for part in cell.parts]
        parts = parts or [Repetitions.of(cell.samples, size)]
        return [Repetitions.together(parts[at : at + width]) for at in range(0, len(parts), width)]


def _copy(source: Memory, destination: Memory) -> Transfer:
    """Returns a copy by the copy engine of the source. If the source is a node, the destination's
    engine copies."""
    owner = source if source.is_device else destination
    return Transfer(source, destination, Engine(owner, "ce"))


def _timing(cell: CellResult, path: Path, both: bool) -> Repetitions:
    """Returns the repetitions of a path that was measured by itself. A copy within a device counts
    every byte twice, because it reads and writes."""
    found = Repetitions.of(cell.samples if cell.status == "pass" else (), cell.bytes or 0)
    doubled = path[0] == path[1] and not both
    return Repetitions(found.times, found.bytes * 2) if doubled else found
