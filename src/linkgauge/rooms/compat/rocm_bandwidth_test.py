"""rocm-bandwidth-test 2.6.0: copies between all devices, the host's NUMA nodes among them.

Source: ROCm/rocm_bandwidth_test, branch master of ROCm 6.3 (options, sizes, iterations, output).
Nodes come first in its numbering, then the accelerators of the backend. As there, a copy is timed
five times: the mean leaves out the longest, the peak is the best. A copy within a device counts
what is read and written; both ways at once count both copies over their whole span.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence

from linkgauge.cli.tool import Context, UsageError, Where, hinting, opened_devices
from linkgauge.model.memory import Memory, host
from linkgauge.model.notation import parse_memory
from linkgauge.model.result import CellResult
from linkgauge.model.settings import EngineSettings, Settings
from linkgauge.model.transfer import Engine, Transfer

from . import rocm_bandwidth_test_text as text
from .copy_cells import Meter
from .rocm_bandwidth_test_options import HELP, TOOL, Options, parse
from .rocm_bandwidth_test_text import Path, Record

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

    def __init__(self, context: Context, options: Options) -> None:
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
