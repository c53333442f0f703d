"""Carries out command lines of nvbandwidth 0.8, and of tools derived from nvbandwidth.

As in nvbandwidth, long names may be abbreviated, `-t` and `-p` take several words, and the word
`true` may follow a switch (scripts write `-s true`)."""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Literal

import msgspec
from msgspec.structs import replace

from linkgauge import __version__
from linkgauge.benchmarks.table import DeviceSet, Row
from linkgauge.cli.tool import Context, Quiet, Where, measure, opened, printing_once
from linkgauge.cli.tool_options import (
    OnceAction,
    Parser,
    ToolOption,
    UsageError,
    digits,
    help_lines,
)
from linkgauge.judge.expected.expect import Expectations
from linkgauge.judge.verdict import judge_result
from linkgauge.machine.processes.launch import launched
from linkgauge.model.documents.result import Result, exit_code
from linkgauge.model.errors import InputError, LinkgaugeError
from linkgauge.model.settings import EngineSettings, Settings
from linkgauge.model.transfer import Benchmark
from linkgauge.report.console import make_console
from linkgauge.report.render.terminal import styled
from linkgauge.report.words.run_notes import note_lines

from .cases import (
    BY_NAME,
    Misprint,
    Testcase,
    TestMatrix,
    TestOutcome,
    cases_of,
    find,
    frame,
    hint,
    outcome,
    utilisation,
    with_prefixes,
)
from .text import JsonPrinter, TextPrinter, system_of

DEFAULT_SIZE = 512
"""The default size in MiB."""


def number(text: str, allowed: range, what: str) -> int:
    """Reads a number in the allowed range. The error message describes the range as `what`."""
    found = digits(text)
    if found is None or found not in allowed:
        raise ArgumentTypeError(f"{text!r} is not {what}")
    return found


_count = partial(number, allowed=range(1, 10**9 + 1), what="a number from 1 to 1000000000")
OPTIONS = (
    ToolOption("-h [ --help ]", "Produce help message"),
    ToolOption("-b [ --bufferSize ] arg (=512)", "Memcpy buffer size in MiB", _count),
    ToolOption("-l [ --list ]", "List available testcases"),
    ToolOption("-t [ --testcase ] arg", "Testcase(s) to run (by name or index)", str, several=True),
    ToolOption(
        "-p [ --testcasePrefixes ] arg", "Testcase(s) to run (by prefix))", str, several=True
    ),
    ToolOption("-v [ --verbose ]", "Verbose output"),
    ToolOption("-s [ --skipVerification ]", "Skips data verification after copy"),
    ToolOption("-d [ --disableAffinity ]", "Disable automatic CPU affinity control"),
    ToolOption("-i [ --testSamples ] arg (=3)", "Iterations of the benchmark", _count),
    ToolOption("-m [ --useMean ]", "Use mean instead of median for results"),
    ToolOption("-j [ --json ]", "Print output in json format instead of plain \ntext."),
)
_UNLISTED = (ToolOption("--perfFormatter"), ToolOption("--loopCount arg", read=_count))
"""The options that are not in the tool's help."""


class NvbandwidthOptions(msgspec.Struct, frozen=True, rename="camel"):
    """The options, with the tool's own names. Sizes are in MiB. The help does not list
    `perf_formatter` and `loop_count`. Only sailbandwidth has the fields after these two."""

    help: bool = False
    list: bool = False
    verbose: bool = False
    skip_verification: bool = False
    disable_affinity: bool = False
    use_mean: bool = False
    json: bool = False
    testcase: tuple[str, ...] = ()
    testcase_prefixes: tuple[str, ...] = ()
    buffer_size: int = DEFAULT_SIZE
    test_samples: int = 3
    perf_formatter: bool = False
    loop_count: int = 16
    test_local_copy: bool = False
    display_ur: bool = msgspec.field(default=False, name="displayUR")
    is_single_die: bool = False
    disable_vm: bool = False
    use_normal_copy: bool = False
    blocks: int | None = None
    threads: int | None = None


def parse(arguments: Sequence[str], options: Sequence[ToolOption]) -> NvbandwidthOptions:
    """Reads a command line. Raises UsageError for unknown options and words."""
    parser = Parser((*options, *_UNLISTED), allow_abbrev=True, action=OnceAction)
    given, rest = parser.parse_known_args(arguments)
    for word in rest:
        if word != "true":
            what = "unrecognised option" if word.startswith("-") else "no option takes the word"
            raise UsageError(f"{what} '{word}'")
    return msgspec.convert(vars(given), NvbandwidthOptions)


# `linkgauge as nvbandwidth`: NVIDIA's nvbandwidth 0.8, with its multinode tests where mpirun
# started several processes.


GIT_VERSION = f"linkgauge {__version__}"
"""The text in place of the commit from which the tool was built."""
Printer = TextPrinter | JsonPrinter


class Dialect(msgspec.Struct, frozen=True):
    """The differences between nvbandwidth and a tool derived from it. `header` is printed first.
    `options` are the options in the tool's help. `misprints` are errors in the tool's headings, by
    test. If `has_bulk`, kernels copy by the bulk copy unit unless the user requests normal
    copies."""

    name: str
    version: str
    header: tuple[str, ...]
    options: tuple[ToolOption, ...]
    misprints: Mapping[str, tuple[Misprint, ...]]
    has_bulk: bool = False

    @property
    def help(self) -> str:
        return f"{self.name} CLI:\n{help_lines(self.options, 31)}\n"

    def settings(self, asked: NvbandwidthOptions) -> Settings:
        """Returns the settings for measuring, with one stream and without tuning."""
        bulk: Literal["plain", "bulk"] = "plain" if asked.use_normal_copy else "bulk"
        return Settings(
            sizes=(asked.buffer_size << 20,),
            samples=asked.test_samples,
            loops=asked.loop_count,
            verify=not asked.skip_verification,
            engines=EngineSettings(
                kernel=bulk if self.has_bulk else None,
                blocks=asked.blocks,
                threads=asked.threads,
                streams=1,
                tuned=False,
                affinity=not asked.disable_affinity,
            ),
        )


_BETWEEN = "multinode_device_to_device_"
_ROWS = Misprint("CPU(row)", "GPU(row)")
WRITES_AS_READS = {f"{_BETWEEN}bidirectional_memcpy_write_ce": (Misprint("Read", "Write"),)}
NVBANDWIDTH = Dialect(
    "nvbandwidth",
    "v0.8",
    ("nvbandwidth Version: v0.8", f"Built from Git version: {GIT_VERSION}", ""),
    OPTIONS,
    {
        f"{_BETWEEN}memcpy_read_sm": (Misprint("memcpy CE", "memcpy SM"),),
        f"{_BETWEEN}bidirectional_memcpy_read_ce": (_ROWS,),
        f"{_BETWEEN}bidirectional_memcpy_read_sm": (_ROWS,),
        f"{_BETWEEN}bidirectional_memcpy_write_sm": (_ROWS,),
    }
    | {name: (_ROWS, *writes) for name, writes in WRITES_AS_READS.items()},
)


def speak(dialect: Dialect, arguments: Sequence[str], where: Where) -> int:
    """Carries out a command line. If mpirun started several processes, only one prints. Exit codes:
    1 for bad usage or an unknown test, otherwise those of `linkgauge run`. nvbandwidth itself exits
    with 0 after errors."""
    with printing_once():
        return _speak(dialect, arguments, where)


def _speak(dialect: Dialect, arguments: Sequence[str], where: Where) -> int:
    try:
        options = parse(arguments, dialect.options)
    except UsageError as error:
        print(*dialect.header, "ERROR: Invalid Arguments ", sep="\n")
        print(*(dialect.name, *arguments), ":\n")
        print(dialect.help)
        print(f"{dialect.name}: {error}", file=sys.stderr)
        return error.exit_code
    for name, given in (("isSingleDie", options.is_single_die), ("disableVm", options.disable_vm)):
        if given:
            print(f"{dialect.name}: --{name} has no meaning here: ignored", file=sys.stderr)
    printer: Printer = TextPrinter(verbose=options.verbose, perf=options.perf_formatter)
    if options.json:
        printer = JsonPrinter(dialect.name, dialect.version, GIT_VERSION, verbose=options.verbose)
    else:
        print(*dialect.header, sep="\n")
    if options.help:
        print(dialect.help)
        return 0
    if options.list:
        _list(cases_of(several=launched().size > 1))
        return 0
    try:
        return _run(dialect, options, where, printer)
    except LinkgaugeError as error:
        printer.fail(str(error))
        return error.exit_code


run = partial(speak, NVBANDWIDTH)


def _list(cases: Sequence[Testcase]) -> None:
    print("Index, Name:\n\tDescription\n=======================")
    for index, case in enumerate(cases):
        print(f"{index}, {case.name}:", *(f"\t{line}" for line in case.about), "", sep="\n")


@contextmanager
def _opened(dialect: Dialect, options: NvbandwidthOptions, where: Where) -> Iterator[Context]:
    """Opens the machine. Raises InputError if it has no devices. If the first requested test needs
    several processes, the message says how to run it."""
    advice = ""
    several = launched().size > 1
    if not several:
        option = "-p" if options.testcase_prefixes else "-t"
        for asked in (options.testcase_prefixes or options.testcase)[:1]:
            advice = hint(f"{dialect.name} {option}", asked)
    with ExitStack() as held:
        try:
            context = held.enter_context(opened(where, dialect.settings(options), several=several))
        except InputError as error:
            raise InputError(f"{error}{advice}") from error
        if not context.devices:
            nothing = f"no accelerator to measure: backend {context.backend} has no devices"
            raise InputError(nothing + advice)
        yield context


def _asked(
    tool: str, options: NvbandwidthOptions, *, several: bool
) -> list[tuple[str, Testcase | str]]:
    """Returns the requested tests by name or index. If there is no test of a name, the reason takes
    its place. Raises UsageError if no test has one of the requested prefixes."""
    cases = cases_of(several=several)

    def advised(problem: str, option: str, asked: str) -> str:
        return problem if several else problem + hint(f"{tool} {option}", asked)

    names = options.testcase or tuple(case.name for case in cases)
    if prefixes := options.testcase_prefixes:
        names = with_prefixes(prefixes, cases)
        if not names:
            problem = "Specified list of testcase prefixes did not match any testcases"
            raise UsageError(advised(problem, "-p", prefixes[0]))
    found = [(name, find(name, cases)) for name in names]
    return [
        (name, advised(case, "-t", name) if isinstance(case, str) else case) for name, case in found
    ]


def _lay_out(row: Row, fabric: DeviceSet) -> Benchmark:
    """Plans the test on these devices. Under mpirun, a test for one process is skipped, because no
    process has all devices."""
    if fabric.across_ranks and not row.across_ranks:
        fabric = replace(fabric, devices=(), reason="needs one process: run it without mpirun")
    return row.lay_out(fabric)


def _run(dialect: Dialect, options: NvbandwidthOptions, where: Where, printer: Printer) -> int:
    """Measures the requested tests, in the order of the request."""
    if options.testcase and options.testcase_prefixes:
        raise UsageError(
            "You cannot specify both testcase and testcasePrefix options at the same time"
        )
    if options.buffer_size < DEFAULT_SIZE:
        printer.warn(
            "NOTE: You have chosen a buffer size that is smaller than the default buffer size. It "
            f"is suggested to use the default buffer size ({DEFAULT_SIZE}MB) to achieve maximal "
            "peak bandwidth."
        )
    with _opened(dialect, options, where) as context:
        found = _asked(dialect.name, options, several=context.fabric.across_ranks)
        printer.system(system_of(context))
        reporting = _Reporting(dialect, found, options, context, printer)
        cases = [case for _, case in found if isinstance(case, Testcase)]
        code = _measure(cases, options, context, reporting) if cases else 0
    reporting.of_missing()
    printer.end()
    return code or (UsageError.exit_code if len(cases) < len(found) else 0)


def _measure(
    cases: Sequence[Testcase], options: NvbandwidthOptions, context: Context, reporting: _Reporting
) -> int:
    rows = [case.row_with_local_copies if options.test_local_copy else case.row for case in cases]
    benchmarks = [_lay_out(row, context.fabric) for row in rows]
    measured = measure(context, benchmarks, observer=reporting)
    if measured.finished is None:
        reporting.of_interrupted(measured.results)
    for note in note_lines(measured):
        make_console(stderr=True).print(styled(note))
    return exit_code(measured)


class _Reporting(Quiet):
    """Prints each result when it is measured. Also prints the requested tests that do not exist, in
    the order of the request."""

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
        self._devices = context.devices
        self._outcome = partial(
            outcome, devices=context.devices, use_mean=options.use_mean, verbose=options.verbose
        )
        self._printer = printer
        self._expectations = Expectations(context.machine) if options.display_ur else None

    def completed(self, result: Result) -> None:
        self.of_missing()
        self._left.popleft()
        case = BY_NAME[result.benchmark]
        shown = self._outcome(result, case)
        self._show(replace(shown, shares=self._shares(result, case)))

    def _show(self, shown: TestOutcome) -> None:
        """Prints a result with the tool's own words. Even wrong words are kept, because parsers
        rely on them."""
        for misprint in self._dialect.misprints.get(shown.name, ()) if shown.matrices else ():
            shown = misprint.in_headings(shown)
            self.say(
                f"{shown.name}: its headings say {misprint.written}, as those of "
                f"{self._dialect.name} do, but mean {misprint.meant}"
            )
        self._printer.show(shown)

    def of_interrupted(self, results: Sequence[Result]) -> None:
        """Prints the part of a test that was measured before Ctrl-C."""
        self.of_missing()
        if not self._left or not isinstance(case := self._left[0][1], Testcase):
            return
        for result in results[-1:]:
            if result.benchmark == case.name and result.cells:
                cut = replace(result, status="error")
                shown = self._outcome(cut, case)
                reasons = (*shown.reasons, f"interrupted after {len(result.cells)} cells")
                self._show(replace(shown, reasons=reasons))

    def of_missing(self) -> None:
        """Prints the next requested tests for as long as they do not exist."""
        while self._left and isinstance(problem := self._left[0][1], str):
            self._printer.missing(self._left.popleft()[0], problem)

    def _shares(self, result: Result, case: Testcase) -> TestMatrix | None:
        """Returns the percentages of the theoretical figures, for copies between devices of one
        process. None for several processes, because the links between their devices are unknown."""
        if self._expectations is None or not case.row.between_devices or case.row.across_ranks:
            return None
        shares = utilisation(judge_result(result, self._expectations))
        if not shares:
            return None
        heading = case.heading.replace("bandwidth (GB/s)", "utilization ratio (%)")
        percent = {at: 100 * share for at, share in shares.items()}
        over = frame(result, case, self._devices)
        return replace(over, name=f"{case.name}_utilization", heading=heading, figures=percent)
