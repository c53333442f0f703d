"""gc-hosttraffictest: Graphcore's test of host and IPU tiles at one staging buffer.

Source: its manual page (options, text, JSON). Tiles are the streams of the device; the payload is
the size of one access of a kernel, if selectable. `-r`, `--suppress-failure-reset` and
`--dump-tile-overview` change nothing here: every buffer is the host's, no device is reset, and
there are no tiles to dump. `--use-secondary` is rejected."""

from __future__ import annotations

from argparse import SUPPRESS
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from linkgauge import __version__
from linkgauge.cli.tool import (
    Context,
    OnceAction,
    Parser,
    UsageError,
    Where,
    decimal,
    hinting,
    measure,
    opened,
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
"""Bytes of a tile's transfer."""
BLOCK = 64
MOST_TILES = 32
_SAMPLE = 100
"""Maximum loops of a sample."""
_NO_TIMEOUT = 1e6
_MOST = 10**9


class HostTrafficOptions(msgspec.Struct, frozen=True):
    """The checked command line. Bandwidths are in 10^9 bits a second."""

    device: int
    tiles: int
    blocks: int
    iterations: int
    duration: float
    tests: tuple[Combination, ...]
    least_tile: float
    least_host: float
    repeat: int
    has_timeout: bool
    as_json: bool
    verbose: bool

    @property
    def uses_tiles(self) -> bool:
        return any(test.device for test in self.tests)

    @property
    def uses_host(self) -> bool:
        return any(test.host for test in self.tests)


@hinting(f"Try '{TOOL} --help' for more information.")
def run(arguments: Sequence[str], where: Where) -> int:
    """Measures what this command line requests, and prints it as the tool does. Returns the exit
    code."""
    options = parse(arguments)
    if isinstance(options, str):
        print(options)
        return 0
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
    if options.verbose and not options.as_json:
        print(text.heading(next(iter(context.devices), None), options.tests, options.tiles))
    runs: list[Run] = []
    for number in range(options.repeat):
        if not options.as_json:
            print(f"Running test sequence {number + 1}/{options.repeat}", flush=True)
        progress = text.ProgressPrinter(
            len(options.tests), judged, lines=not options.as_json, verbose=options.verbose
        )
        first = number * sum(len(benchmark.cells) for benchmark in benchmarks)
        taken = measure(context, benchmarks, first=first, observer=progress)
        runs.append(hold_run(taken, judged))
        if runs[-1].finished is None:
            break
    if options.as_json:
        print(text.document(_configuration(options), options.tests, runs))
    return next(filter(None, map(exit_code, runs)), 0)


def _settings(options: HostTrafficOptions) -> Settings:
    """The settings: with tiles a fixed number of transfers, else a fixed duration."""
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
    """A number of at most `most`, and a multiplier, whose product is `count`: exactly, unless that
    takes much smaller numbers than necessary; then slightly more."""
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


class _Once(OnceAction):
    refusal = "option '{longest}' cannot be specified more than once"


_WORDS = {
    r"unrecognized arguments: (-\S*).*": r"unrecognised option '\1'",
    r"unrecognized arguments: .*": (
        "too many positional options have been specified on the command line"
    ),
    r"ambiguous option: (\S+) could match (.*)": r"option '\1' is ambiguous and matches \2",
    r"argument \S*?(--[a-z-]+): expected one argument": (
        r"the required argument for option '\1' is missing"
    ),
    r"argument \S*?(--[a-z-]+): invalid \w+ value: (.*)": (
        r"the argument (\2) for option '\1' is invalid"
    ),
}
"""argparse's messages in the tool's words."""
_FLAGS = (
    ("-j", "--json-output"), ("-r", "--remote-buffers"),
    ("--tile-read",), ("--tile-write",), ("--tile",),
    ("--host-read",), ("--host-write",), ("--host",),
    ("--no-timeout",), ("--suppress-failure-reset",), ("-v", "--verbose"),
    ("--use-secondary",), ("--dump-tile-overview",), ("-h", "--help"), ("--version",),
)  # fmt: skip
_VALUES = (
    ("device", "-d", "--device-id", whole, None, 0, 4095),
    ("tiles", "-n", "--num-tiles", whole, MOST_TILES, 1, MOST_TILES),
    ("blocks", "-p", "--payload-blocks", whole, 4, 2, 4),
    ("iterations", "-i", "--iterations", whole, 100_000, 1, _MOST),
    ("duration", "", "--test-duration", decimal, 5.0, 1e-3, 1e6),
    ("least_tile", "", "--min-tile-bandwidth", decimal, 0.0, 0.0, 1e9),
    ("least_host", "", "--min-host-bandwidth", decimal, 0.0, 0.0, 1e9),
    ("repeat", "-R", "--repeat", whole, 1, 1, _MOST),
)
"""Field, short and long name, type, default, least and most."""


def parse(arguments: Sequence[str]) -> HostTrafficOptions | str:
    """The options, or the text that -h or --version ask for. Raises UsageError for unknown options,
    and for options that contradict each other."""
    # As in the tool, they work even if other arguments are wrong; abbreviations only if all are
    # right.
    given = {} if {"-h", "--help", "--version"} & set(arguments) else _parsed(arguments)
    if {"-h", "--help"} & set(arguments) or given.get("help"):
        return text.HELP
    if not given or given["version"]:
        return f"{TOOL} of linkgauge {__version__}"
    values: dict[str, Any] = {
        field: _checked(given.get(field, default), name, *bounds)
        for field, _, name, _, default, *bounds in _VALUES
    }
    if values["blocks"] == 3:
        raise UsageError("the argument ('3') for option '--payload-blocks' is invalid: 2|4")
    if given["use_secondary"]:
        raise UsageError("option '--use-secondary': only a C600 has a secondary PCIe interface")
    options = HostTrafficOptions(
        tests=_tests(given),
        has_timeout=not given["no_timeout"],
        as_json=given["json_output"],
        verbose=given["verbose"],
        **values,
    )
    for side, least, used in (
        ("tile", options.least_tile, options.uses_tiles),
        ("host", options.least_host, options.uses_host),
    ):
        if least and not used:
            raise UsageError(f"option '--min-{side}-bandwidth': no {side} transfers are measured")
    return options


def _parsed(arguments: Sequence[str]) -> dict[str, Any]:
    parser = Parser(_WORDS, allow_abbrev=True)  # the page itself writes --device
    for names in _FLAGS:
        parser.add_argument(*names, action="store_true")
    for field, short, name, kind, *_ in _VALUES:
        given = filter(None, (short, name))
        parser.add_argument(*given, dest=field, type=kind, action=_Once, default=SUPPRESS)
    return vars(parser.parse_args(list(arguments)))


def _checked(value: float | None, name: str, least: float, most: float) -> float:
    if value is None:
        raise UsageError(f"the option '{name}' is required but missing")
    if not least <= value <= most:
        raise UsageError(
            f"the argument ('{value}') for option '{name}' is invalid: give {least:g} to {most:g}"
        )
    return value


def _tests(given: dict[str, Any]) -> tuple[Combination, ...]:
    """The combinations to measure: all four if the options choose none; else each chosen host
    access with each chosen tile access, or alone."""
    tile, host = (_accesses(given, side) for side in ("tile", "host"))
    if tile == host == {None}:
        return traffic.TOGETHER
    tests = (*traffic.DEVICE_ALONE, *traffic.HOST_ALONE, *traffic.TOGETHER)
    return tuple(test for test in tests if test.device in tile and test.host in host)


def _accesses(given: dict[str, Any], side: str) -> set[str | None]:
    """The chosen accesses of a side; {None} if the side takes no part."""
    asked: set[str | None] = {
        access for access in ("read", "write") if given[side] or given[f"{side}_{access}"]
    }
    return asked or {None}
