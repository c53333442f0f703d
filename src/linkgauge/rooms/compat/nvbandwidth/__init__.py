"""Runs command lines of nvbandwidth and of tools derived from it."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial

from msgspec.structs import replace

from linkgauge.benchmarks.table import DeviceSet, Row
from linkgauge.cli.tool import Context, Quiet, Where, measure, opened, printing_once
from linkgauge.cli.tool_options import Parser, ToolOption, UsageError
from linkgauge.engine.rewriting import in_memory
from linkgauge.engine.rounds import draw, only
from linkgauge.judge.expected.expect import Expectations
from linkgauge.judge.verdict import judge_result
from linkgauge.machine.processes.launch import launched
from linkgauge.model.documents.result import Result, exit_code
from linkgauge.model.errors import InputError, LinkgaugeError
from linkgauge.model.notation import parse_memory
from linkgauge.model.transfer import Benchmark, PairSample, Place
from linkgauge.report.console import make_console
from linkgauge.report.render.terminal import styled
from linkgauge.report.words.run_notes import note_lines

from .cases import BY_NAME, Testcase, find, hint
from .dialects import DEFAULT_SIZE, GIT_VERSION, VERSIONS, Dialect, NvbandwidthOptions, parse
from .outcomes import Outcomes, TestMatrix, TestOutcome
from .text import JsonPrinter, TextPrinter, system_of

Printer = TextPrinter | JsonPrinter


def run(arguments: Sequence[str], where: Where) -> int:
    """Runs nvbandwidth's command line, in the newest version or in the version of `--emulate`."""
    parser = Parser((ToolOption("--emulate VERSION", read=str),))
    given, rest = parser.parse_known_args(list(arguments))
    version = getattr(given, "emulate", [*VERSIONS][-1])
    if version not in VERSIONS:
        raise UsageError(f"--emulate {version}: give one of {', '.join(VERSIONS)}")
    return speak(VERSIONS[version], rest, where)


@printing_once()
def speak(dialect: Dialect, arguments: Sequence[str], where: Where) -> int:
    """Runs a command line. Returns 1 for bad usage or an unknown test, else the exit code of
    `linkgauge run`; nvbandwidth itself returns 0 after errors."""
    options = parse(arguments, dialect.options)
    for name, given in (("isSingleDie", options.is_single_die), ("disableVm", options.disable_vm)):
        if given:
            print(f"{dialect.name}: --{name} has no meaning here: ignored", file=sys.stderr)
    perf, brief = options.perf_formatter or options.format == "perf", dialect.is_brief
    printer: Printer = TextPrinter(verbose=options.verbose, perf=perf, brief=brief)
    if options.json or options.format == "json":
        printer = JsonPrinter(dialect.name, dialect.version, GIT_VERSION, verbose=options.verbose)
    else:
        print(*dialect.header, sep="\n")
    if options.help:
        print(dialect.help)
    elif options.list:
        _list(dialect)
    if options.help or options.list or options.version:
        return 0
    try:
        return _run(dialect, options, where, printer)
    except LinkgaugeError as error:
        printer.fail(str(error))
        return error.exit_code


def _list(dialect: Dialect) -> None:
    brief = dialect.is_brief
    print("Index, Name:\n\tDescription", *(() if brief else ("=======================",)), sep="\n")
    for index, case in enumerate(dialect.cases(several=launched().size > 1)):
        about = "\n\t".join(case.about)
        print(f"{index}, {case.name}:", f"\t\t{about}" if brief else f"\t{about}\n", sep="\n")


@contextmanager
def _opened(dialect: Dialect, options: NvbandwidthOptions, where: Where) -> Iterator[Context]:
    several = launched().size > 1
    asked = options.testcase_prefixes or options.testcase
    advice = _advice(dialect, options, several, asked[0]) if asked else ""
    with ExitStack() as held:
        try:
            context = held.enter_context(opened(where, dialect.settings(options), several=several))
        except InputError as error:
            raise InputError(f"{error}{advice}") from error
        if not context.devices:
            nothing = f"no accelerator to measure: backend {context.backend} has no devices"
            raise InputError(nothing + advice)
        yield context


def _advice(dialect: Dialect, options: NvbandwidthOptions, several: bool, asked: str) -> str:
    option = "-p" if options.testcase_prefixes else "-t"
    return "" if several else hint(f"{dialect.name} {option}", asked)


def _asked(
    dialect: Dialect, options: NvbandwidthOptions, *, several: bool
) -> list[tuple[str, Testcase | str]]:
    cases, advice = dialect.cases(several=several), partial(_advice, dialect, options, several)
    names = options.testcase or tuple(case.name for case in cases)
    if prefixes := options.testcase_prefixes:
        names = tuple(name for name in names if name.startswith(prefixes))
        if not names:
            raise UsageError(f"-p: no test begins with {prefixes[0]}{advice(prefixes[0])}")
    found = [(name, find(name, cases)) for name in names]
    return [(name, case + advice(name) if isinstance(case, str) else case) for name, case in found]


def _lay_out(row: Row, fabric: DeviceSet) -> Benchmark:
    """Returns a test's benchmark. Under mpirun, a test for one process gets no cells, because no
    process has all devices."""
    if fabric.across_ranks and not row.across_ranks:
        fabric = replace(fabric, devices=(), reason="needs one process: run it without mpirun")
    return row.lay_out(fabric)


def _run(dialect: Dialect, options: NvbandwidthOptions, where: Where, printer: Printer) -> int:
    if options.buffer_size < DEFAULT_SIZE:
        printer.warn(
            "NOTE: You have chosen a buffer size that is smaller than the default buffer size. It "
            f"is suggested to use the default buffer size ({DEFAULT_SIZE}MB) to achieve maximal "
            "peak bandwidth."
        )
    with _opened(dialect, options, where) as context:
        found = _asked(dialect, options, several=context.fabric.across_ranks)
        printer.system(system_of(context))
        reporting = _Reporting(dialect, found, options, context, printer)
        cases = [case for _, case in found if isinstance(case, Testcase)]
        code = _measure(cases, options, context, reporting) if cases else 0
    reporting.of_missing()
    printer.end()
    return code or (int(len(cases) < len(found)))


def _asked_pairs(options: NvbandwidthOptions, context: Context) -> tuple[Place, ...]:
    known = {device.uuid: parse_memory(device.memory).label for device in context.devices}
    for uuid in options.pair:
        if uuid not in known:
            raise InputError(f"--pair: no device has the UUID {uuid}")
    if not options.pair:
        return ()
    row, column = (known[uuid] for uuid in options.pair)
    return (Place(row, column), Place(column, row))[: 2 if context.fabric.across_ranks else 1]


def _measure(
    cases: Sequence[Testcase], options: NvbandwidthOptions, context: Context, reporting: _Reporting
) -> int:
    rows = [case.row_with_local_copies if options.test_local_copy else case.row for case in cases]
    benchmarks = tuple(_lay_out(row, context.fabric) for row in rows)
    if options.use_huge_pages:
        with suppress(InputError):  # no test uses host memory
            benchmarks = in_memory(benchmarks, "huge")
    if options.target_num_pairs is not None and context.fabric.across_ranks:
        with suppress(InputError):  # no test has pairs
            benchmarks = draw(benchmarks, PairSample(options.target_num_pairs))
    elif options.target_num_pairs is not None:
        reporting.say(f"{context.tool}: --targetNumPairs has no effect in one process")
    if pairs := _asked_pairs(options, context):
        benchmarks = only(benchmarks, pairs)
    measured = measure(context, benchmarks, observer=reporting)
    if measured.finished is None:
        reporting.of_interrupted(measured.results)
    for note in note_lines(measured):
        make_console(stderr=True).print(styled(note))
    return exit_code(measured)


class _Reporting(Quiet):
    def __init__(
        self,
        dialect: Dialect,
        found: Sequence[tuple[str, Testcase | str]],
        options: NvbandwidthOptions,
        context: Context,
        printer: Printer,
    ) -> None:
        self._dialect = dialect
        self._left = deque(found)
        rows = tuple(pair.row for pair in _asked_pairs(options, context))
        how = options.use_mean, options.verbose, dialect.spread
        self._outcomes = Outcomes(context.devices, *how, rows)
        self._printer = printer
        self._expectations = Expectations(context.machine) if options.display_ur else None

    def completed(self, result: Result) -> None:
        self.of_missing()
        self._left.popleft()
        case = BY_NAME[result.benchmark]
        shown = self._outcomes.of(result, case)
        self._show(replace(shown, shares=self._shares(result, case)))

    def _show(self, shown: TestOutcome) -> None:
        """Prints a test. Keeps the tool's misprints in headings, because parsers rely on them."""
        for misprint in self._dialect.misprints.get(shown.name, ()) if shown.matrices else ():
            matrices = tuple(
                replace(m, heading=m.heading.replace(misprint.meant, misprint.written))
                for m in shown.matrices
            )
            shown = replace(shown, matrices=matrices)
            self.say(
                f"{shown.name}: its headings say {misprint.written}, as those of "
                f"{self._dialect.name} do, but mean {misprint.meant}"
            )
        self._printer.show(shown)

    def of_interrupted(self, results: Sequence[Result]) -> None:
        self.of_missing()
        if not self._left or not isinstance(case := self._left[0][1], Testcase):
            return
        for result in results[-1:]:
            if result.benchmark == case.name and result.cells:
                shown = self._outcomes.of(replace(result, status="error"), case)
                reasons = (*shown.reasons, f"interrupted after {len(result.cells)} cells")
                self._show(replace(shown, reasons=reasons))

    def of_missing(self) -> None:
        while self._left and isinstance(problem := self._left[0][1], str):
            self._printer.missing(self._left.popleft()[0], problem)

    def _shares(self, result: Result, case: Testcase) -> TestMatrix | None:
        """Returns rates in % of the theoretical rates, or None if no theoretical rate is known."""
        if self._expectations is None or not case.row.between_devices or case.row.across_ranks:
            return None
        percent = {
            cell.place: 100 * share
            for cell in judge_result(result, self._expectations).cells
            if cell.expected is not None and (share := cell.share(cell.expected.theoretical))
        }
        if not percent:
            return None
        heading = case.heading.replace("bandwidth (GB/s)", "utilization ratio (%)")
        over = self._outcomes.frame(result, case)
        return replace(over, name=f"{case.name}_utilization", heading=heading, figures=percent)
