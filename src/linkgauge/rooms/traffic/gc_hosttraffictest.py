"""Emulates Graphcore's gc-hosttraffictest, after its manual page. Device streams stand for tiles,
and a kernel's access for the payload. Ignores `-r` and `--suppress-failure-reset`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from linkgauge import __version__
from linkgauge.cli.tool import Context, Where, measure, opened
from linkgauge.cli.tool_options import (
    Parser,
    ToolOption,
    UsageError,
    decimal,
    help_lines,
    one_of,
    whole,
)
from linkgauge.judge.limits import hold_run
from linkgauge.model.documents.result import Run, exit_code
from linkgauge.model.errors import InputError
from linkgauge.model.settings import EngineSettings, Settings

from . import benchmarks as traffic
from . import gc_hosttraffictest_text as text
from .benchmarks import BUFFER, Combination, objection

TOOL = "gc-hosttraffictest"
TRANSFER = 4096
BLOCK = 64
MOST_TILES = 32
_SAMPLE = 100
_NO_TIMEOUT = 1e6
_MOST = 10**9


class HostTrafficOptions(msgspec.Struct, frozen=True):
    """The options of gc-hosttraffictest. Bandwidths are in 10^9 bits a second."""

    device: int
    tests: tuple[Combination, ...]
    has_timeout: bool
    tiles: int = MOST_TILES
    blocks: int = 4
    iterations: int = 100_000
    duration: float = 5.0
    least_tile: float = 0.0
    least_host: float = 0.0
    repeat: int = 1
    json_output: bool = False
    verbose: bool = False

    @property
    def uses_tiles(self) -> bool:
        return any(test.device for test in self.tests)

    @property
    def uses_host(self) -> bool:
        return any(test.host for test in self.tests)


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
        print(text.heading(next(iter(context.devices), None), options.tests, options.tiles))
    runs: list[Run] = []
    for number in range(options.repeat):
        if not options.json_output:
            print(f"Running test sequence {number + 1}/{options.repeat}", flush=True)
        progress = text.ProgressPrinter(
            len(options.tests), judged, lines=not options.json_output, verbose=options.verbose
        )
        first = number * sum(len(benchmark.cells) for benchmark in benchmarks)
        taken = measure(context, benchmarks, first=first, observer=progress)
        runs.append(hold_run(taken, judged))
        if runs[-1].finished is None:
            break
    if options.json_output:
        print(text.document(_configuration(options), options.tests, runs))
    return next(filter(None, map(exit_code, runs)), 0)


def _settings(options: HostTrafficOptions) -> Settings:
    """Returns settings with a fixed number of transfers or, if no tiles take part, a duration."""
    streams = options.tiles
    each, passes = split(options.iterations, BUFFER // (TRANSFER * streams))
    loops, samples = split(passes, _SAMPLE)
    settings = Settings(
        sizes=(TRANSFER * streams * each,),
        samples=samples,
        loops=loops,
        timeout=None if options.has_timeout else _NO_TIMEOUT,
        engines=EngineSettings(
            tuned=False, pieces=traffic.make_pieces(TRANSFER, options.blocks * BLOCK, streams)
        ),
    )
    if options.uses_tiles:
        return settings
    return msgspec.structs.replace(
        settings,
        sizes=(BUFFER,),
        samples=None,
        loops=None,
        precision=0.0,
        max_time=options.duration,
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


OPTIONS = (
    ToolOption("-j [ --json-output ]", "Emit JSON output"),
    ToolOption("-d [ --device-id ] arg", "Device id", whole, "device", 0, 4095),
    ToolOption(
        "-n [ --num-tiles ] arg", "Number of tiles: 1 to 32 (default: 32)", whole, "tiles",
        1, MOST_TILES,
    ),
    ToolOption("-r [ --remote-buffers ]", "Use remote buffers (no effect: all are)"),
    ToolOption(
        "-p [ --payload-blocks ] arg",
        "Number of 64 byte blocks per transfer: 2|4 (default: 4)", one_of("2", "4"), "blocks",
    ),
    ToolOption(
        "-i [ --iterations ] arg",
        "Number of 4KB transfers per tile (affects test duration)\n(default: 100000)", whole,
        "", 1, _MOST,
    ),
    ToolOption(
        "--test-duration arg",
        "Test duration in seconds for tests without IPU tile\naccess (default: 5)", decimal,
        "duration", 0.001, 10**6,
    ),
    ToolOption("--tile-read", "Measure IPU tile read performance"),
    ToolOption("--tile-write", "Measure IPU tile write performance"),
    ToolOption("--tile", "Alternative for --tile-read --tile-write"),
    ToolOption("--host-read", "Measure host RDMA read performance"),
    ToolOption("--host-write", "Measure host RDMA write performance"),
    ToolOption("--host", "Alternative for --host-read --host-write"),
    ToolOption(
        "--min-tile-bandwidth arg",
        "Minimum tile bandwidth (Gbps) expected - fails if not\nreached (default: 0)", decimal,
        "least_tile", 0, 10**9,
    ),
    ToolOption(
        "--min-host-bandwidth arg",
        "Minimum bandwidth (Gbps) expected - fails if not reached\n(default: 0)", decimal,
        "least_host", 0, 10**9,
    ),
    ToolOption("--no-timeout", "Suppress test timeout"),
    ToolOption(
        "--suppress-failure-reset", "Suppress safety reset on failure (no effect: there is none)"
    ),
    ToolOption("-v [ --verbose ]", "Verbose output"),
    ToolOption("--use-secondary", "Use C600 secondary PCIe interface (refused)"),
    ToolOption(
        "--dump-tile-overview", "Dump tile overview upon failure (no effect: there is none)"
    ),
    ToolOption(
        "-R [ --repeat ] arg", "Number of times to repeat test (default: 1)", whole, "", 1, _MOST
    ),
)  # fmt: skip
_TEXTS = (
    ToolOption("-h [ --help ]", "Produce help message"),
    ToolOption("--version", "Version number"),
)
HELP = f"""\
Usage: gc-hosttraffictest -d {{device id}} [options]

Allowed options:
{help_lines((*OPTIONS, *_TEXTS), 28)}"""


def parse(arguments: Sequence[str]) -> HostTrafficOptions:
    given = Parser(OPTIONS).given(arguments)
    if "device" not in given:
        raise UsageError("-d: give the id of the device, such as -d 0")
    if "use_secondary" in given:
        raise UsageError("--use-secondary: only a C600 has a secondary PCIe interface")
    tests = {"tests": _tests(given), "has_timeout": "no_timeout" not in given}
    options = msgspec.convert(given | tests, HostTrafficOptions, strict=False)
    for side, least, used in (
        ("tile", options.least_tile, options.uses_tiles),
        ("host", options.least_host, options.uses_host),
    ):
        if least and not used:
            raise UsageError(f"--min-{side}-bandwidth: no {side} transfers are measured")
    return options


def _tests(given: dict[str, Any]) -> tuple[Combination, ...]:
    tile, host = (_accesses(given, side) for side in ("tile", "host"))
    if tile == host == {None}:
        return traffic.TOGETHER
    tests = (*traffic.DEVICE_ALONE, *traffic.HOST_ALONE, *traffic.TOGETHER)
    return tuple(test for test in tests if test.device in tile and test.host in host)


def _accesses(given: dict[str, Any], side: str) -> set[str | None]:
    asked: set[str | None] = {
        access for access in ("read", "write") if {side, f"{side}_{access}"} & given.keys()
    }
    return asked or {None}
