"""Emulates the programs of nccl-tests 2.19.6. A sample is the mean time of `-n` iterations on all
ranks. Without GPUs, processes under mpirun measure collectives in host memory by MPI."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from datetime import datetime

from msgspec.structs import replace

from linkgauge.benchmarks.collectives import COLLECTIVES
from linkgauge.cli.tool import Context, Quiet, Where, measure, opened, printing_once, show
from linkgauge.cli.tool_options import decimal, whole
from linkgauge.judge.outcome import outcome_of
from linkgauge.judge.verdict import judge
from linkgauge.machine.environment import needed
from linkgauge.machine.processes.launch import launched
from linkgauge.machine.tree import ROOT
from linkgauge.model.documents.result import CellResult, Run, exit_code
from linkgauge.model.errors import Unsupported
from linkgauge.model.hardware.machine import Device
from linkgauge.model.notation import parse_memory
from linkgauge.model.operations.collective import COLLECTIVE_NAMES, colors_of, groups_of
from linkgauge.model.settings import EngineSettings, Settings
from linkgauge.report.console import make_console
from linkgauge.report.render.terminal import print_blocks, styled
from linkgauge.report.sections.verdict import alarm
from linkgauge.report.words.run_notes import note_lines

from .json_copy import JsonCopy, created, write_report
from .options import NcclOptions, Unable, nccl_options, usage, variable
from .text import (
    Body,
    Each,
    Line,
    LineBlock,
    RankLine,
    columns,
    footer,
    header,
    parts,
    row,
    split_of_environment,
)

SUFFIX = "_perf"
_GI = 1 << 30


def run(arguments: Sequence[str], where: Where) -> int:
    """Runs a program. Returns 1 for wrong elements or less than 90% of NCCL_TESTS_MIN_BW, 5 for
    unsupported options, 255 for an unreadable command line, else as `linkgauge run` does."""
    program = where.name
    with printing_once():
        options = nccl_options(arguments)
        if options.help:
            print(usage(program))
            return 0
        for line in options.differences:
            _complain(f"{program}: {line}")
        return _Test(program, arguments, options).run(where)


def library_version(context: Context) -> int:
    """Returns NCCL's version as a number (22809 for 2.28.9), or 0 if it is unknown."""
    with suppress(Unsupported):
        if context.backend == "cuda":
            from linkgauge.backends.cuda.nccl.library import open_nccl

            return open_nccl().number
    return 0


def _complain(line: str) -> None:
    if not launched().rank:
        print(line, file=sys.stderr, flush=True)


class _Test:
    def __init__(self, program: str, arguments: Sequence[str], options: NcclOptions) -> None:
        self._program = program
        self._arguments = arguments
        self._options = options
        (self._name,) = (name for name in COLLECTIVE_NAMES if name + SUFFIX == program)
        self._split = split_of_environment()
        least = variable("NCCL_TESTS_MIN_BW", "-1", decimal)
        self._least = None if least == -1 else least

    def run(self, where: Where) -> int:
        options, several = self._options, launched().size > 1
        if several and options.devices > 1:
            raise Unable("-t, -g: each process that mpirun starts uses one device")
        if several and "NCCL_TESTS_DEVICE" in os.environ:
            raise Unable("NCCL_TESTS_DEVICE: each process uses the device of its own number")
        if self._split is not None and not several:
            _complain(f"{self._program}: NCCL_TESTS_SPLIT needs several processes")
            self._split = None
        if where.backend is None and where.simulation is None and not several:
            where = replace(where, backend="cuda")
        if where.simulation is None:
            _set_environment(self._program)
        with opened(where, _settings(options), several=several, across=_NAMES) as context:
            return self._measure(context)

    def _measure(self, context: Context) -> int:
        library = library_version(context)
        with closing(self._copy(library)) as copy:
            show(header(self._program, self._options, library))
            try:
                return self._show(_with_devices(context, self._options), copy)
            except Unable as problem:
                copy.error(str(problem))
                raise

    def _show(self, context: Context, copy: JsonCopy) -> int:
        ranks = tuple(_ranks(context, self._split))
        show(map(str, ranks))
        copy.configuration(self._options, ranks)
        self._limit(context.devices)
        show(columns(self._options))
        table = _PrintedTable(self._options, context, copy)
        with ExitStack() as held:
            if self._options.format and self._options.report and not launched().rank:
                write_report(self._options, ranks, ())  # first: it may not be writable
                held.callback(write_report, self._options, ranks, table.shown)
            self._measure_parts(context, table)
        return self._conclude(table, copy)

    def _copy(self, library: int) -> JsonCopy:
        asked, file = self._options.output, None
        if asked is not None and not launched().rank:
            if asked.lower().endswith(".json"):
                file = created(asked, print)
            else:
                _complain(f"{self._program}: -J {asked}: the file name must end in .json")
        return JsonCopy(file, (self._program, *self._arguments), library)

    def _limit(self, devices: Sequence[Device]) -> None:
        """Reduces sizes as nccl-tests does, so that 2 buffers (3 with checks) leave 2 to 5 GiB."""
        memory = min(device.memory_bytes for device in devices)
        reserved = min(-(-memory // (16 * _GI)), 4) * _GI
        most = (memory - reserved - _GI) // (3 if self._options.checks else 2)
        if 0 < most < self._options.most:
            least = min(self._options.least, most)
            self._options = NcclOptions(**vars(self._options) | {"least": least, "most": most})
            show(["#", f"# Reducing maxBytes to {most} due to memory limitation"])

    def _measure_parts(self, context: Context, table: _PrintedTable) -> None:
        ranks = len(groups_of(self._split, len(context.devices))[0])
        if self._name == "hypercube" and ranks & (ranks - 1):
            print(f"nRanks {ranks} is not a power of 2, skipping")
            return
        first = 0
        for part in parts(self._name, self._options, self._split, context.fabric):
            table.begin(part)
            measured = measure(context, (part.benchmark,), sizes=(1,), first=first, observer=table)
            first += len(part.benchmark.cells)
            if table.end(measured):
                return

    def _conclude(self, table: _PrintedTable, copy: JsonCopy) -> int:
        # A tenth less is enough, as in nccl-tests.
        enough = None if self._least is None else table.mean >= self._least * 0.9
        if table.is_complete:
            show(footer(self._program, table.wrong, table.mean, enough))
            copy.footer(table.wrong, table.mean, enough)
            _raise_alarm(table.run)
        failed = table.wrong or enough is False
        return 1 if table.code in (0, 1) and failed else table.code


def _set_environment(program: str) -> None:
    """Sets environment variables that NCCL needs here. Leaves the use of NVLS to NCCL."""
    wanted = needed(ROOT, os.environ)
    if "NCCL_NVLS_ENABLE" in wanted:
        wanted["NCCL_NVLS_ENABLE"] = "2"  # NCCL's default
    if wanted:
        os.environ.update(wanted)
        said = " ".join(f"{name}={value}" for name, value in wanted.items())
        _complain(f"{program}: unlike nccl-tests, sets {said} (docs/as-nccl-tests.md)")


def _raise_alarm(run: Run | None) -> None:
    if run is not None and not launched().rank:
        judged = judge(run)
        sys.stdout.flush()
        print_blocks(make_console(stderr=True), alarm(judged, outcome_of(judged)))


_NAMES = tuple(row.name for row in COLLECTIVES)


def _settings(options: NcclOptions) -> Settings:
    return Settings(
        sizes=(1,),
        samples=1,
        loops=options.iterations,
        verify=options.checks > 0,
        timeout=float(options.timeout) if options.timeout > 0 else None,
        engines=EngineSettings(tuned=False),
    )


def _with_devices(context: Context, options: NcclOptions) -> Context:
    if context.fabric.across_ranks:
        return context
    asked = variable("NCCL_TESTS_DEVICE", "-1", whole)
    first = 0 if asked == -1 else asked
    devices = context.devices[max(first, 0) : first + options.devices]
    if first < 0 or len(devices) < options.devices:
        there = len(context.devices)
        raise Unable(f"-t, -g: {first + options.devices} GPUs are needed, and there are {there}")
    return replace(context, fabric=replace(context.fabric, devices=devices))


def _ranks(context: Context, split: str | None) -> Iterator[RankLine]:
    colors = colors_of(split, len(context.devices))
    for number, device in enumerate(context.devices):
        host, process = context.machine.host.hostname, os.getpid()
        if context.fabric.across_ranks and number < len(context.machine.ranks):
            rank = context.machine.ranks[number]
            host, process = rank.host, rank.process
        address = _address(device)
        yield RankLine(
            number, colors[number], process, host.partition(".")[0], device.index, *address
        )


def _address(device: Device) -> tuple[str, str]:
    if device.pci is not None:
        return device.pci.partition(".")[0], device.model
    place = parse_memory(device.memory)
    return f"{place.space}:{place.index}", device.model


class _PrintedTable(Quiet):
    def __init__(self, options: NcclOptions, context: Context, copy: JsonCopy) -> None:
        self._options, self._context, self._copy = options, context, copy
        self._sides: dict[tuple[str, str], tuple[Line, int]] = {}
        self._bodies: dict[Line, dict[int, Body]] = {}
        self._rates: list[float] = []
        self._runs: list[Run] = []
        self.shown: list[tuple[Line, tuple[Body, Body]]] = []
        self._said: set[object] = set()
        """Notes that were printed. A program with many types and operations prints each note
        once."""
        self.wrong = 0
        self.reasons: list[str] = []
        self.is_complete = True

    @property
    def mean(self) -> float:
        """Returns the mean bus bandwidth of all lines in GB/s, or nan if there is none."""
        return sum(self._rates) / len(self._rates) if self._rates else float("nan")

    @property
    def code(self) -> int:
        """Returns the exit code: 4 if nothing was measured, 3 instead of 0 if lines are missing."""
        run = self.run
        return 4 if run is None else exit_code(run) or 3 * (not self.is_complete)

    @property
    def run(self) -> Run | None:
        if not self._runs:
            return None
        results = tuple(result for run in self._runs for result in run.results)
        return replace(self._runs[-1], results=results)

    def begin(self, part: LineBlock) -> None:
        cells = iter(part.benchmark.cells)
        self._bodies = {}
        self._sides = {next(cells).place: (line, side) for line in part.lines for side in range(2)}

    def end(self, measured: Run) -> bool:
        self._runs.append(measured)
        ended = measured.finished is None or measured.lost is not None
        self.is_complete = self.is_complete and not ended and not self.reasons
        for note in note_lines(measured):
            if note not in self._said:
                make_console(stderr=True).print(styled(note))
                self._said.add(note)
        return ended

    def finished(self, cell: CellResult, /) -> None:
        line, side = self._sides[cell.place]
        if cell.status != "pass":
            self._give_reason(cell)
        if not cell.samples or cell.status not in ("pass", "fail"):
            return
        bodies = self._bodies.setdefault(line, {})
        bodies[side] = self._body(cell, line)
        if len(bodies) == len(line.works):
            self._show(line, (bodies[0], bodies[1]))

    def _give_reason(self, cell: CellResult) -> None:
        reason = f"{cell.row}, {cell.column}: {cell.status}: {cell.reason}"
        known = any(known.endswith(f": {cell.reason}") for known in self.reasons)
        if not cell.samples or not cell.wrong:
            self.is_complete = False
            self.reasons.append(reason)
            self._copy.error(reason)
        if not known:
            _complain(f"{self._context.tool}: {reason}")

    def _body(self, cell: CellResult, line: Line) -> Body:
        seconds = self._seconds(cell)
        wrong = cell.wrong if self._options.checks > 0 else None
        each = None
        if self._options.timing and cell.iterations:
            taken = tuple(map(max, zip(*(rank.samples for rank in cell.iterations), strict=True)))
            each = Each(taken, min(self._options.skipped, len(taken) - 1))
        return Body(seconds, *line.rates(seconds), wrong, each)

    def _seconds(self, cell: CellResult) -> float:
        """Returns the time that `-a` selects: rank 0's, the mean, the least or the greatest."""
        average = sum(cell.samples) / len(cell.samples)
        if not self._context.fabric.across_ranks or self._options.average == 1:
            return average
        if not cell.iterations:
            unknown = "-a: the time of each rank is unknown, so this is their average"
            _complain(f"{self._context.tool}: {unknown}")
            return average
        own = [sum(rank.samples) / len(rank.samples) for rank in cell.iterations]
        chosen = (own[0], average, min(own), max(own))[self._options.average]
        # Their shares come from single iterations: a sample holds the average alone.
        return average * chosen * len(own) / sum(own)

    def _show(self, line: Line, bodies: tuple[Body, Body]) -> None:
        self._rates += [body.bus for body in bodies]
        self.wrong += sum(bool(body.wrong) for body in bodies)
        now = datetime.now().astimezone() if self._options.timestamps else None
        print(row(line, bodies, now), flush=True)
        self.shown.append((line, bodies))
        self._copy.line(line, bodies, self._options.iterations)
