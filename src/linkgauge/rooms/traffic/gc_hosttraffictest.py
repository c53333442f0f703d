"""Emulates Graphcore's gc-hosttraffictest, after its manual page. Device streams stand for tiles,
and a kernel's access for the payload. Ignores `-r` and `--suppress-failure-reset`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from linkgauge import __version__
from linkgauge.cli.tool import Context, Quiet, Where, measure, opened
from linkgauge.cli.tool_options import (
    ToolOption,
    ToolOptions,
    UsageError,
    decimal,
    help_lines,
    one_of,
    option,
    whole,
)
from linkgauge.judge.limits import Objection, hold_run, objected
from linkgauge.model.documents.result import CellResult, Result, Run, exit_code
from linkgauge.model.errors import InputError
from linkgauge.model.hardware.machine import Device
from linkgauge.model.settings import EngineSettings, Settings
from linkgauge.model.units import count_of
from linkgauge.report.words.sentences import sentence

from . import benchmarks as traffic
from .benchmarks import BUFFER, Combination, Volume, gigabits, objection, volume_of

TILE = "tile"
_SIDES = {"host": "host", "device": TILE}
_BAR = 40


@dataclass
class ProgressPrinter(Quiet):
    tests: int
    objection: Objection
    lines: bool
    verbose: bool
    done: int = 0

    def completed(self, result: Result) -> None:
        for cell in map(partial(objected, self.objection), result.cells):
            self.done += 1
            if self.verbose:
                print(bar(self.done, self.tests), file=sys.stderr, flush=True)
            title, volume = _title(cell), volume_of(cell)
            if volume is not None and self.lines:
                print(line(title, volume), flush=True)
                if self.verbose:
                    print("\n".join(details(cell, volume)), flush=True)
            if cell.reason is not None:
                print(f"ERROR: {title}: {cell.reason}", file=sys.stderr, flush=True)


def bar(done: int, count: int) -> str:
    full = _BAR * done // count
    return f"[{'=' * full}{' ' * (_BAR - full)}] {100 * done // count:3}%"


def line(title: str, volume: Volume) -> str:
    before, _, behind = title.partition("buffer")
    names = {
        "host": "RDMA host write" if "->" in before else "RDMA host read",
        "device": "tile write" if "<-" in behind else "tile read",
    }
    figures = [f"{gigabits(volume.rate(side))} Gbps {names[side]}" for side in volume.moved]
    return f"{title}:  {', '.join(figures)}, for {volume.seconds:.2f} seconds."


def details(cell: CellResult, volume: Volume) -> Iterator[str]:
    for side, moved in volume.moved.items():
        yield f"  {_SIDES[side].title()} data transferred: {round(moved)} bytes"
    samples = count_of(len(cell.samples), "sample")
    yield f"  {samples} of {count_of(cell.loops, 'pass', 'passes')} over the buffer"
    yield from (f"  Note: {sentence(note)}" for note in cell.notes)


def heading(device: Device | None, tests: Sequence[Combination], tiles: int) -> str:
    what = "Host threads in a device's stead" if device is None else f"{device.model}"
    sizes = f"{count_of(tiles, 'tile')}, {count_of(len(tests), 'test')}"
    return f"Device: {what}; {sizes}"


def document(
    configuration: Mapping[str, str], tests: Sequence[Combination], runs: Sequence[Run]
) -> str:
    """Returns the results as JSON. All values are strings; fractions have 17 significant digits."""
    root: dict[str, Mapping[str, object]] = {"configuration": configuration}
    for number, run in enumerate(runs):
        cells = [cell for result in run.results for cell in result.cells]
        root[f"repeat_{number}"] = {
            test.name(TILE): _fields(cell) for test, cell in zip(tests, cells, strict=False)
        }
    return json.dumps(root, indent=4)


def _fields(cell: CellResult) -> dict[str, str]:
    fields = {"description": _title(cell)}
    volume = volume_of(cell)
    if volume is not None:
        fields["duration_seconds"] = f"{volume.seconds:.17g}"
        for side, moved in volume.moved.items():
            fields[f"{_SIDES[side]}_data_transferred_bytes"] = str(round(moved))
        for side in volume.moved:
            fields[f"{_SIDES[side]}_transfer_speed_gbps"] = f"{volume.rate(side) * 8e-9:.17g}"
    if cell.reason is not None:
        fields["error"] = cell.reason
    return fields


def _title(cell: CellResult) -> str:
    return cell.row.replace("device", TILE)


TOOL = "gc-hosttraffictest"
TRANSFER = 4096
BLOCK = 64
MOST_TILES = 32
_SAMPLE = 100
_NO_TIMEOUT = 1e6
_MOST = 10**9


def run(arguments: Sequence[str], where: Where) -> int:
    # As in the tool, these work even if other arguments are wrong.
    if {"-h", "--help"} & set(arguments):
        print(HELP)
        return 0
    if "--version" in arguments:
        print(f"{TOOL} of linkgauge {__version__}")
        return 0
    options = parse(arguments)
    with opened(where, _settings(options), devices=(str(options.device),)) as context:
        return _run_in(context, options)


def _run_in(context: Context, options: HostTrafficOptions) -> int:
    judged = partial(
        objection,
        least_device=options.least_tile / 8e-9,
        least_host=options.least_host / 8e-9,
        device="tile",
    )
    if context.backend == "host" and options.device:
        raise InputError("backend host has one device, 0")
    sides = traffic.sides_of(context.fabric, "sm", options.tiles)
    benchmarks = traffic.lay_out(options.tests, sides, context.backend)
    if options.verbose and not options.json_output:
        print(heading(next(iter(context.devices), None), options.tests, options.tiles))
    runs: list[Run] = []
    for number in range(options.repeat):
        if not options.json_output:
            print(f"Running test sequence {number + 1}/{options.repeat}", flush=True)
        progress = ProgressPrinter(
            len(options.tests), judged, lines=not options.json_output, verbose=options.verbose
        )
        first = number * sum(len(benchmark.cells) for benchmark in benchmarks)
        taken = measure(context, benchmarks, first=first, observer=progress)
        runs.append(hold_run(taken, judged))
        if runs[-1].finished is None:
            break
    if options.json_output:
        print(document(_configuration(options), options.tests, runs))
    return next(filter(None, map(exit_code, runs)), 0)


def _settings(options: HostTrafficOptions) -> Settings:
    """Returns settings with a fixed number of transfers or, if no test uses tiles, a duration."""
    streams = options.tiles
    each, passes = split(options.iterations, BUFFER // (TRANSFER * streams))
    loops, samples = split(passes, _SAMPLE)
    how: dict[str, Any] = {
        "sizes": (TRANSFER * streams * each,), "samples": samples, "loops": loops
    }  # fmt: skip
    if not options.uses_tiles:
        how = {"sizes": (BUFFER,), "precision": 0.0, "max_time": options.duration}
    pieces = traffic.make_pieces(TRANSFER, int(options.blocks) * BLOCK, streams)
    return Settings(
        timeout=_NO_TIMEOUT if options.no_timeout else None,
        engines=EngineSettings(tuned=False, pieces=pieces),
        **how,
    )


def split(count: int, most: int) -> tuple[int, int]:
    """Returns two factors; their product is `count` or slightly more, the first at most `most`."""
    largest = min(count, most)
    exact = (each for each in range(largest, largest // 4, -1) if count % each == 0)
    each = next(exact, None) or -(-count // -(-count // most))
    return each, -(-count // each)


def _configuration(options: HostTrafficOptions) -> dict[str, str]:
    return {
        "number_of_ipus": "1",
        "tile_transfers_enabled": str(options.uses_tiles).lower(),
        "tiles_per_ipu": str(options.tiles),
        "transfer_size_64byte_blocks": str(options.blocks),
        "iterations": str(options.iterations),
        "host_transfers_enabled": str(options.uses_host).lower(),
    }


class HostTrafficOptions(ToolOptions):
    """The options of gc-hosttraffictest. Bandwidths are in 10^9 bits a second."""

    json_output: bool = option("-j [ --json-output ]", "Emit JSON output")
    device: int | None = option("-d [ --device-id ] arg", "Device id", whole, least=0, most=4095)
    tiles: int = option(
        "-n [ --num-tiles ] arg", "Number of tiles: 1 to 32 (default: 32)", whole, MOST_TILES,
        least=1, most=MOST_TILES,
    )  # fmt: skip
    remote_buffers: bool = option(
        "-r [ --remote-buffers ]", "Use remote buffers (no effect: all buffers are)"
    )
    blocks: str = option(
        "-p [ --payload-blocks ] arg",
        "Number of 64 byte blocks per transfer: 2|4 (default: 4)", one_of("2", "4"), "4",
    )  # fmt: skip
    iterations: int = option(
        "-i [ --iterations ] arg",
        "Number of 4KB transfers per tile (affects test duration)\n(default: 100000)", whole,
        100_000, least=1, most=_MOST,
    )  # fmt: skip
    duration: float = option(
        "--test-duration arg",
        "Test duration in seconds for tests without IPU tile\naccess (default: 5)", decimal, 5.0,
        least=0.001, most=10**6,
    )  # fmt: skip
    tile_read: bool = option("--tile-read", "Measure IPU tile read performance")
    tile_write: bool = option("--tile-write", "Measure IPU tile write performance")
    tile: bool = option("--tile", "Alternative for --tile-read --tile-write")
    host_read: bool = option("--host-read", "Measure host RDMA read performance")
    host_write: bool = option("--host-write", "Measure host RDMA write performance")
    host: bool = option("--host", "Alternative for --host-read --host-write")
    least_tile: float = option(
        "--min-tile-bandwidth arg",
        "Minimum tile bandwidth (Gbps) expected - fails if not\nreached (default: 0)", decimal,
        0.0, least=0, most=10**9,
    )  # fmt: skip
    least_host: float = option(
        "--min-host-bandwidth arg",
        "Minimum bandwidth (Gbps) expected - fails if not reached\n(default: 0)", decimal, 0.0,
        least=0, most=10**9,
    )  # fmt: skip
    no_timeout: bool = option("--no-timeout", "Suppress test timeout")
    no_reset: bool = option(
        "--suppress-failure-reset", "Suppress safety reset on failure (no effect: there is none)"
    )
    verbose: bool = option("-v [ --verbose ]", "Verbose output")
    secondary: bool = option("--use-secondary", "Use C600 secondary PCIe interface (refused)")
    overview: bool = option(
        "--dump-tile-overview", "Dump tile overview upon failure (no effect: there is none)"
    )
    repeat: int = option(
        "-R [ --repeat ] arg", "Number of times to repeat test (default: 1)", whole, 1,
        least=1, most=_MOST,
    )  # fmt: skip

    @property
    def tests(self) -> tuple[Combination, ...]:
        tile, host = self._accesses("tile"), self._accesses("host")
        if tile == host == {None}:
            return traffic.TOGETHER
        tests = (*traffic.DEVICE_ALONE, *traffic.HOST_ALONE, *traffic.TOGETHER)
        return tuple(test for test in tests if test.device in tile and test.host in host)

    def _accesses(self, side: str) -> set[str | None]:
        every = getattr(self, side)
        asked = (one for one in ("read", "write") if every or getattr(self, f"{side}_{one}"))
        return {*asked} or {None}

    @property
    def uses_tiles(self) -> bool:
        return any(test.device for test in self.tests)

    @property
    def uses_host(self) -> bool:
        return any(test.host for test in self.tests)


_TEXTS = (
    ToolOption("-h [ --help ]", "Produce help message"),
    ToolOption("--version", "Version number"),
)
HELP = f"""\
Usage: gc-hosttraffictest -d {{device id}} [options]

Allowed options:
{help_lines((*HostTrafficOptions.table(), *_TEXTS), 28)}"""


def parse(arguments: Sequence[str]) -> HostTrafficOptions:
    options = HostTrafficOptions.of(arguments)
    if options.device is None:
        raise UsageError("-d: give the id of the device, such as -d 0")
    if options.secondary:
        raise UsageError("--use-secondary: only a C600 has a secondary PCIe interface")
    for side, least, used in (
        ("tile", options.least_tile, options.uses_tiles),
        ("host", options.least_host, options.uses_host),
    ):
        if least and not used:
            raise UsageError(f"--min-{side}-bandwidth: no {side} transfers are measured")
    return options
